//! The buffers of one run: allocated between guards, poisoned or filled, and looked over after.

use std::collections::BTreeMap;

use assay_device::{Allocation, BufferId, Device};

use crate::launcher::run_error;
use crate::layout::Layout;
use crate::spec::{ArgumentSpec, Role, Spec};
use crate::subject::{Change, RunError, RunRequest, RunResult};

/// Changed elements that a result lists per input.
const CHANGES_KEPT: usize = 4;

/// Every buffer of one run.
pub(crate) struct Memory {
    blocks: Vec<Block>,
    /// The block that each buffer argument lies in.
    homes: BTreeMap<String, usize>,
    outputs: Vec<(String, Layout, bool)>,
}

/// One allocation.
struct Block {
    argument: String,
    buffer: BufferId,
    layout: Layout,
    /// What the buffer held before the launches, if the kernel must leave it alone.
    kept: Option<Vec<u8>>,
}

impl Memory {
    /// Allocates and fills the buffers of `spec` for one run.
    pub(crate) fn allocate(
        device: &mut dyn Device,
        spec: &Spec,
        request: &RunRequest<'_>,
    ) -> Result<Memory, RunError> {
        let mut memory = Memory::empty();
        match memory.place_all(device, spec, request) {
            Ok(()) => Ok(memory),
            Err(error) => {
                // The first error is the one to report; freeing is only tidiness after it.
                let _ = memory.free(device);
                Err(error)
            }
        }
    }

    /// No buffer yet.
    pub(crate) fn empty() -> Memory {
        Memory { blocks: Vec::new(), homes: BTreeMap::new(), outputs: Vec::new() }
    }

    /// Takes over a buffer that somebody else allocated and filled.
    pub(crate) fn hold(&mut self, argument: &str, buffer: BufferId, layout: Layout) {
        self.homes.insert(argument.to_owned(), self.blocks.len());
        let argument = argument.to_owned();
        self.blocks.push(Block { argument, buffer, layout, kept: None });
    }

    /// Has an argument lie where another one does.
    pub(crate) fn alias(&mut self, argument: &str, other: &str) {
        if let Some(home) = self.homes.get(other).copied() {
            self.homes.insert(argument.to_owned(), home);
        }
    }

    /// The buffer that an argument lies in.
    pub(crate) fn buffer(&self, argument: &str) -> Option<BufferId> {
        self.homes.get(argument).map(|home| self.blocks[*home].buffer)
    }

    /// Gives everything back.
    pub(crate) fn free(self, device: &mut dyn Device) -> Result<(), RunError> {
        let mut result = Ok(());
        for block in self.blocks {
            let freed = device.free(block.buffer).map_err(|error| run_error(&error));
            result = result.and(freed);
        }
        result
    }

    fn place_all(
        &mut self,
        device: &mut dyn Device,
        spec: &Spec,
        request: &RunRequest<'_>,
    ) -> Result<(), RunError> {
        // Inputs come first, so that outputs placed in them find them.
        let buffers = spec.arguments.iter().filter(|argument| argument.role.is_buffer());
        let (outputs, others): (Vec<_>, Vec<_>) = buffers.partition(|a| a.role == Role::Out);
        for argument in others {
            self.place(device, argument, request)?;
        }
        for argument in outputs {
            let layout = Layout::of(argument, request.dims)?;
            let home = self.shared_home(spec, argument, request);
            if let Some(home) = home {
                self.share(argument, home, &layout)?;
            } else {
                self.place(device, argument, request)?;
            }
            let checks_gaps = home.is_none() && !argument.zeroed;
            self.outputs.push((argument.name.clone(), layout, checks_gaps));
        }
        Ok(())
    }

    /// The block of the input that an output is to overwrite in this run.
    fn shared_home(
        &self,
        spec: &Spec,
        output: &ArgumentSpec,
        request: &RunRequest<'_>,
    ) -> Option<usize> {
        let input = spec.argument(spec.in_place_of(&output.name)?)?;
        let shared = request.alias || input.role == Role::InOut;
        shared.then(|| self.homes.get(&input.name).copied()).flatten()
    }

    fn share(
        &mut self,
        output: &ArgumentSpec,
        home: usize,
        layout: &Layout,
    ) -> Result<(), RunError> {
        let block = &mut self.blocks[home];
        if layout.bytes > block.layout.bytes {
            return Err(RunError::request(format!(
                "output `{}` does not fit the buffer of `{}`, which it overwrites",
                output.name, block.argument
            )));
        }
        block.kept = None;
        self.homes.insert(output.name.clone(), home);
        Ok(())
    }

