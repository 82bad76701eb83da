//! Bands of reduction order from the command line: of outputs for shuffled inputs that are given,
//! or of sums and products that are computed here.

use std::path::PathBuf;

use assay_compare::{
    BandOptions, Bands, CompareError, Operation, Options, Shuffle, Source, Tensor,
    compare_shuffled, matmul, shuffled_map, sum_last_dim,
};
use assay_num::Format;
use assay_record::{Comparison, ErrorMap};
use clap::Args;

use super::device::There;
use super::input::{Input, unreadable};
use super::{elements_bar, format, progress_bar, with_causes};
use crate::failure::Failure;

/// The most bytes that the outputs of all shuffles may take: 8 GiB.
const MOST_HELD: u64 = 1 << 33;

/// What can be typed of bands.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Bands: how far the order of a sum moves each element")]
pub(crate) struct BandArguments {
    /// Judge every element by its spread over these outputs of the reference for shuffled inputs:
    /// files of one output each, of several, or of one with a leading axis more
    #[arg(long, value_name = "FILE", num_args = 1.., group = "banded")]
    pub(crate) shuffled: Vec<PathBuf>,
    /// Instead of REFERENCE: the sum of this array over its last axis, shuffled along it
    #[arg(long, value_name = "X", groups = ["computed", "banded"])]
    pub(crate) sum_of: Option<PathBuf>,
    /// Instead of REFERENCE: the product of these matrices, [.., M, K] and [.., K, N], shuffled
    /// along K
    #[arg(long, value_names = ["A", "B"], num_args = 2, groups = ["computed", "banded"])]
    pub(crate) matmul_of: Vec<PathBuf>,
    /// How many times to shuffle, from 4 to 4096
    #[arg(long, value_name = "N", default_value_t = BandOptions::default().shuffles)]
    #[arg(requires = "computed", value_parser = shuffles)]
    pub(crate) shuffles: u32,
    /// The seed of the shuffles
    #[arg(long, value_name = "N", default_value_t = BandOptions::default().seed)]
    #[arg(requires = "computed")]
    pub(crate) seed: u64,
    /// The format of the sums while terms are added: f16, bf16, f32 or f64
    #[arg(long, value_name = "FORMAT", value_parser = accumulator, default_value = "f32")]
    #[arg(requires = "computed")]
    pub(crate) accumulate: Format,
    /// How often a right candidate may fail for want of luck, over all of its elements together
    #[arg(long, value_name = "P", default_value_t = BandOptions::default().false_alarm)]
    #[arg(requires = "banded", value_parser = probability)]
    pub(crate) false_alarm: f64,
}

impl BandArguments {
    pub(super) fn are_computed(&self) -> bool {
        self.sum_of.is_some() || !self.matmul_of.is_empty()
    }

    fn options(&self) -> BandOptions {
        let BandArguments { shuffles, seed, false_alarm, .. } = *self;
        BandOptions { shuffles, seed, false_alarm }
    }
}

fn shuffles(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| (4..=4096).contains(count));
    count.ok_or_else(|| "take at least 4 shuffles, and at most 4096".to_owned())
}

fn probability(text: &str) -> Result<f64, String> {
    let part = text.parse().ok().filter(|part| *part > 0.0 && *part < 1.0);
    part.ok_or_else(|| "a part of all runs lies between 0 and 1, such as 1e-3".to_owned())
}

fn accumulator(name: &str) -> Result<Format, String> {
    let fits = [Format::F16, Format::Bf16, Format::F32, Format::F64];
    let found = format(name).ok().filter(|format| fits.contains(format));
    found.ok_or_else(|| "sums are taken in f16, bf16, f32 or f64".to_owned())
}

/// A reference that is computed here.
pub(super) struct Computed {
    inputs: Vec<Tensor>,
    is_product: bool,
    accumulate: Format,
    options: BandOptions,
    /// What it is, for a person.
    pub(super) shown: String,
}

impl Computed {
    /// Reads the inputs; `asked` is the format of bits whose file does not say it.
    pub(super) fn load(
        arguments: &BandArguments,
        asked: Option<Format>,
    ) -> Result<Computed, Failure> {
        let is_product = arguments.sum_of.is_none();
        let paths = arguments.sum_of.iter().chain(&arguments.matmul_of);
        let (mut inputs, mut names) = (Vec::new(), Vec::new());
        for path in paths {
            let input = Input::open(path)?;
            let name = &input.single(&[])?.name;
            let tensor = input
                .file
                .tensor(name, input.format_of(name, asked))
                .map_err(|error| Failure::request(unreadable(&input, name, &error)))?;
            inputs.push(tensor);
            names.push(input.shown);
        }
        let accumulate = arguments.accumulate;
        let shown = if is_product {
            format!("the product of {}, accumulated in {accumulate}", names.join(" and "))
        } else {
            format!("the sum of {} over its last axis, accumulated in {accumulate}", names.join(""))
        };
        Ok(Computed { inputs, is_product, accumulate, options: arguments.options(), shown })
    }

