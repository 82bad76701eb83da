//! Conformance of the emulator to a real GPU, one small program for each form of an instruction.
//!
//! [`programs`] makes them from the decoder's own table; [`run`] runs them on any device with
//! operands that hold every special value of their types; a [`Record`] pins what an H200 gave, and
//! [`check`] holds a device against it. docs/conformance.md is the record as a [`page`].

mod bounds;
mod cluster;
mod known;
mod mbarrier;
mod memory;
mod outcome;
mod page;
mod program;
mod record;
mod run;
mod select;
mod sync;
mod tile_record;
mod tiles;
mod transfers;
mod values;
mod wgmma;
mod wmma;
mod writer;

pub use known::explanation;
pub use outcome::{Comparison, Example, canonical, compare, digest, worst};
pub use page::page;
pub use program::{Check, Program, programs};
pub use record::{Entry, Head, Record, RecordError, check, measure, settled};
pub use run::{KERNELS, Ran, module, run};
pub use tile_record::{TileEntry, TileRecord, check_tiles, judge_tiles, measure_tiles};
pub use tiles::{CHUNK_THREADS, Class, Content, Part, TileForm, chunk_digest, tile_forms};
pub use transfers::{Transfer, TransferEntry, transfer_digest, transfers};
pub use values::{Input, Limit, operands};
