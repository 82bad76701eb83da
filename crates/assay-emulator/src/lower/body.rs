//! Lowers one function: registers to slots, operands to slots, instructions to ops.

use assay_ptx::control_flow::Graph;
use assay_ptx::liveness::{Allocation, Class, Liveness};
use assay_ptx::module::{
    Address, AddressBase, Function as Source, Instruction, Operand, RegisterId, Symbol,
};
use assay_ptx::opcode::Base;

use super::family::Family;
use super::layout::{Home, parameters};
use super::{
    Context, arithmetic, bulk, cluster, constants, control, convert, float, matrix, mbarrier,
    memory, video, warp, wgmma, wide, wmma,
};
use crate::execute::effect::Effect;
use crate::execute::frame::{
    ALWAYS, CONSTANT, Compute, DISCARDED, FIRST_PREDICATE, Lane, Operands, PredicateSlot, Slot,
};
use crate::program::{Action, Code, Constant, Function, Op, Place, Resources};

/// The emulator does not run this instruction.
pub(crate) struct Unsupported;

/// What lowering an instruction gives.
pub(crate) type Lowered<T = ()> = Result<T, Unsupported>;

/// The state of lowering one function.
pub(crate) struct Body<'c, 'm> {
    pub(crate) context: &'c mut Context<'m>,
    pub(crate) source: &'m Source,
    pub(crate) index: usize,
    /// The slot of each register: a row, a predicate, or a constant.
    slots: Vec<Slot>,
    /// Whether each instruction only makes a register a constant, which it is already.
    known: Vec<bool>,
    /// Rows of registers; rows with those for temporaries; and how many rows an instruction takes
    /// at once, which is what a thread would.
    register_rows: u32,
    most_rows: u32,
    needed_rows: u32,
    temporaries: Temporaries,
    next_predicate: PredicateSlot,
    /// The carry bit of this function.
    pub(crate) carry: PredicateSlot,
    guard: PredicateSlot,
    flip: u32,
    place: u32,
    /// The first op of each instruction.
    starts: Vec<u32>,
    unsupported: Option<u32>,
}

impl<'c, 'm> Body<'c, 'm> {
    /// Lowers function `index` of the module.
    pub(crate) fn lower(context: &'c mut Context<'m>, index: usize) -> Function {
        let source = &context.module.functions[index];
        let mut body = Body {
            context,
            source,
            index,
            slots: Vec::new(),
            known: Vec::new(),
            register_rows: 0,
            most_rows: 0,
            needed_rows: 0,
            temporaries: Temporaries::default(),
            next_predicate: FIRST_PREDICATE + 1,
            carry: FIRST_PREDICATE,
            guard: ALWAYS,
            flip: 0,
            place: 0,
            starts: Vec::new(),
            unsupported: None,
        };
        body.assign_slots();
        let entry = body.context.code.ops.len() as u32;
        body.instructions();
        body.patch_jumps(entry);
        body.finish(entry)
    }

    /// Gives every register a slot; registers that are never needed at once share one.
    ///
    /// Slots of different widths are never shared: a lane's place inside a slot depends on the
    /// width, and lanes that wait elsewhere keep theirs.
    fn assign_slots(&mut self) {
        let graph = Graph::of(self.source);
        let liveness = Liveness::of(self.source, &graph);
        let allocation = Allocation::of(self.source, &liveness);
        // Contraction reads a product's operands later than the product did.
        let shared = self.context.contract.is_none();
        let mut rows_so_far = 0;
        let mut starts = [0; Class::ALL.len()];
        for class in Class::ALL {
            let first =
                if class == Class::Predicate { self.next_predicate.into() } else { rows_so_far };
            starts[class as usize] = first;
            let slots = if shared { allocation.count(class) } else { count_of(self.source, class) };
            match class {
                Class::Predicate => self.next_predicate += slots as PredicateSlot,
                Class::Bits16 | Class::Bits32 => rows_so_far += slots,
                Class::Bits64 => rows_so_far += 2 * slots,
                Class::Bits128 => rows_so_far += 4 * slots,
            }
        }
        let mut seen = [0; Class::ALL.len()];
        for (number, register) in self.source.registers.iter().enumerate() {
            let class = Class::of(register.ty);
            let own = &mut seen[class as usize];
            let slot = if shared { allocation.slots[number] } else { *own };
            *own += 1;
            let rows = match class {
                Class::Bits64 => 2,
                Class::Bits128 => 4,
                _ => 1,
            };
            self.slots.push(starts[class as usize] + rows * slot);
        }
        self.register_rows = rows_so_far;
        self.most_rows = rows_so_far;
        self.needed_rows = rows_so_far;
        self.known = vec![false; self.source.body.len()];
        if shared {
            self.find_constants(&constants::written_once(self.source, &liveness));
        }
    }

