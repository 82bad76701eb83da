//! Exits, calls and indexed branches.

use super::access::lanes_of;
use super::address;
use super::block::BARRIERS;
use super::calls::StackEntry;
use super::effect::SpaceKind;
use super::engine::{Engine, Flow, Step, Trouble};
use super::frame::{LANES, Operands, Row};
use super::warp::{Group, Wait, Warp};
use crate::fault::FaultKind;
use crate::observer::Observer;
use crate::program::{BuiltIn, Callee, Carried};

/// How deep calls may nest.
const DEEPEST_CALL: u32 = 1024;
/// The most bytes that the registers and local memory of a warp may take once calls recurse.
const LARGEST_WARP: usize = 64 << 20;
/// The same for all warps of a block.
const LARGEST_BLOCK: usize = 256 << 20;

impl<O: Observer> Engine<'_, O> {
    /// `exit`: the lanes of `mask` are gone.
    pub(crate) fn exit(&mut self, mask: u32) -> Step {
        let warp = &mut self.block.warps[self.warp];
        warp.alive &= !mask;
        self.block.alive -= mask.count_ones();
        // Whoever waits for these lanes looks again.
        for group in &mut warp.groups {
            if let Wait::Converge(members) = group.wait
                && members & mask != 0
            {
                group.wait = Wait::Ready;
            }
        }
        for number in 0..BARRIERS {
            if self.block.barriers[number].expected == Some(0) {
                self.complete(number);
            }
        }
        if self.block.alive == 0 {
            self.end_bulk();
        }
        self.check_stores_on_exit(mask)?;
        if self.cluster_barrier_used {
            self.complete_cluster_barrier();
        }
        self.progress += 1;
        self.keep_rest(mask, self.group.pc + 1)
    }

    /// The group goes on without the lanes of `mask`.
    fn keep_rest(&mut self, mask: u32, pc: u32) -> Step {
        let rest = Group { mask: self.group.mask & !mask, pc, ..self.group };
        if rest.mask != 0 {
            self.block.warps[self.warp].groups.push(rest);
        }
        Ok(Flow::Reschedule)
    }

    /// `brx.idx`
    pub(crate) fn branch_indexed(&mut self, operands: &Operands, mask: u32) -> Step {
        let targets = &self.code().branch_tables[operands.immediate as usize];
        let indices = self.read_register(operands.a, false);
        let mut rest = mask;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            let same = lanes_of(rest).filter(|&other| indices[other] == indices[lane]);
            let together = same.fold(0, |found, other| found | 1 << other);
            let Some(&pc) = targets.get(indices[lane] as usize) else {
                let kind = FaultKind::InvalidAddress { address: indices[lane] };
                return Err(Trouble::new(kind, 1 << lane));
            };
            let group = Group { mask: together, pc, ..self.group };
            self.block.warps[self.warp].groups.push(group);
            rest &= !together;
        }
        self.keep_rest(mask, self.group.pc + 1)
    }

    /// `call`
    pub(crate) fn call(&mut self, operands: &Operands, mask: u32) -> Step {
        let call = operands.immediate as usize;
        match self.code().calls[call].callee {
            Callee::Function { index, recursive } => {
                self.enter_function(call, index, recursive, mask)?;
                self.keep_rest(mask, self.group.pc + 1)
            }
            Callee::BuiltIn(function) => self.built_in(call, function, mask),
            Callee::Indirect(slot) => {
                let addresses = self.read_register(slot, true);
                self.call_addresses(call, &addresses, mask)
            }
        }
    }

    /// An indirect call: lanes with the same target go together.
    fn call_addresses(&mut self, call: usize, addresses: &[u64; LANES], mask: u32) -> Step {
        let mut rest = mask;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            let same = lanes_of(rest).filter(|&other| addresses[other] == addresses[lane]);
            let together = same.fold(0, |found, other| found | 1 << other);
            let known = address::function_at(addresses[lane])
                .filter(|&index| self.code().functions.get(index).is_some_and(|f| !f.kernel));
            let Some(index) = known else {
                let kind = FaultKind::InvalidAddress { address: addresses[lane] };
                return Err(Trouble::new(kind, 1 << lane));
            };
            // A level of its own is always right.
            self.enter_function(call, index as u32, true, together)?;
            rest &= !together;
        }
        self.keep_rest(mask, self.group.pc + 1)
    }

    /// Puts the lanes of `mask` at the start of a function, with their arguments.
    fn enter_function(&mut self, call: usize, index: u32, recursive: bool, mask: u32) -> Step<()> {
        let code = self.code();
        let function = &code.functions[index as usize];
        let depth = self.group.depth + 1;
        let level = self.group.level + u32::from(recursive);
        if depth > DEEPEST_CALL {
            return Err(self.stack_overflow(depth, level, mask));
        }
        if function.entry == u32::MAX {
            let opcode = format!("call of {}", function.name);
            return Err(Trouble::new(FaultKind::Unsupported { opcode }, mask));
        }
        if !self.grow(level) {
            return Err(self.stack_overflow(depth, level, mask));
        }
        let entry = StackEntry {
            parent: self.group.stack,
            return_pc: self.group.pc + 1,
            call: call as u32,
            function: index,
            caller_level: self.group.level,
            caller_depth: self.group.depth,
        };
        let stack = self.stacks.intern(entry);
        let arguments = code.calls[call].arguments.iter().zip(&function.parameter_places);
        for (argument, &(to, bytes)) in arguments {
            self.pass(*argument, self.group.level, (to, bytes), level, mask);
        }
        let group = Group { mask, pc: function.entry, stack, depth, level, wait: Wait::Ready };
        self.block.warps[self.warp].groups.push(group);
        Ok(())
    }

    /// The fault of a call that would raise the lanes of `mask` to this depth and level.
    fn stack_overflow(&self, depth: u32, level: u32, mask: u32) -> Box<Trouble> {
        let bytes = (u64::from(level) + 1) * self.level_bytes() as u64 / LANES as u64;
        Trouble::new(FaultKind::StackOverflow { depth, bytes }, mask)
    }

    /// Bytes of registers and local memory that one level of recursion takes of a warp.
    fn level_bytes(&self) -> usize {
        let code = self.code();
        code.level_rows as usize * size_of::<Row>() + code.level_local as usize * LANES
    }

    /// Makes registers and local memory for a level of recursion; false where that is too much.
    fn grow(&mut self, level: u32) -> bool {
        let code = self.code();
        let levels = level as usize + 1;
        let warp = &self.block.warps[self.warp];
        let rows = levels * code.level_rows as usize;
        let local = levels * code.level_local as usize * LANES;
        if warp.registers.len() < rows || warp.local.len() < local {
            // Twice as much as before: deep recursion would copy all of it at every level.
            let most = LARGEST_WARP / self.level_bytes().max(1);
            let ahead = levels.next_power_of_two().min(most.max(1));
            let held = |warp: &Warp| size_of_val(&warp.registers[..]) + warp.local.len();
            let others = self.block.warps.iter().map(held).sum::<usize>() - held(warp);
            let fits = others + ahead * self.level_bytes() <= LARGEST_BLOCK;
            if level > 0 && (levels > ahead || !fits) {
                return false;
            }
            self.reserve(ahead.max(levels));
        }
        self.enter();
        true
    }

    /// Makes registers and local memory for so many levels of recursion.
    fn reserve(&mut self, levels: usize) {
        let code = self.code();
        let warp = &mut self.block.warps[self.warp];
        let rows = levels * code.level_rows as usize;
        if warp.registers.len() < rows {
            warp.registers.resize(rows, Row([0; LANES]));
        }
        let predicates = levels * code.level_predicates as usize;
        for index in warp.predicates.len()..predicates {
            let always = index % code.level_predicates as usize == 0;
            warp.predicates.push(if always { !0 } else { 0 });
        }
        let before = warp.local.len() / LANES;
        let after = levels * code.level_local as usize;
        if before < after {
            let mut local = vec![self.launch.poison; after * LANES];
            for lane in 0..LANES {
                let kept = &warp.local[lane * before..(lane + 1) * before];
                local[lane * after..lane * after + before].copy_from_slice(kept);
            }
            warp.local = local;
        }
    }

    /// Copies an argument into the callee's local memory.
    fn pass(
        &mut self,
        from: Carried,
        from_level: u32,
        (to, bytes): (u32, u32),
        to_level: u32,
        mask: u32,
    ) {
        let stride = self.code().level_local;
        let to = (to + to_level * stride) as usize;
        match from {
            Carried::Nothing => {}
            Carried::Memory(offset, length) => {
                let from = (offset + from_level * stride) as usize;
                let length = length.min(bytes) as usize;
                let warp = &mut self.block.warps[self.warp];
                let lane_bytes = warp.local.len() / LANES;
                for lane in lanes_of(mask) {
                    let start = lane * lane_bytes;
                    let range = start + from..start + from + length;
                    warp.local.copy_within(range, start + to);
                }
            }
            Carried::Register(slot, size) => {
                let values = self.read_register(slot, size == 8);
                let length = size.min(bytes) as usize;
                let warp = &mut self.block.warps[self.warp];
                let lane_bytes = warp.local.len() / LANES;
                for lane in lanes_of(mask) {
                    let start = lane * lane_bytes + to;
                    let value = values[lane].to_le_bytes();
                    warp.local[start..start + length].copy_from_slice(&value[..length]);
                }
            }
        }
    }

    /// `ret` of a device function.
    pub(crate) fn return_from_call(&mut self, mask: u32) -> Step {
        let entry = self.stacks.top(self.group.stack);
        let code = self.code();
        let level = self.group.level;
        let places = &code.functions[entry.function as usize].return_places;
        let results = code.calls[entry.call as usize].results.iter().zip(places);
        for (result, &(from, bytes)) in results {
            self.give_back(*result, entry.caller_level, (from, bytes), level, mask);
        }
        let back = Group {
            mask,
            pc: entry.return_pc,
            stack: entry.parent,
            depth: entry.caller_depth,
            level: entry.caller_level,
            wait: Wait::Ready,
        };
        self.block.warps[self.warp].groups.push(back);
        self.keep_rest(mask, self.group.pc + 1)
    }

    /// Copies a result to the caller.
    fn give_back(
        &mut self,
        to: Carried,
        to_level: u32,
        (from, bytes): (u32, u32),
        from_level: u32,
        mask: u32,
    ) {
        match to {
            Carried::Nothing => {}
            Carried::Memory(offset, length) => {
                let length = length.min(bytes);
                let source = Carried::Memory(from, length);
                self.pass(source, from_level, (offset, length), to_level, mask);
            }
            Carried::Register(slot, size) => {
                let stride = self.code().level_local;
                let from = (from + from_level * stride) as usize;
                let length = size.min(bytes) as usize;
                let warp = &self.block.warps[self.warp];
                let lane_bytes = warp.local.len() / LANES;
                let mut values = [0; LANES];
                for lane in lanes_of(mask) {
                    let start = lane * lane_bytes + from;
                    let mut value = [0; 8];
                    value[..length].copy_from_slice(&warp.local[start..start + length]);
                    values[lane] = u64::from_le_bytes(value);
                }
                let callee = self.group;
                self.group.level = to_level;
                self.enter();
                self.write_register(slot, size == 8, &values, mask);
                self.group = callee;
                self.enter();
            }
        }
    }

    /// A function of the CUDA runtime.
    fn built_in(&mut self, call: usize, function: BuiltIn, mask: u32) -> Step {
        let arguments = self.code().calls[call].arguments.clone();
        let mut results = [0; LANES];
        for lane in lanes_of(mask) {
            let values: Vec<u64> =
                arguments.iter().map(|argument| self.argument(*argument, lane)).collect();
            match function {
                BuiltIn::Vprintf => {
                    let format = self.text(values.first().copied().unwrap_or(0), lane)?;
                    let buffer = values.get(1).copied().unwrap_or(0);
                    let (text, count) = self.formatted(&format, buffer, lane)?;
                    super::print::append(&mut self.output, &text);
                    results[lane] = count;
                }
                BuiltIn::Malloc => results[lane] = self.device_malloc(&values),
                BuiltIn::Free => self.device_free(&values, lane)?,
                BuiltIn::AssertFail => return Err(self.assertion(&values, lane)?),
            }
        }
        self.answer(call, &results, mask)
    }

    /// Gives a runtime function's results to the caller.
    fn answer(&mut self, call: usize, values: &[u64; LANES], mask: u32) -> Step {
        let results = self.code().calls[call].results.clone();
        for result in results {
            match result {
                Carried::Register(slot, size) => {
                    self.write_register(slot, size == 8, values, mask);
                }
                Carried::Memory(offset, length) => {
                    for lane in lanes_of(mask) {
                        let (at, length) = (u64::from(offset), u64::from(length.min(8)));
                        let value = values[lane].to_le_bytes();
                        self.lane_bytes_mut(SpaceKind::Frame, lane, at, length)?
                            .copy_from_slice(&value[..length as usize]);
                    }
                }
                Carried::Nothing => {}
            }
        }
        Ok(Flow::Next)
    }

    /// `malloc`: null when the device heap is full.
    fn device_malloc(&mut self, values: &[u64]) -> u64 {
        self.memory.allocate_heap(values.first().copied().unwrap_or(0))
    }

    /// `free`: null is fine, anything else must come from `malloc`.
    fn device_free(&mut self, values: &[u64], lane: usize) -> Step<()> {
        let address = values.first().copied().unwrap_or(0);
        if address == 0 || self.memory.free_heap(address) {
            return Ok(());
        }
        Err(Trouble::new(FaultKind::InvalidAddress { address }, 1 << lane))
    }

    fn assertion(&mut self, values: &[u64], lane: usize) -> Step<Box<Trouble>> {
        let &[message, file, line, function, ..] = values else {
            let message = "assertion failed".to_owned();
            return Ok(Trouble::new(FaultKind::Assertion { message }, 1 << lane));
        };
        let message = self.text(message, lane)?;
        let file = self.text(file, lane)?;
        let function = self.text(function, lane)?;
        let message = format!("{file}:{}: {function}: assertion `{message}` failed", line as u32);
        Ok(Trouble::new(FaultKind::Assertion { message }, 1 << lane))
    }

    /// An argument of one lane as a number.
    fn argument(&self, argument: Carried, lane: usize) -> u64 {
        match argument {
            Carried::Nothing => 0,
            Carried::Register(slot, size) => self.read_register(slot, size == 8)[lane],
            Carried::Memory(offset, length) => {
                let warp = &self.block.warps[self.warp];
                let lane_bytes = warp.local.len() / LANES;
                let level = self.group.level * self.code().level_local;
                let start = lane * lane_bytes + (offset + level) as usize;
                let length = length.min(8) as usize;
                let mut value = [0; 8];
                value[..length].copy_from_slice(&warp.local[start..start + length]);
                u64::from_le_bytes(value)
            }
        }
    }

    /// A zero-terminated string at a generic address.
    fn text(&mut self, address: u64, lane: usize) -> Step<String> {
        const LONGEST: u64 = 1 << 16;
        let mut bytes = Vec::new();
        for offset in 0..LONGEST {
            let at = address.wrapping_add(offset);
            let byte = self.lane_bytes(SpaceKind::Generic, lane, at, 1, 1 << lane)?[0];
            if byte == 0 {
                break;
            }
            bytes.push(byte);
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What `printf` prints, and of how many arguments: they lie in the buffer, aligned to their
    /// size, 4 or 8 bytes each. A `*` takes an argument of its own.
    fn formatted(&mut self, format: &str, buffer: u64, lane: usize) -> Step<(String, u64)> {
        let (mut text, mut count) = (String::new(), 0);
        let mut offset = 0;
        for piece in super::print::pieces(format) {
            let (specifier, kind) = match piece {
                super::print::Piece::Text(literal) => {
                    text.push_str(&literal);
                    continue;
                }
                super::print::Piece::Argument(specifier, kind) => (specifier, kind),
            };
            let mut specifier = specifier;
            while specifier.contains('*') {
                let star = self.print_argument(buffer, &mut offset, 4, lane)? as i32;
                specifier = specifier.replacen('*', &star.to_string(), 1);
            }
            let value = self.print_argument(buffer, &mut offset, kind.bytes(), lane)?;
            count += 1;
            let string = match kind {
                super::print::ArgumentKind::String => Some(self.text(value, lane)?),
                _ => None,
            };
            text.push_str(&super::print::render(&specifier, kind, value, string.as_deref()));
        }
        Ok((text, count))
    }

    /// The next argument in a buffer of `vprintf`.
    fn print_argument(
        &mut self,
        buffer: u64,
        offset: &mut u64,
        size: u64,
        lane: usize,
    ) -> Step<u64> {
        *offset = offset.next_multiple_of(size);
        let at = buffer.wrapping_add(*offset);
        let bytes = self.lane_bytes(SpaceKind::Generic, lane, at, size, 1 << lane)?;
        let value = super::access::read_value(bytes, size as usize);
        *offset += size;
        Ok(value)
    }
}
