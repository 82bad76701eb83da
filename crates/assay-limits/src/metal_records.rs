//! What is recorded of Metal pipelines: how many threads each runs on each chip, for which there
//! is no formula. A file of records is JSON; `docs/limits.md` shows one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Digest, SourceText};

/// The schema of the files that this version reads and writes.
const SCHEMA: u32 = 1;

/// One pipeline on one chip.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MetalRecord {
    /// The pipeline's function, with its constants where it has some.
    pub pipeline: String,
    /// The most threads of a threadgroup.
    pub max_threads: MaxThreads,
    /// Threadgroup memory that the source declares, in bytes, where it is recorded.
    pub threadgroup_bytes: Option<u64>,
    /// Threads of a SIMD group, where it was read.
    pub execution_width: Option<u32>,
    /// True if the kernel uses the tensor operations of Metal 4.
    pub tensor_operations: bool,
}

/// The most threads of a threadgroup, or why it need not be known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaxThreads {
    /// A compile for the chip, or the pipeline on it, says so many.
    Compiled(u32),
    /// The launcher sizes its groups to the pipeline it made.
    SizedToPipeline,
    /// The source reserves so many (`[[max_total_threads_per_threadgroup(n)]]`).
    Reserved(u32),
    /// Nothing is recorded.
    Unknown,
}

/// A file of records.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetalRecords {
    schema: u32,
    /// What made the records: the tools and their versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tools: String,
    /// True if the chips themselves confirmed every record.
    #[serde(default)]
    pub verified_on_hardware: bool,
    /// The digest of every source that the pipelines were compiled from, by its path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, Digest>,
    /// The pipelines, by their names.
    pub pipelines: BTreeMap<String, MetalPipeline>,
}

/// What is recorded of one pipeline.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetalPipeline {
    /// Threadgroup memory that the source declares, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threadgroup_bytes: Option<u64>,
    /// Why its threads need no record, where that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exemption: Option<Exemption>,
    /// True if the kernel uses the tensor operations of Metal 4.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tensor_operations: bool,
    /// What a compile for each chip says, by the chip's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub chips: BTreeMap<String, MetalCompile>,
}

/// Why a pipeline's threads need no record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exemption {
    /// The launcher sizes its groups to the pipeline it made.
    SizedToPipeline,
    /// The source reserves so many threads.
    Reserved(u32),
}

/// What a compile of one pipeline for one chip says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetalCompile {
    /// The most threads of a threadgroup.
    pub max_threads: u32,
    /// Threadgroup memory in bytes, where it differs from what the source declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threadgroup_bytes: Option<u64>,
    /// Threads of a SIMD group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_width: Option<u32>,
}

/// What is wrong with a file of Metal records.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct MetalRecordsError {
    /// The file's name.
    pub file: String,
    /// What is wrong with it, and where.
    pub problem: String,
}

impl MetalRecords {
    /// Records of pipelines, which nothing has verified on hardware.
    pub fn new(tools: String, pipelines: BTreeMap<String, MetalPipeline>) -> MetalRecords {
        MetalRecords {
            schema: SCHEMA,
            tools,
            verified_on_hardware: false,
            sources: BTreeMap::new(),
            pipelines,
        }
    }

    /// Reads a file of records; `file` is its name in errors.
    ///
    /// # Errors
    /// If the text is no JSON of this schema, or a record says that no thread runs.
    pub fn parse(text: &str, file: &str) -> Result<MetalRecords, MetalRecordsError> {
        let wrong = |problem: String| MetalRecordsError { file: file.to_owned(), problem };
        let records: MetalRecords =
            serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if records.schema != SCHEMA {
            let schema = records.schema;
            return Err(wrong(format!("schema {schema}, where this version reads {SCHEMA}")));
        }
        for (name, pipeline) in &records.pipelines {
            let nothing = pipeline.chips.iter().find(|(_, compile)| compile.max_threads == 0);
            if let Some((chip, _)) = nothing {
                return Err(wrong(format!("pipeline `{name}`, chip `{chip}`: max_threads is 0")));
            }
            if pipeline.exemption == Some(Exemption::Reserved(0)) {
                return Err(wrong(format!("pipeline `{name}`: reserves 0 threads")));
            }
        }
        Ok(records)
    }

    /// The text that [`MetalRecords::parse`] reads.
    ///
    /// # Errors
    /// None: the keys are texts, and every value has a form in JSON.
    pub fn write(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// What is recorded of a pipeline on a chip; `None` if the file does not have the pipeline. A
    /// compile for the chip outweighs what the source reserves.
    pub fn get(&self, pipeline: &str, chip: &str) -> Option<MetalRecord> {
        let recorded = self.pipelines.get(pipeline)?;
        let compile = recorded.chips.get(chip);
        let max_threads = match (recorded.exemption, compile) {
            (Some(Exemption::SizedToPipeline), _) => MaxThreads::SizedToPipeline,
            (_, Some(compile)) => MaxThreads::Compiled(compile.max_threads),
            (Some(Exemption::Reserved(threads)), None) => MaxThreads::Reserved(threads),
            (None, None) => MaxThreads::Unknown,
        };
        let bytes = compile.and_then(|compile| compile.threadgroup_bytes);
        Some(MetalRecord {
            pipeline: pipeline.to_owned(),
            max_threads,
            threadgroup_bytes: bytes.or(recorded.threadgroup_bytes),
            execution_width: compile.and_then(|compile| compile.execution_width),
            tensor_operations: recorded.tensor_operations,
        })
    }

    /// A sentence for each source that is no longer what the records were made from. `read` gives
    /// a source's bytes as they are now, `None` if there is no such source.
    pub fn stale(&self, read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Vec<String> {
        let now = |path: &str| {
            let text = SourceText { path: path.to_owned(), text: read(path)? };
            Some(Digest::of(&[text], &[]))
        };
        let changed = self.sources.iter().filter(|(path, then)| now(path) != Some(**then));
        let sentence = |(path, _): (&String, &Digest)| {
            format!(
                "the records of `{path}` are stale, as it has changed since: make them again with \
                 `assay limits --offline` on a Mac"
            )
        };
        changed.map(sentence).collect()
    }
}