    fn run(&self, inputs: &[Tensor], output: Format) -> Result<Tensor, String> {
        match inputs {
            [a, b] if self.is_product => matmul((a, b), self.accumulate, output),
            [x, ..] => sum_last_dim(x, self.accumulate, output),
            [] => Err("there is no input".to_owned()),
        }
    }

    /// The shape of its output, where the inputs make one: known before anything is computed, which
    /// may take more memory than there is.
    fn shape(&self) -> Option<Vec<u64>> {
        match &self.inputs[..] {
            [a, b] if self.is_product => match (a.shape(), b.shape()) {
                ([outer @ .., m, k], [others @ .., rows, n])
                    if k == rows && (others.is_empty() || others == outer) =>
                {
                    Some([outer, &[*m, *n]].concat())
                }
                _ => None,
            },
            [x, ..] => x.shape().split_last().map(|(_, outer)| outer.to_vec()),
            [] => None,
        }
    }

    /// The output for the inputs as they are, in the candidate's format and, but for an axis of
    /// one element at the end of a sum, of its own shape.
    pub(super) fn plain(&self, (format, shape): (Format, &[u64])) -> Result<Tensor, String> {
        kept(self.run(&self.inputs, format)?, shape)
    }

    /// Holds a candidate against the bands, and draws where it lies in them if there is a title.
    pub(super) fn judge(
        &self,
        candidate: &Tensor,
        options: &Options,
        (title, there): (Option<&str>, &mut Option<There>),
    ) -> Result<(Comparison, Option<ErrorMap>), String> {
        let (format, shape) = (candidate.format(), candidate.shape());
        if let Some(own) = self.shape()
            && own != shape
            && shape.strip_suffix(&[1]) != Some(&own[..])
        {
            return Err(format!(
                "the reference, {}, has the shape {own:?}, and the candidate {shape:?}",
                self.shown
            ));
        }
        let plain = self.plain((format, shape))?;
        let held = u128::from(self.options.shuffles) * plain.bytes().len() as u128;
        if held > u128::from(MOST_HELD) {
            return Err(format!(
                "{} outputs take {held} bytes, more than the {MOST_HELD} that are held at a time; \
                 take fewer `--shuffles`, or files of outputs by `--shuffled`",
                self.options.shuffles
            ));
        }
        let bar = progress_bar(u64::from(self.options.shuffles) + 1);
        let mut reference = |inputs: &[Tensor]| {
            let output = kept(self.run(inputs, format)?, shape);
            bar.inc(1);
            output
        };
        let judged = self.banded(&mut reference, candidate, options, (title, there));
        bar.finish_and_clear();
        judged.map_err(|error| with_causes(&error))
    }

    fn banded(
        &self,
        reference: &mut Operation<'_>,
        candidate: &Tensor,
        options: &Options,
        (title, there): (Option<&str>, &mut Option<There>),
    ) -> Result<(Comparison, Option<ErrorMap>), CompareError> {
        let shuffle = if self.is_product { Shuffle::matmul_k() } else { Shuffle::last_dim() };
        let draw = |bands: &Bands| title.map(|title| bands.map(title, &candidate.view()));
        let Some(there) = there else {
            let bands = Bands::measure(reference, &self.inputs, &shuffle, &self.options)?;
            return Ok((bands.judge(&candidate.view(), options)?, draw(&bands)));
        };
        let comparison = there.compare_with_shuffles_of(
            (&mut *reference, &self.inputs),
            &mut candidate.clone(),
            &shuffle,
            (options, &self.options),
        )?;
        if title.is_none() {
            return Ok((comparison, None));
        }
        // A picture is drawn on the CPU.
        let bands = Bands::measure(reference, &self.inputs, &shuffle, &self.options)?;
        Ok((comparison, draw(&bands)))
    }
}

/// A sum whose last axis is kept with one element is the same sum.
fn kept(output: Tensor, shape: &[u64]) -> Result<Tensor, String> {
    match shape {
        [rest @ .., 1] if rest == output.shape() => {
            let bytes = output.bytes().to_vec();
            Tensor::new(output.format(), shape, bytes).map_err(|error| error.to_string())
        }
        _ => Ok(output),
    }
}

