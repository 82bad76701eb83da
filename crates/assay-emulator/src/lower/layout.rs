//! Where variables, parameters and register frames lie.
//!
//! Registers are addressed from the start of the warp's register file, and functions do not share
//! rows with their callers: a lane that waits in one function must find its registers as it left
//! them while another lane runs in the other. Kernels cannot call each other, so they all start at
//! row 0; device functions follow behind the largest kernel. A call that may recurse moves the
//! frame by a whole level.

use std::collections::HashMap;

use assay_ptx::Module;
use assay_ptx::module::{Function as Source, FunctionKind, Operand, Symbol, Variable};
use assay_ptx::opcode::{Base, StateSpace};

use super::Context;
use crate::program::{CompileError, ModuleVariable, ParameterLayout};

/// The largest variable that a module may declare.
const LARGEST_VARIABLE: u64 = 1 << 40;

/// The most that the frames of a module's functions take of local memory: far beyond what any
/// launch gets, and small enough for sums of 32 bits.
const LARGEST_FRAMES: u64 = 1 << 30;

/// Where a variable lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Home {
    /// `.global` or `.const`: index of a module variable.
    Memory(u32),
    /// `.shared`: offset in the block's shared memory.
    Shared(u32),
    /// `extern .shared` without a size: behind the static shared memory.
    DynamicShared,
    /// `.local`, and `.param` of calls: offset in the frame in local memory.
    Frame(u32),
    /// Not in memory that the emulator has.
    Nowhere,
}

/// Homes of all variables, and what functions need.
pub(crate) struct Layout {
    pub(crate) globals: Vec<Home>,
    pub(crate) locals: Vec<Vec<Home>>,
    /// Device functions: offsets of parameters and results in the frame.
    pub(crate) parameters: Vec<Vec<u32>>,
    pub(crate) returns: Vec<Vec<u32>>,
    pub(crate) shared: Vec<SharedLayout>,
    pub(crate) local_bytes: Vec<u32>,
    /// Where the local memory of each function starts in its level.
    pub(crate) local_base: Vec<u32>,
    pub(crate) level_local: u32,
    /// For each function, those that it can reach by calls, itself included.
    pub(crate) reachable: Vec<Vec<usize>>,
    /// For each function, those that it calls.
    pub(crate) recursive: HashMap<(usize, usize), bool>,
}

/// Bytes between two variables in shared memory that belong to neither.
const SHARED_RED_ZONE: u64 = 256;

/// Bytes in front of a block's variables that belong to the system, as on chips from `sm_80` on.
/// The addresses of variables are aligned behind them, not with them: one that asks for more than
/// these bytes is not at a multiple of what it asked for.
const SHARED_RESERVED: u64 = 1 << 10;

/// Where variables lie in a block's shared memory, with red zones between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedLayout {
    /// The first and the one-behind-last byte of each variable.
    pub(crate) ranges: Vec<(u32, u32)>,
    /// Bytes that the variables take on a chip, where there are no red zones.
    bytes: u64,
    /// What the variables of dynamic shared memory ask for.
    dynamic_alignment: u64,
}

impl SharedLayout {
    fn place(&mut self, variable: &Variable) -> Home {
        let (alignment, size) = (variable.alignment_bytes(), variable.size_bytes());
        let start = self.behind(alignment).min(u64::from(u32::MAX / 2));
        self.bytes = aligned(self.bytes, alignment).saturating_add(size).min(LARGEST_VARIABLE);
        let end = start.saturating_add(size).min(u64::from(u32::MAX / 2));
        self.ranges.push((start as u32, end as u32));
        Home::Shared(start as u32)
    }

    fn place_dynamic(&mut self, variable: &Variable) -> Home {
        self.dynamic_alignment = self.dynamic_alignment.max(variable.alignment_bytes());
        Home::DynamicShared
    }

