//! Atomics from one address for all threads to one for each.

use assay_device::{Argument, BufferId, Device, Launch, ModuleId};

use super::ProbeError;
use super::products::read_words;
use super::span::{SPAN_BYTES, Spans, launch};

/// What is done to a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Atomic {
    /// Adds a float, and takes no answer.
    AddF32,
    /// Adds an integer, and takes no answer.
    AddU32,
    /// Compares and swaps, with the answer.
    Cas,
}

impl Atomic {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Atomic::AddF32 => "atomic_add_f32",
            Atomic::AddU32 => "atomic_add_u32",
            Atomic::Cas => "atomic_cas",
        }
    }
}

/// A field of words and the threads that work on it.
pub(crate) struct Field {
    module: ModuleId,
    blocks: u32,
    threads: u32,
    words: BufferId,
    won: BufferId,
    spans: BufferId,
}

impl Field {
    pub(crate) fn new(
        device: &mut dyn Device,
        module: ModuleId,
        blocks: u32,
        threads: u32,
    ) -> Result<Field, ProbeError> {
        let all = u64::from(blocks) * u64::from(threads);
        Ok(Field {
            module,
            blocks,
            threads,
            words: device.allocate_bare(4 * all)?,
            won: device.allocate_bare(4 * all)?,
            spans: device.allocate_bare(u64::from(blocks) * SPAN_BYTES)?,
        })
    }

    /// Threads, and so the most addresses.
    pub(crate) fn all(&self) -> u32 {
        self.blocks * self.threads
    }

    /// Runs `steps` operations of every thread on fresh words.
    pub(crate) fn run(
        &self,
        device: &mut dyn Device,
        atomic: Atomic,
        addresses: u32,
        steps: u32,
    ) -> Result<Spans, ProbeError> {
        device.write(self.words, 0, &vec![0; 4 * addresses as usize])?;
        let mut arguments = vec![Argument::Buffer(self.words), Argument::Buffer(self.spans)];
        if atomic == Atomic::Cas {
            arguments.push(Argument::Buffer(self.won));
        }
        arguments.extend([Argument::u32(addresses), Argument::u32(steps)]);
        let kernel = Launch {
            grid: [self.blocks, 1, 1],
            block: [self.threads, 1, 1],
            arguments,
            ..Launch::new(self.module, atomic.symbol())
        };
        launch(device, &kernel, self.spans)
    }

    /// Looks at every word of the last run.
    ///
    /// # Errors
    /// [`ProbeError::Wrong`] with the first word that does not hold what was added to it.
    pub(crate) fn verify(
        &self,
        device: &mut dyn Device,
        atomic: Atomic,
        addresses: u32,
        steps: u32,
    ) -> Result<(), ProbeError> {
        let won = match atomic {
            Atomic::Cas => read_words(device, self.won, self.all() as usize)?,
            _ => vec![steps; self.all() as usize],
        };
        let mut expected = vec![0u64; addresses as usize];
        for (thread, won) in won.iter().enumerate() {
            expected[thread % addresses as usize] += u64::from(*won);
        }
        let found = read_words(device, self.words, addresses as usize)?;
        for (word, (found, expected)) in found.into_iter().zip(expected).enumerate() {
            let found = match atomic {
                Atomic::AddF32 => f64::from(f32::from_bits(found)),
                _ => f64::from(found),
            };
            if found != expected as f64 {
                return Err(ProbeError::Wrong(format!(
                    "{}: word {word} of {addresses} holds {found} and not {expected}",
                    atomic.symbol()
                )));
            }
        }
        Ok(())
    }

    /// Loses an operation of the last run.
    #[cfg(test)]
    pub(crate) fn spoil(&self, device: &mut dyn Device) -> Result<(), ProbeError> {
        Ok(device.write(self.words, 0, &[0; 4])?)
    }

    pub(crate) fn free(self, device: &mut dyn Device) -> Result<(), ProbeError> {
        for buffer in [self.words, self.won, self.spans] {
            device.free(buffer)?;
        }
        Ok(())
    }
}