/// The outputs for shuffled inputs, one or more to a file.
pub(super) struct Shuffled {
    inputs: Vec<Input>,
    options: BandOptions,
}

impl Shuffled {
    pub(super) fn open(arguments: &BandArguments) -> Result<Shuffled, Failure> {
        let inputs = arguments.shuffled.iter().map(|path| Input::open(path));
        Ok(Shuffled { inputs: inputs.collect::<Result<_, _>>()?, options: arguments.options() })
    }

    /// Holds a candidate against the bands of one tensor. Where it is the only one that is
    /// compared, all arrays of a file are its outputs, else those of its name, alone or numbered.
    pub(super) fn judge(
        &self,
        reference: &mut dyn Source,
        candidate: &mut dyn Source,
        (name, is_only, asked): (&str, bool, Option<Format>),
        (options, there): (&Options, &mut Option<There>),
    ) -> Result<Comparison, String> {
        let mut outputs = self.outputs(reference.shape(), (name, is_only, asked))?;
        let bar = elements_bar(reference.shape());
        let mut progress = |done| bar.set_position(done);
        let options = (options, &self.options);
        let judged = match there {
            Some(there) => {
                let pair = (reference, candidate);
                there.compare_shuffled(pair, &mut outputs, options, &mut progress)
            }
            None => compare_shuffled(reference, candidate, &mut outputs, options, &mut progress),
        };
        bar.finish_and_clear();
        let mut comparison = judged.map_err(|error| with_causes(&error))?;
        let widest = comparison.band.as_ref().and_then(|band| band.widest_ulp);
        if widest.is_some_and(|ulp| ulp <= 0.5) {
            let note = "the shuffled outputs differ from each other by no more than their \
                        rounding: were the inputs shuffled?";
            comparison.notes.push(note.to_owned());
        }
        Ok(comparison)
    }

    /// Draws where a candidate lies in the bands of one tensor.
    pub(super) fn map(
        &self,
        title: &str,
        (reference, candidate): (&dyn Source, &mut dyn Source),
        of: (&str, bool, Option<Format>),
        options: &Options,
    ) -> Result<ErrorMap, String> {
        let mut outputs = self.outputs(reference.shape(), of)?;
        let options = (options, &self.options);
        shuffled_map(title, candidate, &mut outputs, options).map_err(|error| with_causes(&error))
    }

    /// The outputs of the tensor of that name, which has that shape.
    fn outputs(
        &self,
        shape: &[u64],
        (name, is_only, asked): (&str, bool, Option<Format>),
    ) -> Result<Vec<Box<dyn Source>>, String> {
        let mut outputs = Vec::new();
        for input in &self.inputs {
            let names = names(input, name, is_only);
            if names.is_empty() {
                return Err(format!("{} has no shuffled output of `{name}`", input.shown));
            }
            for name in names {
                outputs.extend(sources(input, &name, shape, asked)?);
            }
        }
        Ok(outputs)
    }

    pub(super) fn inputs(&self) -> &[Input] {
        &self.inputs
    }
}

/// The arrays of a file that are outputs of the tensor `of`.
fn names(input: &Input, of: &str, is_only: bool) -> Vec<String> {
    let all = input.entries();
    let named = |wanted: &dyn Fn(&str) -> bool| -> Vec<String> {
        all.iter().map(|entry| entry.name.clone()).filter(|name| wanted(name)).collect()
    };
    let numbered = |name: &str| {
        let rest = name.strip_prefix(of).unwrap_or("");
        let number = rest.trim_start_matches(['.', '_', '/', '-']);
        number.len() < rest.len() && !number.is_empty() && number.parse::<u64>().is_ok()
    };
    let same = named(&|name| name == of);
    if !same.is_empty() {
        return same;
    }
    let numbers = named(&numbered);
    if numbers.is_empty() && is_only { named(&|_| true) } else { numbers }
}

/// One array as the output of one shuffle, or, with an axis more, of several.
fn sources(
    input: &Input,
    name: &str,
    shape: &[u64],
    asked: Option<Format>,
) -> Result<Vec<Box<dyn Source>>, String> {
    let broken = |error| unreadable(input, name, &error);
    let format = input.format_of(name, asked);
    let source = input.file.source(name, format).map_err(broken)?;
    match source.shape() {
        own if own == shape => Ok(vec![source]),
        [_, rest @ ..] if rest == shape => input.file.slices(name, format).map_err(broken),
        own => Err(format!(
            "the shuffled output {} has the shape {own:?}, and the reference {shape:?}",
            if name.is_empty() { input.shown.clone() } else { format!("`{name}`") }
        )),
    }
}