    /// Where the next variable may start.
    fn behind(&self, alignment: u64) -> u64 {
        let end = self.ranges.last().map(|&(_, end)| u64::from(end) + SHARED_RED_ZONE);
        let behind_reserved = end.map_or(0, |end| end - SHARED_RESERVED);
        SHARED_RESERVED + aligned(behind_reserved, alignment)
    }

    /// Bytes that the variables take on a chip.
    pub(crate) fn static_bytes(&self) -> u32 {
        u32::try_from(self.bytes).unwrap_or(u32::MAX)
    }

    /// The layout with dynamic shared memory behind it, and where that starts.
    pub(crate) fn with_dynamic(&self, bytes: u32) -> (Vec<(u32, u32)>, u32) {
        let start = self.behind(self.dynamic_alignment.max(16)) as u32;
        let mut ranges = self.ranges.clone();
        if bytes > 0 {
            ranges.push((start, start.saturating_add(bytes)));
        }
        (ranges, start)
    }
}

fn aligned(offset: u64, alignment: u64) -> u64 {
    offset.next_multiple_of(alignment.max(1))
}

fn is_memory(variable: &Variable) -> bool {
    matches!(variable.space, StateSpace::Global | StateSpace::Const)
}

/// The variables in `.global` and `.const`: those of the module, then those inside functions.
pub(crate) fn variables(module: &Module) -> Result<Vec<ModuleVariable>, CompileError> {
    let inside = module.functions.iter().flat_map(|function| &function.locals);
    let all = module.globals.iter().chain(inside).filter(|variable| is_memory(variable));
    all.map(module_variable).collect()
}

fn module_variable(variable: &Variable) -> Result<ModuleVariable, CompileError> {
    let bytes = variable.size_bytes();
    if bytes > LARGEST_VARIABLE {
        let (name, line) = (variable.name.clone(), variable.position.line);
        return Err(CompileError::VariableTooLarge { name, line, bytes });
    }
    let initial = variable.initial.clone().unwrap_or_default();
    Ok(ModuleVariable {
        name: variable.name.clone(),
        bytes,
        alignment: variable.alignment_bytes(),
        constant: variable.space == StateSpace::Const,
        initial: initial.bytes,
        references: initial.references,
    })
}

/// Parameters one after another, as the CUDA driver packs them.
pub(crate) fn parameters(variables: &[Variable]) -> (Vec<ParameterLayout>, u32) {
    let mut end = 0;
    let mut layouts = Vec::new();
    for variable in variables {
        let alignment = variable.alignment_bytes();
        let offset = aligned(end, alignment);
        end = offset.saturating_add(variable.size_bytes()).min(u64::from(u32::MAX));
        layouts.push(ParameterLayout {
            offset: offset as u32,
            size: variable.size_bytes() as u32,
            alignment: alignment as u32,
        });
    }
    (layouts, end as u32)
}

impl Layout {
    pub(crate) fn new(module: &Module) -> Layout {
        let count = module.functions.len();
        let mut layout = Layout {
            globals: Vec::new(),
            locals: vec![Vec::new(); count],
            parameters: vec![Vec::new(); count],
            returns: vec![Vec::new(); count],
            shared: vec![SharedLayout::default(); count],
            local_bytes: vec![0; count],
            local_base: vec![0; count],
            level_local: 0,
            reachable: Vec::new(),
            recursive: HashMap::new(),
        };
        let mut memory = 0;
        let used = used_shared(module);
        let mut shared = layout.place_globals(module, &used, &mut memory);
        let device = |f: &&Source| f.kind != FunctionKind::Kernel;
        for (index, function) in module.functions.iter().enumerate().filter(|(_, f)| device(f)) {
            shared = layout.place_locals(index, function, shared, &mut memory);
        }
        layout.find_calls(module);
        for (index, function) in module.functions.iter().enumerate().filter(|(_, f)| !device(f)) {
            // A kernel that uses nothing of the module's shared memory starts at zero.
            let needs = layout.uses_module_shared(module, index, &used);
            let start = if needs { shared.clone() } else { SharedLayout::default() };
            let end = layout.place_locals(index, function, start, &mut memory);
            layout.shared[index] = end;
        }
        layout.place_local_memory(module);
        layout
    }

