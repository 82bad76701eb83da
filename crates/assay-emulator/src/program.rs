//! A lowered module: what [`Program::compile`] makes of a parsed one, once for all launches.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use assay_ptx::module::{Position, SourceLine};

use crate::execute::effect::Effect;
use crate::execute::frame::{Compute, Operands, PredicateSlot, Slot, host_is_wide};
use crate::lower;

/// What an instruction does once its guard is known.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// Only counts.
    Nothing,
    /// Computes in registers.
    Compute(Compute),
    /// Goes to another instruction.
    Jump(u32),
    /// Everything else.
    Effect(Effect),
}

/// A lowered instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    /// Runs in the lanes where this predicate, exclusive-ored with `flip`, is true.
    pub(crate) guard: PredicateSlot,
    /// All ones for a negated guard.
    pub(crate) flip: u32,
    pub(crate) action: Action,
    pub(crate) operands: Operands,
    /// Index into [`Code::places`].
    pub(crate) place: u32,
}

/// Where a lowered instruction comes from.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) position: Position,
    pub(crate) source: Option<SourceLine>,
    pub(crate) opcode: Arc<assay_ptx::opcode::Opcode>,
}

/// A constant operand; some are known only at launch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Constant {
    /// A 32-bit value.
    Bits32(u32),
    /// A 64-bit value.
    Bits64(u64),
    /// A kernel parameter's bytes: offset, size, whether to extend the sign; to 64 bits or to 32.
    Parameter {
        /// Byte offset in the parameters.
        offset: u32,
        /// Bytes.
        bytes: u8,
        /// Whether the sign extends.
        signed: bool,
        /// Whether the register has 64 bits.
        wide: bool,
    },
    /// The address of a module variable in `.global` or `.const`, plus an offset.
    Variable {
        /// Index of the variable.
        variable: u32,
        /// Bytes added.
        offset: i64,
        /// Whether the operand has 64 bits.
        wide: bool,
    },
    /// The start of dynamic shared memory, plus an offset.
    DynamicShared {
        /// Bytes added.
        offset: i64,
        /// Whether the operand has 64 bits.
        wide: bool,
    },
}

impl Constant {
    pub(crate) fn rows(self) -> usize {
        match self {
            Constant::Bits32(_) => 1,
            Constant::Bits64(_) => 2,
            Constant::Parameter { wide, .. }
            | Constant::Variable { wide, .. }
            | Constant::DynamicShared { wide, .. } => 1 + usize::from(wide),
        }
    }
}

/// A parameter of a kernel or device function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParameterLayout {
    /// Byte offset from the start of the parameters.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub alignment: u32,
}

/// What a kernel needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Resources {
    /// Static shared memory, in bytes.
    pub static_shared: u32,
    /// The most threads per block that `.maxntid` or `.reqntid` allow.
    pub max_threads: Option<u32>,
    /// The exact block that `.reqntid` demands.
    pub required_block: Option<[u32; 3]>,
    /// The exact cluster that `.reqnctapercluster` demands.
    pub required_cluster: Option<[u32; 3]>,
    /// The most blocks per cluster that `.maxclusterrank` allows.
    pub max_cluster_rank: Option<u32>,
    /// Whether `.explicitcluster` demands that a launch has clusters.
    pub explicit_cluster: bool,
    /// Whether `.blocksareclusters` has launches count their grid in clusters.
    pub blocks_are_clusters: bool,
    /// An estimate of the 32-bit registers per thread, from the live ranges of the PTX.
    pub registers: u32,
    /// Local memory per thread, in bytes.
    pub local_bytes: u32,
}

/// A lowered function.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) kernel: bool,
    pub(crate) entry: u32,
    pub(crate) resources: Resources,
    pub(crate) shared: lower::SharedLayout,
    pub(crate) parameters: Vec<ParameterLayout>,
    /// Bytes of all parameters.
    pub(crate) parameter_bytes: u32,
    /// Offsets of a device function's parameters and results in local memory.
    pub(crate) parameter_places: Vec<(u32, u32)>,
    pub(crate) return_places: Vec<(u32, u32)>,
    /// Rows, predicates and local bytes that a warp needs to run a kernel, calls included.
    pub(crate) rows: u32,
    pub(crate) predicates: u32,
    pub(crate) local_bytes: u32,
    /// Whether any call can be reached.
    pub(crate) calls: bool,
    /// Whether its blocks can only meet through plain loads and stores of global memory.
    pub(crate) independent: bool,
    /// The first unsupported instruction that can be reached.
    pub(crate) unsupported: Option<u32>,
}

/// A value moved at a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Carried {
    /// Local memory of the caller: offset and bytes.
    Memory(u32, u32),
    /// A register or constant of so many bytes.
    Register(Slot, u32),
    /// Nothing: a result thrown away.
    Nothing,
}

/// A `call` instruction.
#[derive(Clone, Debug)]
pub(crate) struct CallSite {
    pub(crate) callee: Callee,
    pub(crate) arguments: Vec<Carried>,
    pub(crate) results: Vec<Carried>,
}

/// Whom a call calls.
#[derive(Clone, Debug)]
pub(crate) enum Callee {
    /// A lowered function, and whether the call needs registers of its own because it may recurse.
    Function { index: u32, recursive: bool },
    /// A function that the emulator provides.
    BuiltIn(BuiltIn),
    /// A function address in a 64-bit register.
    Indirect(Slot),
}

/// Functions that the CUDA runtime provides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BuiltIn {
    /// `vprintf(format, arguments)`
    Vprintf,
    /// `__assertfail(message, file, line, function, character size)`
    AssertFail,
    /// `malloc(size)`
    Malloc,
    /// `free(address)`
    Free,
}

