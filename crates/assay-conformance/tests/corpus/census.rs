//! What was decoded, and what became of every kernel.

use std::collections::BTreeMap;
use std::fmt;

use assay_device::emulator::{EmulatorDevice, EmulatorOptions};
use assay_device::{Argument, Device, DeviceError, Image, Launch, ModuleId, StreamId};

use crate::case::Case;
use crate::compile::Ptx;

/// Instructions counted by opcode.
#[derive(Clone, Default, Debug)]
pub(crate) struct Census {
    /// Full opcodes as they are written, and how often.
    pub(crate) opcodes: BTreeMap<String, usize>,
    /// Their bases: `mma` of `mma.sync.aligned...`.
    pub(crate) bases: BTreeMap<&'static str, usize>,
}

impl Census {
    fn of(module: &assay_ptx::Module) -> Census {
        let mut census = Census::default();
        for instruction in module.functions.iter().flat_map(|function| &function.body) {
            *census.opcodes.entry(instruction.opcode.text.clone()).or_default() += 1;
            *census.bases.entry(instruction.opcode.base.name()).or_default() += 1;
        }
        census
    }

    /// Adds another census to this one.
    pub(crate) fn add(&mut self, other: &Census) {
        for (opcode, count) in &other.opcodes {
            *self.opcodes.entry(opcode.clone()).or_default() += count;
        }
        for (base, count) in &other.bases {
            *self.bases.entry(base).or_default() += count;
        }
    }

    pub(crate) fn instructions(&self) -> usize {
        self.bases.values().sum()
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (opcodes, bases) = (self.opcodes.len(), self.bases.len());
        write!(f, "{} instructions, {opcodes} opcodes, {bases} bases", self.instructions())
    }
}

/// What became of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// It ran and was right under every schedule.
    Right,
    /// The emulator takes it; no case calls it, for this reason.
    NotCalled(&'static str),
    /// The emulator refuses it, naming this.
    NotEmulated(String),
    /// It is not as expected.
    Wrong(String),
}

/// What is expected of kernels that have no case, or that do not run yet.
#[derive(Clone, Copy, Default)]
pub(crate) struct Expected {
    /// Kernels (by a part of their names) that no case calls, and why.
    pub(crate) not_called: &'static [(&'static str, &'static str)],
    /// Kernels that the emulator refuses, and the opcode that it names.
    pub(crate) not_emulated: &'static [(&'static str, &'static str)],
}

/// The census of one PTX text and the classes of its kernels.
pub(crate) struct Examined {
    pub(crate) name: String,
    pub(crate) census: Census,
    pub(crate) kernels: Vec<(String, Class)>,
    pub(crate) problems: Vec<String>,
}

/// Decodes a text, runs its cases, and holds every kernel against what is expected of it.
pub(crate) fn examine(ptx: &Ptx, cases: &[Case], expected: &Expected) -> Examined {
    let name = ptx.name.clone();
    let mut examined =
        Examined { name, census: Census::default(), kernels: Vec::new(), problems: Vec::new() };
    let module = match assay_ptx::parse(&ptx.text) {
        Ok(module) => module,
        Err(error) => {
            examined.problems.push(format!("{}: {error}", ptx.name));
            return examined;
        }
    };
    examined.census = Census::of(&module);
    let options = EmulatorOptions { architecture: ptx.architecture, ..EmulatorOptions::default() };
    let mut device = EmulatorDevice::new(options);
    let id = match device.load(&Image::ptx("corpus.ptx", &ptx.text)) {
        Ok(id) => id,
        Err(error) => {
            examined.problems.push(format!("{}: {error}", ptx.name));
            return examined;
        }
    };
    let kernels = module.functions.iter().filter(|function| function.is_kernel());
    let symbols: Vec<String> = kernels.map(|kernel| kernel.name.clone()).collect();
    let problems = stale(&symbols, cases, expected);
    examined.problems.extend(problems.into_iter().map(|what| format!("{}: {what}", ptx.name)));
    for symbol in &symbols {
        let class = class(&mut device, id, symbol, &symbols, cases, expected);
        if let Class::Wrong(reason) = &class {
            examined.problems.push(format!("{}: {symbol}: {reason}", ptx.name));
        }
        examined.kernels.push((symbol.clone(), class));
    }
    examined
}

/// The symbol that a case or a list means: the name itself, or the only one that contains it.
fn meant<'s>(symbols: &'s [String], name: &str) -> Option<&'s String> {
    let mut found = symbols.iter().filter(|symbol| symbol.contains(name));
    let exact = symbols.iter().find(|symbol| *symbol == name);
    exact.or_else(|| found.next().filter(|_| found.next().is_none()))
}