    fn place_globals(&mut self, module: &Module, used: &[bool], memory: &mut u32) -> SharedLayout {
        let mut shared = SharedLayout::default();
        for (variable, used) in module.globals.iter().zip(used) {
            let home = match variable.space {
                StateSpace::Global | StateSpace::Const => {
                    *memory += 1;
                    Home::Memory(*memory - 1)
                }
                space if space.is_shared() && variable.is_unsized() => {
                    shared.place_dynamic(variable)
                }
                space if space.is_shared() && *used => shared.place(variable),
                _ => Home::Nowhere,
            };
            self.globals.push(home);
        }
        shared
    }

    /// Places a function's own variables; returns where shared memory ends.
    fn place_locals(
        &mut self,
        index: usize,
        function: &Source,
        mut shared: SharedLayout,
        memory: &mut u32,
    ) -> SharedLayout {
        let mut local = 0;
        let mut frame = |variable: &Variable| {
            let offset = aligned(local, variable.alignment_bytes().max(8));
            local = offset.saturating_add(variable.size_bytes()).min(LARGEST_FRAMES);
            offset.min(LARGEST_FRAMES) as u32
        };
        if function.kind != FunctionKind::Kernel {
            self.parameters[index] = function.params.iter().map(&mut frame).collect();
            self.returns[index] = function.returns.iter().map(&mut frame).collect();
        }
        for variable in &function.locals {
            let home = match variable.space {
                StateSpace::Global | StateSpace::Const => {
                    *memory += 1;
                    Home::Memory(*memory - 1)
                }
                space if space.is_shared() && variable.is_unsized() => {
                    shared.place_dynamic(variable)
                }
                space if space.is_shared() => shared.place(variable),
                StateSpace::Local => Home::Frame(frame(variable)),
                space if space.is_param() => Home::Frame(frame(variable)),
                _ => Home::Nowhere,
            };
            self.locals[index].push(home);
        }
        self.local_bytes[index] = u32::try_from(aligned(local, 16)).unwrap_or(u32::MAX);
        shared
    }

    /// Kernels' frames start at zero, device functions' frames behind the largest of them.
    fn place_local_memory(&mut self, module: &Module) {
        let kernels = module.functions.iter().enumerate().filter(|(_, f)| f.is_kernel());
        let mut end = kernels.map(|(index, _)| self.local_bytes[index]).max().unwrap_or(0);
        for (index, function) in module.functions.iter().enumerate() {
            if !function.is_kernel() {
                self.local_base[index] = end;
                end = end.saturating_add(self.local_bytes[index]).min(LARGEST_FRAMES as u32);
            }
        }
        self.level_local = end;
    }

    fn find_calls(&mut self, module: &Module) {
        let calls: Vec<Vec<usize>> =
            module.functions.iter().map(|function| callees(module, function)).collect();
        self.reachable = (0..calls.len()).map(|start| reach(&calls, start)).collect();
        for (caller, callees) in calls.iter().enumerate() {
            for &callee in callees {
                let recursive = self.reachable[callee].contains(&caller);
                self.recursive.insert((caller, callee), recursive);
            }
        }
    }

    fn uses_module_shared(&self, module: &Module, kernel: usize, used: &[bool]) -> bool {
        let owns = |symbol: Symbol, function: usize| match symbol {
            Symbol::Global(index) => {
                let index = index as usize;
                module.globals[index].space.is_shared()
                    && used[index]
                    && !module.globals[index].is_unsized()
            }
            Symbol::Local(index) => {
                function != kernel
                    && module.functions[function].locals[index as usize].space.is_shared()
            }
            _ => false,
        };
        self.reachable[kernel].iter().any(|&function| {
            symbols(&module.functions[function]).into_iter().any(|symbol| owns(symbol, function))
        })
    }
}

