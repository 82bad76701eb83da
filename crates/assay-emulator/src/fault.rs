//! What can go wrong in a launch: one type for everything that stops a kernel.
//!
//! A fault is a value, never a panic: the machine stays usable after one, and says where in the
//! PTX text it happened, in which block and thread, and what to look at next.

use std::fmt;

/// A state space, as faults name it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Space {
    /// `.global`, and generic addresses outside every window.
    Global,
    /// `.shared`.
    Shared,
    /// `.local`.
    Local,
    /// `.const`.
    Const,
    /// `.param`.
    Param,
}

impl fmt::Display for Space {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Const => "const",
            Space::Param => "param",
        })
    }
}

/// The allocation nearest to a bad address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nearest {
    /// Its first address.
    pub start: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// How far the access starts from its first byte; negative in front of it.
    pub offset: i64,
    /// Whether it was freed.
    pub freed: bool,
}

impl fmt::Display for Nearest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.freed { "freed allocation" } else { "allocation" };
        let (start, bytes) = (self.start, self.bytes);
        write!(
            formatter,
            "{} of the {state} {start:#x} of {bytes} bytes",
            place(self.offset, bytes)
        )
    }
}

fn place(offset: i64, bytes: u64) -> String {
    match u64::try_from(offset) {
        Err(_) => format!("{} bytes before the start", offset.unsigned_abs()),
        Ok(inside) if inside < bytes => format!("at byte {inside}"),
        Ok(behind) => format!("{} bytes past the end", behind - bytes),
    }
}

/// One set of lanes that waits, in a deadlock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiter {
    /// The block.
    pub block: [u32; 3],
    /// The warp inside the block.
    pub warp: u32,
    /// The lanes that wait.
    pub lanes: u32,
    /// The PTX line that they wait at.
    pub line: u32,
    /// What they wait for.
    pub what: String,
}

impl fmt::Display for Waiter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.block;
        let (warp, lanes, line) = (self.warp, self.lanes, self.line);
        write!(formatter, "block ({x},{y},{z}) warp {warp} lanes {lanes:#010x} at line {line}: ")?;
        formatter.write_str(&self.what)
    }
}

/// The kinds of [`Fault`].
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access outside every allocation, or past the end of one.
    OutOfBounds {
        /// The space accessed.
        space: Space,
        /// The address, inside its space.
        address: u64,
        /// Bytes accessed by the lane.
        bytes: u32,
        /// Whether it was a write.
        write: bool,
        /// The nearest allocation, if any.
        nearest: Option<Nearest>,
    },
    /// An address that is not a multiple of the access size.
    Misaligned {
        /// The space accessed.
        space: Space,
        /// The address, inside its space.
        address: u64,
        /// The alignment needed.
        bytes: u32,
    },
    /// A write to `.const` or `.param`.
    ReadOnlyWrite {
        /// The space.
        space: Space,
        /// The address.
        address: u64,
    },
    /// Nothing can run any more, and not all threads have exited.
    Deadlock {
        /// Who waits where.
        waiting: Vec<Waiter>,
    },
    /// A barrier used against its rules.
    BarrierMisuse {
        /// What the rule is and how it was broken.
        what: String,
    },
    /// A bulk copy or a tensor map used against its rules.
    CopyMisuse {
        /// What the rule is and how it was broken.
        what: String,
    },
    /// Shared memory of another block of the cluster, or the cluster's barrier, used against its
    /// rules.
    ClusterMisuse {
        /// What the rule is and how it was broken.
        what: String,
    },
    /// `shfl` (or another warp operation) reading a lane that does not take part.
    InactiveLaneRead {
        /// The instruction.
        opcode: String,
        /// The lane read.
        lane: u32,
    },
    /// A warp operation used against its rules, such as a member mask without the caller.
    WarpMisuse {
        /// What the rule is and how it was broken.
        what: String,
    },
    /// The launch ran longer than its instruction budget.
    Runaway {
        /// The budget, in warp instructions.
        budget: u64,
        /// Where the warps of the running block are: PTX lines, each with the warps at it.
        lines: Vec<(u32, u32)>,
    },
    /// The kernel executed `trap` (or `brkpt`).
    Trap,
    /// A device-side assertion failed.
    Assertion {
        /// The message, as the CUDA runtime prints it.
        message: String,
    },
    /// The emulator does not run this opcode: a limit of the emulator, not a defect of the kernel.
    Unsupported {
        /// The opcode, as written.
        opcode: String,
    },
    /// The launch itself is wrong.
    InvalidLaunch {
        /// Why, and what to do.
        reason: String,
    },
    /// The module has no such kernel.
    SymbolNotFound {
        /// The kernels it has.
        available: Vec<String>,
    },
    /// Calls nest too deeply, or take too much memory.
    StackOverflow {
        /// The depth reached.
        depth: u32,
        /// Bytes that a thread's stack would take: its frames and the registers that calls save,
        /// or for `alloca` what was allocated.
        bytes: u64,
    },
    /// An address that belongs to no space, such as a null pointer or a call to nowhere.
    InvalidAddress {
        /// The address.
        address: u64,
    },
    /// A defect of the emulator itself.
    Internal {
        /// What was found.
        what: String,
    },
}