    /// Has registers that are constants of the launch read from there.
    fn find_constants(&mut self, written_once: &[bool]) {
        for (number, instruction) in self.source.body.iter().enumerate() {
            let found = constants::constant_of(self, instruction);
            if let Some((id, slot)) = found.filter(|(id, _)| written_once[id.index()]) {
                self.slots[id.index()] = slot;
                self.known[number] = true;
            }
        }
    }

    fn instructions(&mut self) {
        for (number, instruction) in self.source.body.iter().enumerate() {
            self.starts.push(self.context.code.ops.len() as u32);
            self.temporaries.used = [0; 3];
            self.begin(instruction);
            if self.instruction(number, instruction).is_err() {
                let pc = self.context.code.ops.len() as u32;
                self.unsupported = self.unsupported.or(Some(pc));
                self.effect(Effect::Unsupported, Operands::default());
            }
        }
        self.starts.push(self.context.code.ops.len() as u32);
        // Falling off the end returns.
        self.guard = ALWAYS;
        self.flip = 0;
        if self.source.body.is_empty() {
            self.context.code.places.push(Place {
                position: self.source.position,
                source: None,
                opcode: nothing(),
            });
            self.place = self.context.code.places.len() as u32 - 1;
        }
        let end = if self.source.is_kernel() { Effect::Exit } else { Effect::Return };
        self.effect(end, Operands::default());
    }

    fn begin(&mut self, instruction: &Instruction) {
        self.place = self.context.code.places.len() as u32;
        self.context.code.places.push(Place {
            position: instruction.position,
            source: instruction.source,
            opcode: instruction.opcode.clone(),
        });
        (self.guard, self.flip) = match instruction.guard {
            None => (ALWAYS, 0),
            Some(guard) => (self.predicate_of(guard.register), if guard.negated { !0 } else { 0 }),
        };
    }

    fn instruction(&mut self, number: usize, i: &'m Instruction) -> Lowered {
        if self.known[number] {
            self.emit(Action::Nothing, Operands::default());
            return Ok(());
        }
        if wide::is_wide(i) {
            return wide::lower(self, i);
        }
        match Family::of(i.opcode.base) {
            Family::Arithmetic => arithmetic::lower(self, i),
            Family::Float => float::lower(self, number, i),
            Family::Convert => convert::lower(self, i),
            Family::Memory => memory::lower(self, i),
            Family::Control => control::lower(self, i),
            Family::Warp => warp::lower(self, i),
            Family::Matrix => matrix::lower(self, i),
            Family::Tile => wmma::lower(self, i),
            Family::Warpgroup => wgmma::lower(self, i),
            Family::Mbarrier => mbarrier::lower(self, i),
            Family::Bulk => bulk::lower(self, i),
            Family::Cluster => cluster::lower(self, i),
            Family::Video => video::lower(self, i),
            Family::Nothing => Ok(()),
            Family::Unsupported => Err(Unsupported),
        }
    }

    fn patch_jumps(&mut self, entry: u32) {
        let starts = &self.starts;
        for op in &mut self.context.code.ops[entry as usize..] {
            if let Action::Jump(target) = &mut op.action {
                *target = starts[*target as usize];
            }
        }
        for table in control::tables_of(&mut self.context.code, &self.context.tables, self.index) {
            for target in table {
                *target = starts[*target as usize];
            }
        }
    }