    fn place(
        &mut self,
        device: &mut dyn Device,
        argument: &ArgumentSpec,
        request: &RunRequest<'_>,
    ) -> Result<(), RunError> {
        let layout = Layout::of(argument, request.dims)?;
        let contents = contents(argument, &layout, request)?;
        let allocation = Allocation {
            bytes: layout.bytes as u64,
            misalign: misalign(argument, request.misalign),
            poison: request.poison,
        };
        let buffer = device.allocate(&allocation).map_err(|error| run_error(&error))?;
        self.homes.insert(argument.name.clone(), self.blocks.len());
        let kept = contents.clone().filter(|_| argument.role == Role::In);
        self.blocks.push(Block { argument: argument.name.clone(), buffer, layout, kept });
        if let Some(bytes) = contents {
            device.write(buffer, 0, &bytes).map_err(|error| run_error(&error))?;
        }
        Ok(())
    }

    /// The bytes of every output, without gaps between elements.
    pub(crate) fn outputs(
        &self,
        device: &mut dyn Device,
    ) -> Result<BTreeMap<String, Vec<u8>>, RunError> {
        let mut found = BTreeMap::new();
        for (name, layout, _) in &self.outputs {
            let block = &self.blocks[self.homes[name]];
            let bytes = read(device, block.buffer, layout.bytes)?;
            found.insert(name.clone(), layout.gather(&bytes));
        }
        Ok(found)
    }

    /// Reads outputs, and looks for changed inputs and for writes where none belong.
    pub(crate) fn collect(
        &self,
        device: &mut dyn Device,
        request: &RunRequest<'_>,
    ) -> Result<RunResult, RunError> {
        let mut result = RunResult::default();
        for (name, layout, checks_gaps) in &self.outputs {
            let block = &self.blocks[self.homes[name]];
            let bytes = read(device, block.buffer, layout.bytes)?;
            if *checks_gaps {
                note_gap(&mut result, name, layout, &bytes, request.poison);
            }
            result.outputs.insert(name.clone(), layout.gather(&bytes));
        }
        for block in &self.blocks {
            if let Some(kept) = &block.kept {
                let bytes = read(device, block.buffer, block.layout.bytes)?;
                compare(&mut result, block, kept, &bytes);
            }
            let damage = device.guard_damage(block.buffer).map_err(|error| run_error(&error))?;
            if let Some(damage) = damage {
                result.guard_damage.push((block.argument.clone(), damage.to_string()));
            }
        }
        Ok(result)
    }
}

/// What a buffer holds before the launches; `None` leaves the poison.
fn contents(
    argument: &ArgumentSpec,
    layout: &Layout,
    request: &RunRequest<'_>,
) -> Result<Option<Vec<u8>>, RunError> {
    if argument.zeroed {
        return Ok(Some(vec![0; layout.bytes]));
    }
    if !matches!(argument.role, Role::In | Role::InOut) {
        return Ok(None);
    }
    let values = request.inputs.tensors.get(&argument.name);
    let values = values.filter(|values| values.len() == layout.elements());
    let values = values.ok_or_else(|| RunError::Internal {
        message: format!(
            "the inputs hold no `{}` of {} elements",
            argument.name,
            layout.elements()
        ),
    })?;
    let dense = layout.format.encode_slice(values);
    Ok(Some(layout.scatter(&dense, request.poison)))
}

/// Bytes past full alignment for an alignment class: class 1 is what the caller just promises,
/// further classes are its multiples.
fn misalign(argument: &ArgumentSpec, class: u64) -> u64 {
    class.wrapping_mul(argument.align) % (Allocation::MAX_MISALIGN + 1)
}

fn read(device: &mut dyn Device, buffer: BufferId, bytes: usize) -> Result<Vec<u8>, RunError> {
    let mut read = vec![0; bytes];
    device.read(buffer, 0, &mut read).map_err(|error| run_error(&error))?;
    Ok(read)
}

fn note_gap(result: &mut RunResult, name: &str, layout: &Layout, bytes: &[u8], poison: u8) {
    if let Some(at) = layout.written_gap(bytes, poison) {
        let what = format!("byte {at}, between two elements, now holds {:#04x}", bytes[at]);
        result.guard_damage.push((name.to_owned(), what));
    }
}

fn compare(result: &mut RunResult, block: &Block, before: &[u8], after: &[u8]) {
    if before == after {
        return;
    }
    let layout = &block.layout;
    let (before, after) = (layout.gather(before), layout.gather(after));
    let changed = (0..layout.elements())
        .filter(|element| layout.bits(&before, *element) != layout.bits(&after, *element));
    let known = result.changed_inputs.len();
    for element in changed.take(CHANGES_KEPT) {
        result.changed_inputs.push(Change {
            tensor: block.argument.clone(),
            element: layout.index(element),
            before: layout.bits(&before, element),
            after: layout.bits(&after, element),
        });
    }
    if result.changed_inputs.len() == known {
        let what = "a byte between two elements changed".to_owned();
        result.guard_damage.push((block.argument.clone(), what));
    }
}