/// What stopped a launch, and where.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    /// What happened.
    pub kind: FaultKind,
    /// The kernel launched.
    pub symbol: String,
    /// The PTX line; `None` when no instruction is to blame.
    pub line: Option<u32>,
    /// The line of the source language, when the PTX carries `.loc`: file and line.
    pub source: Option<(String, u32)>,
    /// The opcode at that line, as written.
    pub opcode: Option<String>,
    /// The block.
    pub block: [u32; 3],
    /// The first thread to blame.
    pub thread: [u32; 3],
    /// What the kernel had printed until then.
    pub output: String,
}

impl Fault {
    /// A fault of the launch as a whole, with no place in the kernel.
    pub fn of_launch(kind: FaultKind, symbol: &str) -> Fault {
        let symbol = symbol.to_owned();
        let (block, thread) = ([0; 3], [0; 3]);
        let output = String::new();
        Fault { kind, symbol, line: None, source: None, opcode: None, block, thread, output }
    }

    /// Whether the emulator, rather than the kernel, is the limit.
    pub fn is_unsupported(&self) -> bool {
        matches!(self.kind, FaultKind::Unsupported { .. })
    }

    /// What to do next.
    pub fn hint(&self) -> &'static str {
        self.kind.hint()
    }
}

impl FaultKind {
    fn hint(&self) -> &'static str {
        match self {
            FaultKind::OutOfBounds { .. } => {
                "check the index against the shape, and the tail of the last block"
            }
            FaultKind::Misaligned { .. } => {
                "vector accesses need base pointer and row stride to be multiples of their size"
            }
            FaultKind::ReadOnlyWrite { .. } => "write to global, shared or local memory instead",
            FaultKind::Deadlock { .. } => "every thread that a barrier counts must reach it",
            FaultKind::BarrierMisuse { .. } => {
                "move the barrier out of divergent code, so that all threads reach the same one"
            }
            FaultKind::CopyMisuse { .. } => "check sizes, strides and the tensor map's fields",
            FaultKind::ClusterMisuse { .. } => {
                "put a cluster barrier before the first and behind the last use of other blocks' \
                 shared memory"
            }
            FaultKind::InactiveLaneRead { .. } | FaultKind::WarpMisuse { .. } => {
                "all lanes of the member mask must reach the instruction, and name only each other"
            }
            FaultKind::Runaway { .. } => {
                "look for a loop that does not end, or raise the instruction budget"
            }
            FaultKind::Trap | FaultKind::Assertion { .. } => {
                "the kernel itself reports a broken assumption"
            }
            FaultKind::Unsupported { .. } => "run this kernel on a GPU",
            FaultKind::InvalidLaunch { .. } => "correct the launch",
            FaultKind::SymbolNotFound { .. } => "name one of the kernels of the module",
            FaultKind::StackOverflow { .. } => "bound the recursion, or make its frames smaller",
            FaultKind::InvalidAddress { .. } => "check the pointer arguments",
            FaultKind::Internal { .. } => "please report this as a defect of the emulator",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::OutOfBounds { space, address, bytes, write, nearest } => {
                let verb = if *write { "write" } else { "read" };
                write!(formatter, "out-of-bounds {verb} of {bytes} bytes at {space} {address:#x}")?;
                nearest.iter().try_for_each(|nearest| write!(formatter, ", {nearest}"))
            }
            FaultKind::Misaligned { space, address, bytes } => {
                write!(formatter, "misaligned {space} address {address:#x} for {bytes} bytes")
            }
            FaultKind::ReadOnlyWrite { space, address } => {
                write!(formatter, "write to read-only {space} memory at {address:#x}")
            }
            FaultKind::Deadlock { waiting } => write_deadlock(formatter, waiting),
            FaultKind::BarrierMisuse { what }
            | FaultKind::CopyMisuse { what }
            | FaultKind::ClusterMisuse { what }
            | FaultKind::WarpMisuse { what } => formatter.write_str(what),
            FaultKind::InactiveLaneRead { opcode, lane } => {
                write!(formatter, "{opcode} reads lane {lane}, which does not take part")
            }
            FaultKind::Runaway { budget, lines } => {
                write!(formatter, "still running after {budget} warp instructions")?;
                write_lines(formatter, lines)
            }
            FaultKind::Trap => formatter.write_str("trap"),
            FaultKind::Assertion { message } => formatter.write_str(message),
            FaultKind::Unsupported { opcode } => {
                write!(formatter, "the emulator does not support {opcode}")
            }
            FaultKind::InvalidLaunch { reason } => write!(formatter, "invalid launch: {reason}"),
            FaultKind::SymbolNotFound { available } => {
                write!(formatter, "no such kernel; the module has: {}", available.join(", "))
            }
            FaultKind::StackOverflow { depth, bytes } => {
                let stack = format_args!("{bytes} bytes of stack a thread");
                write!(formatter, "stack overflow: calls nest {depth} deep, with {stack}")
            }
            FaultKind::InvalidAddress { address } => {
                write!(formatter, "invalid address {address:#x}")
            }
            FaultKind::Internal { what } => write!(formatter, "emulator defect: {what}"),
        }
    }
}