    fn finish(self, entry: u32) -> Function {
        let layout = &self.context.layout;
        let source = self.source;
        let base = layout.local_base[self.index];
        let places = |offsets: &[u32], variables: &[assay_ptx::module::Variable]| {
            let sizes = variables.iter().map(|variable| variable.size_bytes() as u32);
            offsets.iter().map(|offset| offset + base).zip(sizes).collect::<Vec<_>>()
        };
        let (layouts, bytes) = parameters(&source.params);
        let local_bytes = layout.local_bytes[self.index];
        Function {
            name: source.name.clone(),
            kernel: source.is_kernel(),
            entry,
            resources: Resources {
                static_shared: layout.shared[self.index].static_bytes(),
                max_threads: threads(source),
                required_block: source.tuning.required_threads,
                required_cluster: source.tuning.required_cluster,
                max_cluster_rank: source.tuning.max_cluster_rank,
                explicit_cluster: source.tuning.explicit_cluster,
                blocks_are_clusters: source.tuning.blocks_are_clusters,
                registers: self.needed_rows,
                local_bytes,
            },
            shared: layout.shared[self.index].clone(),
            parameters: layouts,
            parameter_bytes: bytes,
            parameter_places: places(&layout.parameters[self.index], &source.params),
            return_places: places(&layout.returns[self.index], &source.returns),
            rows: self.most_rows.max(1),
            predicates: u32::from(self.next_predicate),
            local_bytes,
            calls: false,
            independent: false,
            unsupported: self.unsupported,
        }
    }

    /// A row, or two or four, that lives as long as this instruction.
    ///
    /// Lanes that parted may stop in the middle of an instruction while others run through
    /// another one. Each has its own place in a slot, as long as all use the slot at one width.
    pub(crate) fn temporary(&mut self, bits: u32) -> Slot {
        let (width, rows) = match bits {
            0..=32 => (0, 1),
            33..=64 => (1, 2),
            _ => (2, 4),
        };
        let (slots, used) = (&mut self.temporaries.slots[width], &mut self.temporaries.used[width]);
        if *used == slots.len() {
            slots.push(self.most_rows);
            self.most_rows += rows;
        }
        *used += 1;
        let slot = slots[*used - 1];
        let [narrow, wide, widest] = self.temporaries.used.map(|used| used as u32);
        let needed = self.register_rows + narrow + 2 * wide + 4 * widest;
        self.needed_rows = self.needed_rows.max(needed);
        slot
    }

    /// A predicate for the result of one instruction.
    pub(crate) fn temporary_predicate(&mut self) -> PredicateSlot {
        self.next_predicate += 1;
        self.next_predicate - 1
    }

    pub(crate) fn emit(&mut self, action: Action, operands: Operands) {
        let (guard, flip, place) = (self.guard, self.flip, self.place);
        self.context.code.ops.push(Op { guard, flip, action, operands, place });
    }

    pub(crate) fn effect(&mut self, effect: Effect, operands: Operands) {
        self.emit(Action::Effect(effect), operands);
    }

    pub(crate) fn run(&mut self, function: Compute, operands: Operands) {
        self.emit(Action::Compute(function), operands);
    }

    /// The function of a lane function, for the host.
    pub(crate) fn pick<L: Lane>(&self) -> Compute {
        L::function(self.context.wide)
    }

    pub(crate) fn register(&self, id: RegisterId) -> Slot {
        self.slots[id.index()]
    }

    pub(crate) fn register_bits(&self, id: RegisterId) -> u32 {
        self.source.register(id).ty.bits()
    }

    pub(crate) fn predicate_of(&self, id: RegisterId) -> PredicateSlot {
        self.slots[id.index()] as PredicateSlot
    }

