//! Names inside a function: nested scopes, register banks (`%r<8>`) and labels.

use std::borrow::Cow;

use crate::hash::{NameMap, NameSet};
use crate::module::{Register, RegisterId, Symbol};
use crate::types::Type;

/// The deepest nesting of `{ }` in a function.
pub(super) const DEPTH_LIMIT: usize = 256;

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    Register(RegisterId),
    Symbol(Symbol),
    Prototype(u32),
    Targets(u32),
}

#[derive(Clone, Copy)]
enum Entry {
    /// Declared, but not used yet.
    Declared(Type),
    Known(Meaning),
}

#[derive(Default)]
struct Scope<'a> {
    entries: NameMap<&'a str, Entry>,
    /// Prefix to type and count of `%r<8>`.
    banks: NameMap<&'a str, (Type, u32)>,
    /// Index into [`Names::label_scopes`].
    labels: usize,
}

#[derive(Default)]
struct LabelScope<'a> {
    parent: Option<usize>,
    labels: NameMap<&'a str, u32>,
}

/// All names of one function.
pub(super) struct Names<'a> {
    scopes: Vec<Scope<'a>>,
    label_scopes: Vec<LabelScope<'a>>,
    /// Unique names already given, and the next suffix of those that were asked for again.
    used: NameSet<Cow<'a, str>>,
    suffixes: NameMap<&'a str, u32>,
    pub(super) registers: Vec<Register>,
}

impl<'a> Names<'a> {
    pub(super) fn new() -> Names<'a> {
        Names {
            scopes: vec![Scope::default()],
            label_scopes: vec![LabelScope::default()],
            used: NameSet::default(),
            suffixes: NameMap::default(),
            registers: Vec::new(),
        }
    }

    /// Scopes open, the function's own included.
    pub(super) fn depth(&self) -> usize {
        self.scopes.len()
    }

    pub(super) fn open(&mut self) {
        let parent = Some(self.label_scope());
        self.label_scopes.push(LabelScope { parent, labels: NameMap::default() });
        let labels = self.label_scopes.len() - 1;
        self.scopes.push(Scope { labels, ..Scope::default() });
    }

    pub(super) fn close(&mut self) {
        self.scopes.pop();
    }

    /// The scope that labels of the innermost block belong to.
    pub(super) fn label_scope(&self) -> usize {
        self.scopes.last().map_or(0, |scope| scope.labels)
    }

    /// A name that no other thing of the function has: the name itself, or with a suffix `$n`.
    pub(super) fn unique(&mut self, name: &'a str) -> String {
        if self.used.insert(Cow::Borrowed(name)) {
            return name.to_string();
        }
        let next = self.suffixes.entry(name).or_insert(0);
        loop {
            *next += 1;
            let candidate = format!("{name}${next}");
            if self.used.insert(Cow::Owned(candidate.clone())) {
                return candidate;
            }
        }
    }

    /// Declares a register; false when the scope has the name already.
    pub(super) fn declare_register(&mut self, name: &'a str, ty: Type) -> bool {
        self.insert(name, Entry::Declared(ty))
    }

    /// Declares `prefix0` to `prefix(count - 1)`; false when the scope has the bank already.
    pub(super) fn declare_bank(&mut self, prefix: &'a str, ty: Type, count: u32) -> bool {
        let Some(scope) = self.scopes.last_mut() else { return false };
        scope.banks.insert(prefix, (ty, count)).is_none()
    }

    /// Declares anything but a register; false when the scope has the name already.
    pub(super) fn declare(&mut self, name: &'a str, meaning: Meaning) -> bool {
        self.insert(name, Entry::Known(meaning))
    }

    fn insert(&mut self, name: &'a str, entry: Entry) -> bool {
        let Some(scope) = self.scopes.last_mut() else { return false };
        if in_bank(&scope.banks, name).is_some() {
            return false;
        }
        scope.entries.insert(name, entry).is_none()
    }

    /// Finds a name, innermost scope first; a register gets its id at its first use.
    pub(super) fn find(&mut self, name: &'a str) -> Option<Meaning> {
        for index in (0..self.scopes.len()).rev() {
            let scope = &self.scopes[index];
            let ty = match scope.entries.get(name) {
                Some(Entry::Known(meaning)) => return Some(*meaning),
                Some(Entry::Declared(ty)) => *ty,
                None => match in_bank(&scope.banks, name) {
                    Some(ty) => ty,
                    None => continue,
                },
            };
            let id = RegisterId(self.registers.len() as u32);
            let unique = self.unique(name);
            self.registers.push(Register { name: unique, ty });
            self.scopes[index].entries.insert(name, Entry::Known(Meaning::Register(id)));
            return Some(Meaning::Register(id));
        }
        None
    }

    /// Puts a label at an instruction index; false when the scope has it already.
    pub(super) fn declare_label(&mut self, name: &'a str, target: u32) -> bool {
        let scope = self.label_scope();
        self.label_scopes[scope].labels.insert(name, target).is_none()
    }

    /// Finds a label from the scope of its use outwards.
    pub(super) fn find_label(&self, scope: usize, name: &str) -> Option<u32> {
        let mut scope = Some(scope);
        while let Some(index) = scope {
            let place = self.label_scopes.get(index)?;
            if let Some(&target) = place.labels.get(name) {
                return Some(target);
            }
            scope = place.parent;
        }
        None
    }

    /// All names that can be seen now, for hints.
    pub(super) fn visible(&self) -> Vec<&'a str> {
        self.scopes.iter().flat_map(|scope| scope.entries.keys().copied()).collect()
    }

    /// The banks that can be seen now, as prefix and count, for hints.
    pub(super) fn bank_of(&self, name: &str) -> Option<(&'a str, u32)> {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let found = self.scopes.iter().rev().find_map(|scope| scope.banks.get_key_value(prefix));
        found.map(|(prefix, (_, count))| (*prefix, *count))
    }

    /// All label names, for hints.
    pub(super) fn all_labels(&self) -> impl Iterator<Item = &'a str> {
        self.label_scopes.iter().flat_map(|scope| scope.labels.keys().copied())
    }
}

/// The type of `%r3` when a bank `%r<n>` with n over 3 is declared.
fn in_bank(banks: &NameMap<&str, (Type, u32)>, name: &str) -> Option<Type> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    // `%r10` is in the bank `%r`; a prefix may itself end in a digit (`%r1<4>` has `%r12`).
    for start in name.len() - digits..name.len() {
        let (prefix, number) = name.split_at(start);
        let canonical = number == "0" || !number.starts_with('0');
        let Some((ty, count)) = banks.get(prefix).filter(|_| canonical) else { continue };
        if number.parse::<u32>().is_ok_and(|number| number < *count) {
            return Some(*ty);
        }
    }
    None
}