/// `: 2 warps at line 40, 1 at line 52`
fn write_lines(formatter: &mut fmt::Formatter<'_>, lines: &[(u32, u32)]) -> fmt::Result {
    for (index, (line, warps)) in lines.iter().take(4).enumerate() {
        let lead = if index == 0 { ": " } else { ", " };
        let noun = match (index, warps) {
            (0, 1) => " warp",
            (0, _) => " warps",
            _ => "",
        };
        write!(formatter, "{lead}{warps}{noun} at line {line}")?;
    }
    Ok(())
}

fn write_deadlock(formatter: &mut fmt::Formatter<'_>, waiting: &[Waiter]) -> fmt::Result {
    formatter.write_str("deadlock")?;
    for (index, waiter) in waiting.iter().take(4).enumerate() {
        write!(formatter, "{} {waiter}", if index == 0 { ":" } else { ";" })?;
    }
    if waiting.len() > 4 {
        write!(formatter, "; and {} more", waiting.len() - 4)?;
    }
    Ok(())
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.symbol, self.kind)?;
        if let Some(line) = self.line {
            write!(formatter, " (PTX line {line}")?;
            if let Some((file, line)) = &self.source {
                write!(formatter, ", {file}:{line}")?;
            }
            let ([a, b, c], [x, y, z]) = (self.block, self.thread);
            write!(formatter, ", block ({a},{b},{c}), thread ({x},{y},{z}))")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}