    /// The slot of a source operand of `bits` bits. `float` says that constants are floats.
    pub(crate) fn source(&mut self, operand: &Operand, bits: u32, float: bool) -> Lowered<Slot> {
        match operand {
            Operand::Register(id) => self.source_register(*id, bits),
            Operand::Immediate(value) if float => {
                Ok(self.constant_float(*value as i64 as f64, bits))
            }
            Operand::Immediate(value) => Ok(self.constant_bits(*value, bits)),
            Operand::Float32(value) if bits == 64 => {
                Ok(self.constant_bits(f64::from(f32::from_bits(*value)).to_bits(), 64))
            }
            Operand::Float32(value) => Ok(self.constant_bits(u64::from(*value), bits)),
            Operand::Float64(value) => Ok(self.constant_float(f64::from_bits(*value), bits)),
            Operand::Special(register, axis) => self.special(*register, *axis, bits),
            Operand::Symbol(symbol, offset) => self.symbol(*symbol, *offset, bits),
            Operand::Vector(parts) => self.packed(parts, bits),
            _ => Err(Unsupported),
        }
    }

    fn source_register(&mut self, id: RegisterId, bits: u32) -> Lowered<Slot> {
        let slot = self.register(id);
        match (self.register_bits(id), bits) {
            (1 | 128, _) => Err(Unsupported),
            (64, 64) => Ok(slot),
            (64, _) => {
                let low = self.temporary(32);
                self.run(
                    self.pick::<crate::convert::U64ToU32>(),
                    Operands { d: low, a: slot, ..Operands::default() },
                );
                Ok(low)
            }
            (_, 64) => {
                let high = self.temporary(64);
                self.run(
                    self.pick::<crate::convert::U32ToU64>(),
                    Operands { d: high, a: slot, ..Operands::default() },
                );
                Ok(high)
            }
            _ => Ok(slot),
        }
    }

    /// `mov.b64 %rd, {%r1, %r2}` and its relatives.
    fn packed(&mut self, parts: &[Operand], bits: u32) -> Lowered<Slot> {
        let part_bits = bits / parts.len().max(1) as u32;
        let to = self.temporary(bits);
        memory::pack(self, to, parts, bits, part_bits)?;
        Ok(to)
    }

    pub(crate) fn constant_bits(&mut self, value: u64, bits: u32) -> Slot {
        self.context.constant(match bits {
            64 => Constant::Bits64(value),
            32 => Constant::Bits32(value as u32),
            _ => Constant::Bits32(value as u32 & ((1 << bits) - 1)),
        })
    }

    fn constant_float(&mut self, value: f64, bits: u32) -> Slot {
        self.context.constant(match bits {
            64 => Constant::Bits64(value.to_bits()),
            16 => Constant::Bits32(u32::from(crate::arithmetic::half::f32_to_f16(value as f32))),
            _ => Constant::Bits32((value as f32).to_bits()),
        })
    }

    fn special(
        &mut self,
        register: assay_ptx::special::SpecialRegister,
        axis: Option<assay_ptx::special::Axis>,
        bits: u32,
    ) -> Lowered<Slot> {
        let special = warp::special(register, axis)?;
        let own = if register.ty().bits() == 64 { 64 } else { 32 };
        let to = self.temporary(own);
        self.effect(Effect::Special(special), Operands { d: to, ..Operands::default() });
        self.resized(to, own, bits)
    }

    /// Zero-extends or truncates a slot.
    fn resized(&mut self, slot: Slot, own: u32, bits: u32) -> Lowered<Slot> {
        if (own == 64) == (bits == 64) {
            return Ok(slot);
        }
        let to = self.temporary(bits);
        let function = if own == 64 {
            self.pick::<crate::convert::U64ToU32>()
        } else {
            self.pick::<crate::convert::U32ToU64>()
        };
        self.run(function, Operands { d: to, a: slot, ..Operands::default() });
        Ok(to)
    }