/// Names that mean no kernel.
fn stale(symbols: &[String], cases: &[Case], expected: &Expected) -> Vec<String> {
    let called = cases.iter().flat_map(Case::kernels);
    let listed = expected.not_called.iter().chain(expected.not_emulated).map(|(name, _)| *name);
    let names = called.chain(listed);
    let missing = names.filter(|name| meant(symbols, name).is_none());
    missing.map(|name| format!("{name} is not the name of one kernel")).collect()
}

fn class(
    device: &mut EmulatorDevice,
    module: ModuleId,
    symbol: &str,
    symbols: &[String],
    cases: &[Case],
    expected: &Expected,
) -> Class {
    let is_meant = |name: &str| meant(symbols, name).is_some_and(|found| found == symbol);
    let refused = expected.not_emulated.iter().find(|(name, _)| is_meant(name));
    let not_called = expected.not_called.iter().find(|(name, _)| is_meant(name));
    let resolve = |name| meant(symbols, name).cloned().unwrap_or_default();
    let mut class = Class::Wrong("no case calls it, and no list says why".to_string());
    for case in cases.iter().filter(|case| case.kernels().into_iter().any(is_meant)) {
        class = match case.run(device, module, resolve) {
            Ok(Ok(())) => Class::Right,
            Ok(Err(reason)) => Class::Wrong(reason),
            Err(DeviceError::Unsupported { what }) => Class::NotEmulated(what),
            Err(error) => Class::Wrong(error.to_string()),
        };
        if class != Class::Right {
            break;
        }
    }
    if let Some((_, reason)) = not_called {
        class = match class {
            Class::Right => Class::Wrong("a list says that no case calls it".to_string()),
            _ => lowered(device, module, symbol, reason),
        };
    }
    match (class, refused) {
        (Class::NotEmulated(what), Some((_, opcode))) if what.contains(opcode) => {
            Class::NotEmulated(what)
        }
        (Class::NotEmulated(what), _) => Class::Wrong(format!("not emulated: {what}")),
        (_, Some(_)) => Class::Wrong("a list says that it is not emulated".to_string()),
        (class, None) => class,
    }
}

/// Whether the emulator would run a kernel that nobody calls: it refuses one with an instruction
/// that it does not know before it starts, and ends the others soon, at null addresses or for lack
/// of a budget.
fn lowered(
    device: &mut EmulatorDevice,
    module: ModuleId,
    symbol: &str,
    reason: &'static str,
) -> Class {
    let facts = match device.kernel_facts(module, symbol) {
        Ok(facts) => facts,
        Err(error) => return Class::Wrong(error.to_string()),
    };
    let sizes = facts.parameter_sizes.unwrap_or_default();
    let arguments = sizes.into_iter().map(|size| Argument::Bytes(vec![0; size])).collect();
    let launch = Launch { arguments, instruction_budget: 1, ..Launch::new(module, symbol) };
    match device.launch(StreamId::DEFAULT, &launch) {
        Err(DeviceError::Unsupported { what }) => Class::NotEmulated(what),
        Ok(_) | Err(DeviceError::Fault(_)) => Class::NotCalled(reason),
        Err(error) => Class::Wrong(error.to_string()),
    }
}

impl Examined {
    /// The lines of the census: one for the text, one for each kernel that did not run.
    pub(crate) fn lines(&self) -> Vec<String> {
        let count = |is: fn(&Class) -> bool| self.kernels.iter().filter(|(_, c)| is(c)).count();
        let right = count(|class| *class == Class::Right);
        let not_called = count(|class| matches!(class, Class::NotCalled(_)));
        let refused = count(|class| matches!(class, Class::NotEmulated(_)));
        let mut lines = vec![format!(
            "CENSUS {}: {}; {} kernels: {right} ran and were right, {not_called} not called, \
             {refused} not emulated",
            self.name,
            self.census,
            self.kernels.len(),
        )];
        for (symbol, class) in &self.kernels {
            match class {
                Class::Right => {}
                Class::NotCalled(why) => lines.push(format!("    {symbol}: not called: {why}")),
                Class::NotEmulated(what) => {
                    lines.push(format!("    {symbol}: not emulated: {what}"));
                }
                Class::Wrong(what) => lines.push(format!("    {symbol}: WRONG: {what}")),
            }
        }
        lines
    }
}
