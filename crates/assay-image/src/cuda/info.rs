//! The attributes that the assembler records: `.nv.info` of the whole image, and
//! `.nv.info.NAME` of each kernel.
//!
//! A record is a byte for its form, a byte for the attribute, and by the form either two bytes of
//! value, or two bytes of length and as many bytes of payload. Attributes that are not known here
//! are skipped, as there are some that even NVIDIA's own tools do not name.

use std::collections::HashMap;

use crate::bytes::{Bytes, Cursor};
use crate::error::ImageError;
use crate::facts::{CudaKernel, Parameter};

/// The most parameters that are kept of one kernel: CUDA allows 32,764 bytes of them.
const MOST_PARAMETERS: usize = 1 << 15;

/// The forms of a record.
const NO_VALUE: u8 = 1;
const BYTE_VALUE: u8 = 2;
const HALF_VALUE: u8 = 3;
const SIZED_VALUE: u8 = 4;

/// The attributes that are read, by the names that `cuobjdump -elf` prints.
mod attribute {
    pub(super) const MAX_THREADS: u8 = 0x05;
    pub(super) const REQNTID: u8 = 0x10;
    pub(super) const FRAME_SIZE: u8 = 0x11;
    pub(super) const MIN_STACK_SIZE: u8 = 0x12;
    pub(super) const KPARAM_INFO: u8 = 0x17;
    pub(super) const CBANK_PARAM_SIZE: u8 = 0x19;
    pub(super) const MAXREG_COUNT: u8 = 0x1b;
    pub(super) const REGCOUNT: u8 = 0x2f;
    pub(super) const CTA_PER_CLUSTER: u8 = 0x3d;
    pub(super) const KPARAM_INFO_V2: u8 = 0x45;
    pub(super) const NUM_BARRIERS: u8 = 0x4c;
}

/// `MAXREG_COUNT` of a kernel without a cap.
const NO_CAP: u32 = 0xff;
/// Where the size of a parameter starts in the third word of `KPARAM_INFO`.
const PACKED_SIZE: u32 = 18;
/// `MIN_STACK_SIZE` where calls may recurse.
const UNKNOWN_STACK: u32 = u32::MAX;

/// What `.nv.info` says of one function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct FunctionInfo {
    pub(crate) registers: Option<u32>,
    frame: u32,
    /// Its own frame and those of what it calls.
    stack: Option<u32>,
}

impl FunctionInfo {
    /// Bytes of stack: with those of what the function calls, where that is known.
    pub(crate) fn stack_bytes(&self) -> u32 {
        self.stack.filter(|stack| *stack != UNKNOWN_STACK).unwrap_or(self.frame)
    }
}

/// One record.
#[derive(Clone, Copy, Debug)]
struct Record<'a> {
    attribute: u8,
    value: u32,
    payload: Bytes<'a>,
}

impl<'a> Record<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Record<'a>, ImageError> {
        let at = cursor.place();
        let form = cursor.u8("attribute form")?;
        let attribute = cursor.u8("attribute")?;
        let value = cursor.u16("attribute value")?;
        let size = match form {
            NO_VALUE | BYTE_VALUE | HALF_VALUE => 0,
            SIZED_VALUE => value,
            other => {
                let detail = format!("is {other}; forms 1 to 4 are known");
                return Err(ImageError::malformed(at, "attribute form", detail));
            }
        };
        let value = if form == BYTE_VALUE { value & 0xff } else { value };
        let payload = cursor.take(size.into(), "attribute payload")?;
        Ok(Record { attribute, value: value.into(), payload })
    }

    fn words<const N: usize>(&self, field: &'static str) -> Result<[u32; N], ImageError> {
        let mut words = [0; N];
        for (index, word) in words.iter_mut().enumerate() {
            *word = self.payload.u32(4 * index as u64, field)?;
        }
        Ok(words)
    }
}

/// Reads `.nv.info`: what it says of each function, by the index of its symbol.
pub(crate) fn read_global(section: Bytes<'_>) -> Result<HashMap<u32, FunctionInfo>, ImageError> {
    let mut functions: HashMap<u32, FunctionInfo> = HashMap::new();
    let mut cursor = Cursor::new(section);
    while !cursor.is_at_end() {
        let record = Record::read(&mut cursor)?;
        let field = match record.attribute {
            attribute::REGCOUNT => "REGCOUNT",
            attribute::FRAME_SIZE => "FRAME_SIZE",
            attribute::MIN_STACK_SIZE => "MIN_STACK_SIZE",
            _ => continue,
        };
        let [symbol, value] = record.words(field)?;
        let function = functions.entry(symbol).or_default();
        match record.attribute {
            attribute::REGCOUNT => function.registers = Some(value),
            attribute::FRAME_SIZE => function.frame = value,
            _ => function.stack = Some(value),
        }
    }
    Ok(functions)
}

/// Reads `.nv.info.NAME` into what is known of that kernel. True if it says how many barriers the
/// kernel uses, which images of older assemblers do elsewhere.
pub(crate) fn read_of_kernel(
    section: Bytes<'_>,
    kernel: &mut CudaKernel,
) -> Result<bool, ImageError> {
    let mut cursor = Cursor::new(section);
    let mut parameters: Vec<(u32, Parameter)> = Vec::new();
    let mut counts_barriers = false;
    while !cursor.is_at_end() {
        let record = Record::read(&mut cursor)?;
        match record.attribute {
            attribute::MAX_THREADS => kernel.max_threads = Some(record.words("MAX_THREADS")?),
            attribute::REQNTID => kernel.required_threads = Some(record.words("REQNTID")?),
            attribute::CTA_PER_CLUSTER => kernel.cluster = Some(record.words("CTA_PER_CLUSTER")?),
            attribute::MAXREG_COUNT => {
                kernel.register_cap = Some(record.value).filter(|cap| *cap != NO_CAP);
            }
            attribute::NUM_BARRIERS => {
                kernel.barriers = barriers(&record)?;
                counts_barriers = true;
            }
            attribute::CBANK_PARAM_SIZE => kernel.parameter_bytes = record.value,
            attribute::KPARAM_INFO => parameters.push(parameter(&record, PACKED_SIZE)?),
            attribute::KPARAM_INFO_V2 => parameters.push(parameter(&record, 0)?),
            _ => {}
        }
        if parameters.len() > MOST_PARAMETERS {
            let detail = format!("lists more than {MOST_PARAMETERS} parameters");
            return Err(ImageError::too_large(cursor.place(), "KPARAM_INFO", detail));
        }
    }
    parameters.sort_by_key(|(ordinal, _)| *ordinal);
    kernel.parameters = parameters.into_iter().map(|(_, parameter)| parameter).collect();
    Ok(counts_barriers)
}

/// The count is a value of a byte; a sized form with the byte in its payload was seen too.
fn barriers(record: &Record<'_>) -> Result<u32, ImageError> {
    if record.payload.len() == 0 {
        return Ok(record.value);
    }
    record.payload.u8(0, "NUM_BARRIERS").map(u32::from)
}

/// The ordinal, the offset and the size of a parameter. The second form of the record, of kernels
/// with more than 4 KiB of parameters, has the size in a word of its own.
fn parameter(record: &Record<'_>, shift: u32) -> Result<(u32, Parameter), ImageError> {
    let [_, place, size] = record.words("KPARAM_INFO")?;
    Ok((place & 0xffff, Parameter { offset: place >> 16, size: size >> shift }))
}
