//! The call stacks of a launch: a tree in which equal stacks have equal indices, so that lanes that
//! called alike are one group.

use std::collections::HashMap;

/// How many of the newest entries are looked at before the table of all.
const RECENT: usize = 8;

/// One call on a call stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct StackEntry {
    /// The rest of the stack.
    pub(crate) parent: u32,
    pub(crate) return_pc: u32,
    pub(crate) call: u32,
    pub(crate) function: u32,
    pub(crate) caller_level: u32,
    pub(crate) caller_depth: u32,
}

/// All stacks so far; 0 is the kernel itself.
#[derive(Debug)]
pub(crate) struct CallStacks {
    entries: Vec<StackEntry>,
    known: HashMap<StackEntry, u32>,
}

impl CallStacks {
    pub(crate) fn new() -> CallStacks {
        let root = StackEntry {
            parent: 0,
            return_pc: 0,
            call: 0,
            function: 0,
            caller_level: 0,
            caller_depth: 0,
        };
        CallStacks { entries: vec![root], known: HashMap::new() }
    }

    /// The innermost call of a stack.
    pub(crate) fn top(&self, stack: u32) -> StackEntry {
        self.entries[stack as usize]
    }

    /// The index of a stack.
    pub(crate) fn intern(&mut self, entry: StackEntry) -> u32 {
        let older = self.entries.len().saturating_sub(RECENT);
        let recent = self.entries[older..].iter().rposition(|known| *known == entry);
        if let Some(found) = recent {
            return (older + found) as u32;
        }
        let next = self.entries.len() as u32;
        let index = *self.known.entry(entry).or_insert(next);
        if index == next {
            self.entries.push(entry);
        }
        index
    }
}