fn used_shared(module: &Module) -> Vec<bool> {
    let mut used = vec![false; module.globals.len()];
    for function in &module.functions {
        for symbol in symbols(function) {
            if let Symbol::Global(index) = symbol {
                used[index as usize] = true;
            }
        }
    }
    used
}

/// All symbols that a body names.
fn symbols(function: &Source) -> Vec<Symbol> {
    let mut found = Vec::new();
    for instruction in &function.body {
        for operand in &instruction.operands {
            collect_symbols(operand, &mut found);
        }
    }
    found
}

fn collect_symbols(operand: &Operand, found: &mut Vec<Symbol>) {
    use assay_ptx::module::AddressBase::Variable;
    match operand {
        Operand::Symbol(symbol, _) => found.push(*symbol),
        Operand::Address(address) => {
            if let Variable(symbol) = address.base {
                found.push(symbol);
            }
        }
        Operand::Tensor(address, rest) => {
            collect_symbols(&Operand::Address(*address), found);
            for operand in rest {
                collect_symbols(operand, found);
            }
        }
        Operand::Vector(parts) | Operand::List(parts) => {
            for operand in parts {
                collect_symbols(operand, found);
            }
        }
        _ => {}
    }
}

/// The functions that a body calls; an indirect call may reach every function whose address is
/// taken.
fn callees(module: &Module, function: &Source) -> Vec<usize> {
    let mut found = Vec::new();
    let mut indirect = false;
    for instruction in function.body.iter().filter(|i| i.opcode.base == Base::Call) {
        match instruction.operands.get(1) {
            Some(Operand::Symbol(Symbol::Function(id), _)) => found.push(id.0 as usize),
            _ => indirect = true,
        }
    }
    if indirect {
        let bodies = module.functions.iter().enumerate();
        found
            .extend(bodies.filter(|(_, f)| f.kind == FunctionKind::Device).map(|(index, _)| index));
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn reach(calls: &[Vec<usize>], start: usize) -> Vec<usize> {
    let mut seen = vec![start];
    let mut next = 0;
    while next < seen.len() {
        for &callee in &calls[seen[next]] {
            if !seen.contains(&callee) {
                seen.push(callee);
            }
        }
        next += 1;
    }
    seen
}

/// Moves device functions' rows and predicates behind those of the kernels, and sums up what each
/// kernel needs.
pub(crate) fn place_frames(context: &mut Context<'_>) {
    let functions = &context.code.functions;
    let most = |count: fn(&crate::program::Function) -> u32| {
        functions.iter().filter(|f| f.kernel).map(count).max().unwrap_or(0)
    };
    let (mut rows, mut predicates) = (most(|f| f.rows), most(|f| f.predicates));
    let mut bases = Vec::new();
    for function in functions {
        if function.kernel {
            bases.push((0, 0));
        } else {
            bases.push((rows, predicates));
            rows += function.rows;
            predicates += function.predicates;
        }
    }
    context.code.level_rows = rows;
    context.code.level_predicates = predicates;
    context.code.level_local = context.layout.level_local;
    for (index, &(row, predicate)) in bases.iter().enumerate() {
        if !context.code.functions[index].kernel {
            super::body::relocate(&mut context.code, index, row, predicate as u16);
        }
    }
    for index in 0..bases.len() {
        let reachable = &context.layout.reachable[index];
        let unsupported =
            reachable.iter().filter_map(|&callee| context.code.functions[callee].unsupported).min();
        let own = context.code.functions[index].unsupported;
        let independent = super::independent::check(&context.code, reachable);
        let calls = reachable.len() > 1 || context.layout.recursive.contains_key(&(index, index));
        let code = &mut context.code;
        let function = &mut code.functions[index];
        function.unsupported = own.or(unsupported);
        function.calls = calls;
        function.independent = independent;
        if calls {
            function.rows = code.level_rows;
            function.predicates = code.level_predicates;
            function.local_bytes = code.level_local;
        }
    }
}