/// A variable of the module in `.global` or `.const`.
#[derive(Clone, Debug)]
pub(crate) struct ModuleVariable {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) alignment: u64,
    pub(crate) constant: bool,
    pub(crate) initial: Vec<u8>,
    pub(crate) references: Vec<assay_ptx::module::Reference>,
}

/// Everything that lowering makes of a module's bodies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub(crate) ops: Vec<Op>,
    pub(crate) places: Vec<Place>,
    pub(crate) constants: Vec<Constant>,
    pub(crate) lists: Vec<[Slot; 8]>,
    pub(crate) calls: Vec<CallSite>,
    pub(crate) branch_tables: Vec<Vec<u32>>,
    pub(crate) functions: Vec<Function>,
    pub(crate) by_name: HashMap<String, usize>,
    /// Rows and predicates that one level of recursion takes.
    pub(crate) level_rows: u32,
    pub(crate) level_predicates: u32,
    pub(crate) level_local: u32,
    /// Whether anything reads shared memory through the asynchronous proxy.
    pub(crate) async_reads: bool,
}

/// Why a module cannot be compiled.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// Addresses of another size than 64 bits.
    #[error("the module has {bits}-bit addresses; compile it for 64-bit addresses")]
    AddressSize {
        /// The size found.
        bits: u32,
    },
    /// A variable that cannot be laid out.
    #[error("line {line}: variable {name} takes {bytes} bytes, more than any memory has")]
    VariableTooLarge {
        /// The variable.
        name: String,
        /// Where it is declared.
        line: u32,
        /// Its size.
        bytes: u64,
    },
}

/// How to compile a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CompileOptions {
    /// Use the portable functions even where the host has AVX2 and FMA. Results are the same.
    pub portable: bool,
    /// Fuse bare `mul` and `add` pairs as ptxas may, chosen by this seed.
    pub contract_multiply_add: Option<u64>,
}

/// A compiled module. Cheap to clone; may be shared between machines and threads.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    /// Tells programs apart, so that a machine loads the variables of each once.
    pub(crate) id: u64,
    pub(crate) module: assay_ptx::Module,
    pub(crate) code: Code,
    pub(crate) wide: bool,
    pub(crate) variables: Vec<ModuleVariable>,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Program {
    /// Lowers a module.
    ///
    /// An opcode that the emulator does not run fails the launches that contain it, not this call.
    ///
    /// # Errors
    /// When the module as a whole cannot be run, such as one with 32-bit addresses.
    pub fn compile(module: &assay_ptx::Module) -> Result<Program, CompileError> {
        Program::compile_with(module, CompileOptions::default())
    }

    /// Lowers a module with options.
    ///
    /// # Errors
    /// As [`Program::compile`].
    pub fn compile_with(
        module: &assay_ptx::Module,
        options: CompileOptions,
    ) -> Result<Program, CompileError> {
        let wide = host_is_wide() && !options.portable;
        let variables = lower::variables(module)?;
        let code = lower::module(module, wide, options.contract_multiply_add)?;
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let module = module.clone();
        Ok(Program { inner: Arc::new(Inner { id, module, code, wide, variables }) })
    }

    /// The same program with fused multiplications and additions. It shares the variables of this
    /// one.
    pub(crate) fn recompiled(&self, seed: u64) -> Program {
        let module = self.inner.module.clone();
        // The module compiled before, so it compiles again.
        let code = lower::module(&module, self.inner.wide, Some(seed))
            .unwrap_or_else(|_| self.inner.code.clone());
        let (id, wide) = (self.inner.id, self.inner.wide);
        let variables = self.inner.variables.clone();
        Program { inner: Arc::new(Inner { id, module, code, wide, variables }) }
    }

    /// The kernels, in the order of the module.
    pub fn kernels(&self) -> Vec<&str> {
        let functions = self.inner.code.functions.iter();
        functions.filter(|function| function.kernel).map(|function| &*function.name).collect()
    }

    /// How a kernel's parameters are laid out, or `None` when the module has no such kernel.
    pub fn parameters(&self, symbol: &str) -> Option<&[ParameterLayout]> {
        self.function(symbol).map(|function| &*function.parameters)
    }

    /// Bytes of all parameters of a kernel.
    pub fn parameter_bytes(&self, symbol: &str) -> Option<u32> {
        self.function(symbol).map(|function| function.parameter_bytes)
    }

    /// What a kernel needs, or `None` when the module has no such kernel.
    pub fn resources(&self, symbol: &str) -> Option<Resources> {
        self.function(symbol).map(|function| function.resources)
    }

    /// The first instruction of a kernel that the emulator does not run: opcode and PTX line.
    pub fn unsupported(&self, symbol: &str) -> Option<(&str, u32)> {
        let pc = self.function(symbol)?.unsupported?;
        let place = &self.inner.code.places[self.inner.code.ops[pc as usize].place as usize];
        Some((&place.opcode.text, place.position.line))
    }

    /// The largest variable in shared memory that a kernel can name: its name and PTX line.
    pub fn largest_shared(&self, symbol: &str) -> Option<(&str, u32)> {
        let module = &self.inner.module;
        let sees = |function: &&assay_ptx::module::Function| {
            !function.is_kernel() || function.name == symbol
        };
        let own = module.functions.iter().filter(sees).flat_map(|function| &function.locals);
        let shared = module.globals.iter().chain(own).filter(|v| v.space.is_shared());
        let largest = shared.max_by_key(|variable| variable.size_bytes())?;
        Some((&largest.name, largest.position.line))
    }

    pub(crate) fn function(&self, symbol: &str) -> Option<&Function> {
        let index = *self.inner.code.by_name.get(symbol)?;
        Some(&self.inner.code.functions[index]).filter(|function| function.kernel)
    }
}