    /// The home of a symbol.
    pub(crate) fn home(&self, symbol: Symbol) -> Home {
        let layout = &self.context.layout;
        let base = layout.local_base[self.index];
        let moved = |home: Home| match home {
            Home::Frame(offset) => Home::Frame(offset + base),
            other => other,
        };
        match symbol {
            Symbol::Global(index) => layout.globals[index as usize],
            Symbol::Local(index) => moved(layout.locals[self.index][index as usize]),
            Symbol::Parameter(index) if !self.source.is_kernel() => {
                Home::Frame(layout.parameters[self.index][index as usize] + base)
            }
            Symbol::Return(index) => Home::Frame(layout.returns[self.index][index as usize] + base),
            _ => Home::Nowhere,
        }
    }

    /// The address of a symbol inside its own space.
    pub(crate) fn symbol(&mut self, symbol: Symbol, offset: i64, bits: u32) -> Lowered<Slot> {
        let wide = bits == 64;
        match (self.home(symbol), symbol) {
            (Home::Memory(variable), _) => {
                Ok(self.context.constant(Constant::Variable { variable, offset, wide }))
            }
            (Home::Shared(start), _) => {
                Ok(self.constant_bits((i64::from(start) + offset) as u64, bits))
            }
            (Home::DynamicShared, _) => {
                Ok(self.context.constant(Constant::DynamicShared { offset, wide }))
            }
            (Home::Frame(start), _) => {
                let to = self.temporary(bits);
                let immediate = (i64::from(start) + offset) as u64;
                let operands = Operands { d: to, immediate, ..Operands::default() };
                self.effect(Effect::FrameAddress { wide }, operands);
                Ok(to)
            }
            (Home::Nowhere, Symbol::Parameter(index)) => {
                let (layouts, _) = parameters(&self.source.params);
                let start = i64::from(layouts[index as usize].offset);
                Ok(self.constant_bits((start + offset) as u64, bits))
            }
            (Home::Nowhere, Symbol::Function(id)) => {
                let address = crate::execute::address::function(id.0);
                Ok(self.constant_bits(address, bits))
            }
            (Home::Nowhere, _) => Err(Unsupported),
        }
    }

    /// The slot of a destination of `bits` bits; a sink gets a slot that nobody reads.
    pub(crate) fn destination(&mut self, operand: &Operand, bits: u32) -> Lowered<Slot> {
        match operand {
            Operand::Register(id) if (self.register_bits(*id) == 64) == (bits == 64) => {
                Ok(self.register(*id))
            }
            Operand::Pair(Some(id), _) => Ok(self.register(*id)),
            Operand::Sink | Operand::Pair(None, _) => Ok(self.temporary(bits)),
            _ => Err(Unsupported),
        }
    }

    /// Destination predicates of an operand: `p`, or `p|q`.
    pub(crate) fn predicates(&self, operand: &Operand) -> Lowered<(PredicateSlot, PredicateSlot)> {
        let slot = |id: &Option<RegisterId>| id.map_or(DISCARDED, |id| self.predicate_of(id));
        match operand {
            Operand::Register(id) => Ok((self.predicate_of(*id), DISCARDED)),
            Operand::Pair(p, q) => Ok((slot(p), slot(q))),
            Operand::Sink => Ok((DISCARDED, DISCARDED)),
            _ => Err(Unsupported),
        }
    }

    /// A source predicate and whether it is inverted.
    pub(crate) fn source_predicate(&self, operand: &Operand) -> Lowered<(PredicateSlot, bool)> {
        match operand {
            Operand::Register(id) if self.register_bits(*id) == 1 => {
                Ok((self.predicate_of(*id), false))
            }
            Operand::Not(id) => Ok((self.predicate_of(*id), true)),
            Operand::Immediate(value) => Ok((ALWAYS, *value == 0)),
            _ => Err(Unsupported),
        }
    }

    /// The slot and offset of an address; whether the slot has 64 bits; whether it is a frame
    /// variable, which has no slot.
    pub(crate) fn address(&mut self, address: &Address) -> Lowered<Addressed> {
        match address.base {
            AddressBase::Register(id) => Ok(Addressed {
                slot: self.register(id),
                wide: self.register_bits(id) == 64,
                offset: address.offset,
                frame: false,
            }),
            AddressBase::Variable(symbol) => {
                if let Home::Frame(start) = self.home(symbol) {
                    let offset = i64::from(start) + address.offset;
                    let slot = self.constant_bits(0, 64);
                    return Ok(Addressed { slot, wide: true, offset, frame: true });
                }
                let slot = self.symbol(symbol, address.offset, 64)?;
                Ok(Addressed { slot, wide: true, offset: 0, frame: false })
            }
            AddressBase::None => {
                let slot = self.constant_bits(address.offset as u64, 64);
                Ok(Addressed { slot, wide: true, offset: 0, frame: false })
            }
        }
    }
}

/// How many registers of a class a function has.
fn count_of(source: &Source, class: Class) -> u32 {
    source.registers.iter().filter(|register| Class::of(register.ty) == class).count() as u32
}

/// Rows for what lives within one instruction: of 32, 64 and 128 bits apart.
#[derive(Default)]
struct Temporaries {
    /// The slots of each width so far.
    slots: [Vec<Slot>; 3],
    /// How many of them the instruction uses.
    used: [usize; 3],
}

/// A lowered address.
#[derive(Clone, Copy)]
pub(crate) struct Addressed {
    pub(crate) slot: Slot,
    pub(crate) wide: bool,
    pub(crate) offset: i64,
    pub(crate) frame: bool,
}

/// The opcode of a body without instructions.
fn nothing() -> std::sync::Arc<assay_ptx::opcode::Opcode> {
    std::sync::Arc::new(assay_ptx::opcode::Opcode {
        base: Base::Ret,
        types: Vec::new(),
        spaces: Vec::new(),
        shape: None,
        layouts: Vec::new(),
        vector: 1,
        modifiers: assay_ptx::opcode::Modifiers::new(),
        writes: false,
        text: "ret".to_owned(),
    })
}

fn threads(source: &Source) -> Option<u32> {
    let limit = source.tuning.required_threads.or(source.tuning.max_threads)?;
    Some(limit.iter().fold(1, |product: u32, &axis| product.saturating_mul(axis)))
}

/// Moves the rows and predicates of a device function.
pub(crate) fn relocate(code: &mut Code, function: usize, rows: u32, predicates: u16) {
    let first = code.functions[function].entry;
    if first == u32::MAX {
        return;
    }
    let later =
        code.functions.iter().map(|f| f.entry).filter(|&entry| entry > first && entry != u32::MAX);
    let end = later.min().unwrap_or(code.ops.len() as u32);
    let slot = |slot: &mut Slot| {
        if *slot & CONSTANT == 0 {
            *slot += rows;
        }
    };
    let predicate = |slot: &mut PredicateSlot| {
        if *slot >= FIRST_PREDICATE {
            *slot += predicates;
        }
    };
    let mut lists = Vec::new();
    let mut calls = Vec::new();
    for op in &mut code.ops[first as usize..end as usize] {
        let operands = &mut op.operands;
        if let Action::Effect(effect) = op.action {
            if let Some(named) = memory::lists_of(effect, operands) {
                lists.extend(named);
                // The list index shares a field with a slot and must stay.
                let kept = operands.c;
                [&mut operands.d, &mut operands.a, &mut operands.b].into_iter().for_each(slot);
                operands.c = kept;
            } else {
                [&mut operands.d, &mut operands.a, &mut operands.b, &mut operands.c]
                    .into_iter()
                    .for_each(slot);
            }
            if effect == Effect::Call {
                calls.push(operands.immediate as usize);
            }
        } else {
            [&mut operands.d, &mut operands.a, &mut operands.b, &mut operands.c]
                .into_iter()
                .for_each(slot);
        }
        [&mut operands.p, &mut operands.q, &mut operands.r, &mut op.guard]
            .into_iter()
            .for_each(predicate);
    }
    for list in lists {
        code.lists[list].iter_mut().for_each(slot);
    }
    for call in calls {
        control::relocate_call(&mut code.calls[call], slot);
    }
}
