//! Kernels and functions: signature, tuning directives, and the frame around the body.

use std::sync::Arc;

use super::Parser;
use super::cursor::Result;
use super::names::{Meaning, Names};
use crate::lexer::{Kind, Token};
use crate::module::{
    Function, FunctionId, FunctionKind, Guard, Instruction, Label, Linkage, Operand, Position,
    Prototype, SourceLine, Symbol, TargetList, Targets, Tuning, Variable,
};
use crate::opcode::Opcode;
use crate::types::StateSpace;

const FUNCTION_DIRECTIVES: [&str; 13] = [
    ".maxntid",
    ".reqntid",
    ".minnctapersm",
    ".maxnctapersm",
    ".maxnreg",
    ".reqnctapercluster",
    ".maxclusterrank",
    ".explicitcluster",
    ".blocksareclusters",
    ".noreturn",
    ".pragma",
    ".attribute",
    ".abi_preserve",
];

/// A function whose body is being read.
pub(super) struct Body<'a> {
    pub(super) names: Names<'a>,
    pub(super) function: Function,
    pub(super) source: Option<SourceLine>,
    /// Branches whose labels are not resolved yet.
    pub(super) branches: Vec<PendingBranch<'a>>,
    /// `.branchtargets` entries that are not resolved yet.
    pub(super) targets: Vec<PendingTarget<'a>>,
}

/// A label operand to be filled in at the end of the function.
pub(super) struct PendingBranch<'a> {
    pub(super) instruction: usize,
    pub(super) operand: usize,
    pub(super) scope: usize,
    pub(super) name: Token<'a>,
}

/// A label of a `.branchtargets` list to be filled in at the end of the function.
pub(super) struct PendingTarget<'a> {
    pub(super) list: usize,
    pub(super) scope: usize,
    pub(super) name: Token<'a>,
}

impl Body<'_> {
    pub(super) fn push(
        &mut self,
        position: Position,
        guard: Option<Guard>,
        opcode: Arc<Opcode>,
        operands: Vec<Operand>,
    ) {
        let source = self.source;
        let instruction = Instruction { position, guard, opcode, operands, source };
        self.function.body.push(instruction);
    }
}

impl<'a> Parser<'a> {
    pub(super) fn function(&mut self, linkage: Linkage) -> Result<()> {
        let entry = self.cursor.advance()?.text == ".entry";
        let mut names = Names::new();
        let attribute = self.function_attribute()?;
        let returns = if !entry && self.cursor.token().is(b'(') {
            self.parameters(&mut names, Symbol::Return)?
        } else {
            Vec::new()
        };
        let name = self.cursor.name()?;
        let params = if self.cursor.token().is(b'(') {
            self.parameters(&mut names, Symbol::Parameter)?
        } else {
            Vec::new()
        };
        let kind = if entry { FunctionKind::Kernel } else { FunctionKind::Device };
        let mut function = empty_function(name, linkage, kind);
        function.params = params;
        function.returns = returns;
        function.attributes.extend(attribute);
        self.function_directives(&mut function)?;
        if self.cursor.accept(b';')? {
            function.kind = FunctionKind::Declaration;
            if !function.pragmas.is_empty() {
                return Err(self.error_at(name.position, "a declaration takes no `.pragma`"));
            }
            return self.declare_function(name, function);
        }
        let has_body = self.cursor.token().is(b'{');
        if !has_body {
            return Err(self.cursor.expected("`{` or `;`"));
        }
        let id = self.define_function(name, &function)?;
        let function = self.body(names, function)?;
        if let Some(place) = self.module.functions.get_mut(id.0 as usize) {
            *place = function;
        }
        Ok(())
    }

    fn function_attribute(&mut self) -> Result<Option<String>> {
        let found = self.cursor.token().is_directive(".attribute");
        if found { self.attribute().map(Some) } else { Ok(None) }
    }

    /// `(.param .u64 a, .param .align 8 .b8 b[16])`.
    fn parameters(
        &mut self,
        names: &mut Names<'a>,
        symbol: fn(u32) -> Symbol,
    ) -> Result<Vec<Variable>> {
        let mut variables = Vec::new();
        self.cursor.expect(b'(')?;
        while !self.cursor.token().is(b')') {
            let (token, mut variable) = self.parameter()?;
            variable.name = names.unique(token.text);
            let meaning = Meaning::Symbol(symbol(variables.len() as u32));
            if !names.declare(token.text, meaning) {
                return Err(self.duplicate(token));
            }
            variables.push(variable);
            if !self.cursor.accept(b',')? {
                break;
            }
        }
        self.cursor.expect(b')')?;
        Ok(variables)
    }

    fn parameter(&mut self) -> Result<(Token<'a>, Variable)> {
        let token = self.cursor.token();
        if token.is_directive(".reg") {
            let message = "a parameter in a register is not supported";
            return Err(self.error_at(token.position, message).hint("declare it as `.param`"));
        }
        if !self.cursor.accept_directive(".param")? {
            return Err(self.cursor.expected("`.param`"));
        }
        let mut variable = self.variable_head(StateSpace::Param, Linkage::Private)?;
        let name = self.cursor.name()?;
        variable.name = name.text.to_string();
        variable.position = name.position;
        variable.dimensions = self.dimensions()?;
        Ok((name, variable))
    }

    fn function_directives(&mut self, function: &mut Function) -> Result<()> {
        loop {
            let token = self.cursor.token();
            if token.kind != Kind::Directive {
                return Ok(());
            }
            match token.text {
                ".pragma" => {
                    self.cursor.advance()?;
                    function.pragmas.push(self.cursor.string()?);
                    self.cursor.expect(b';')?;
                }
                ".attribute" => function.attributes.push(self.attribute()?),
                _ => self.tuning(&mut function.tuning, token)?,
            }
        }
    }

    fn tuning(&mut self, tuning: &mut Tuning, token: Token<'a>) -> Result<()> {
        self.cursor.advance()?;
        match token.text {
            ".maxntid" => tuning.max_threads = Some(self.triple()?),
            ".reqntid" => tuning.required_threads = Some(self.triple()?),
            ".reqnctapercluster" => tuning.required_cluster = Some(self.triple()?),
            // `.maxnctapersm` is the old name (ISA 11.4.5).
            ".minnctapersm" | ".maxnctapersm" => tuning.min_blocks = Some(self.cursor.integer32()?),
            ".maxnreg" => tuning.max_registers = Some(self.cursor.integer32()?),
            ".maxclusterrank" => tuning.max_cluster_rank = Some(self.cursor.integer32()?),
            ".explicitcluster" => tuning.explicit_cluster = true,
            ".blocksareclusters" => tuning.blocks_are_clusters = true,
            ".noreturn" => tuning.no_return = true,
            ".abi_preserve" => tuning.abi_preserve = Some(self.cursor.integer32()?),
            ".abi_preserve_control" => {
                tuning.abi_preserve_control = Some(self.cursor.integer32()?);
            }
            _ => return Err(self.unknown_directive(token, &FUNCTION_DIRECTIVES)),
        }
        Ok(())
    }

    /// One to three numbers; missing ones are 1.
    fn triple(&mut self) -> Result<[u32; 3]> {
        let mut values = [self.cursor.integer32()?, 1, 1];
        for value in &mut values[1..] {
            if !self.cursor.accept(b',')? {
                break;
            }
            *value = self.cursor.integer32()?;
        }
        Ok(values)
    }

    /// A declaration: kept unless the function is known already.
    fn declare_function(&mut self, name: Token<'a>, function: Function) -> Result<()> {
        match self.symbols.get(name.text).copied() {
            None => {
                self.add_function(name, function);
                Ok(())
            }
            Some(Symbol::Function(id)) => {
                let known = self.module.functions.get(id.0 as usize);
                match known.filter(|known| same_signature(known, &function)) {
                    Some(_) => Ok(()),
                    None => Err(self.other_signature(name)),
                }
            }
            Some(_) => Err(self.duplicate(name)),
        }
    }

    /// A definition: takes the place of its declaration, so that the body can call itself.
    fn define_function(&mut self, name: Token<'a>, function: &Function) -> Result<FunctionId> {
        match self.symbols.get(name.text).copied() {
            None => Ok(self.add_function(name, function.clone())),
            Some(Symbol::Function(id)) => {
                let known = self.module.functions.get(id.0 as usize);
                match known.filter(|known| known.kind == FunctionKind::Declaration) {
                    Some(known) if same_signature(known, function) => Ok(id),
                    Some(_) => Err(self.other_signature(name)),
                    None => Err(self.duplicate(name)),
                }
            }
            Some(_) => Err(self.duplicate(name)),
        }
    }

    fn other_signature(&self, name: Token<'a>) -> crate::error::ParseError {
        let message = format!("{} was declared with other parameters", name.describe());
        self.error_at(name.position, message)
    }

    fn add_function(&mut self, name: Token<'a>, function: Function) -> FunctionId {
        let id = FunctionId(self.module.functions.len() as u32);
        self.symbols.insert(name.text, Symbol::Function(id));
        self.module.functions.push(function);
        id
    }

    fn body(&mut self, names: Names<'a>, function: Function) -> Result<Function> {
        let mut body =
            Body { names, function, source: None, branches: Vec::new(), targets: Vec::new() };
        let opening = self.cursor.token().position;
        self.cursor.expect(b'{')?;
        body.names.open();
        let outside = body.names.depth() - 1;
        while body.names.depth() > outside {
            if self.cursor.token().kind == Kind::End {
                return Err(self.error_at(opening, "this `{` is never closed"));
            }
            self.statement(&mut body)?;
        }
        self.resolve_labels(&mut body)?;
        body.function.registers = std::mem::take(&mut body.names.registers);
        Ok(body.function)
    }

    fn resolve_labels(&self, body: &mut Body<'a>) -> Result<()> {
        for branch in std::mem::take(&mut body.branches) {
            let target = self.label(body, branch.scope, branch.name)?;
            let instruction = body.function.body.get_mut(branch.instruction);
            let place = instruction.and_then(|i| i.operands.get_mut(branch.operand));
            if let Some(place) = place {
                *place = Operand::Label(target);
            }
        }
        for pending in std::mem::take(&mut body.targets) {
            let target = self.label(body, pending.scope, pending.name)?;
            let list = body.function.targets.get_mut(pending.list);
            if let Some(TargetList { targets: Targets::Branch(list), .. }) = list {
                list.push(target);
            }
        }
        Ok(())
    }

    fn label(&self, body: &Body<'a>, scope: usize, name: Token<'a>) -> Result<u32> {
        if let Some(target) = body.names.find_label(scope, name.text) {
            return Ok(target);
        }
        let message = format!("the label {} is not in this function", name.describe());
        let error = self.error_at(name.position, message);
        Err(match crate::decode::nearest(name.text, body.names.all_labels()) {
            Some(close) if close != name.text => error.hint(format!("did you mean `{close}`?")),
            _ => error,
        })
    }

    /// `name: .callprototype (.param .b32 _) _ (.param .b32 _) .noreturn;`
    pub(super) fn prototype(&mut self, body: &mut Body<'a>, label: Token<'a>) -> Result<()> {
        self.cursor.advance()?;
        let returns = self.prototype_list()?;
        let anonymous = self.cursor.token();
        if self.cursor.name()?.text != "_" {
            return Err(self.error_at(anonymous.position, "a prototype is named `_`"));
        }
        let params = self.prototype_list()?;
        let mut tuning = Tuning::default();
        while self.cursor.token().kind == Kind::Directive {
            let token = self.cursor.token();
            self.tuning(&mut tuning, token)?;
        }
        let known = Tuning { no_return: tuning.no_return, ..Tuning::default() };
        if tuning != known {
            return Err(self.error_at(label.position, "a prototype takes only `.noreturn`"));
        }
        self.cursor.expect(b';')?;
        let index = body.function.prototypes.len() as u32;
        let name = body.names.unique(label.text);
        let no_return = tuning.no_return;
        body.function.prototypes.push(Prototype { name, returns, params, no_return });
        if body.names.declare(label.text, Meaning::Prototype(index)) {
            return Ok(());
        }
        Err(self.duplicate(label))
    }

    fn prototype_list(&mut self) -> Result<Vec<Variable>> {
        let mut variables = Vec::new();
        if !self.cursor.accept(b'(')? {
            return Ok(variables);
        }
        while !self.cursor.token().is(b')') {
            variables.push(self.parameter()?.1);
            if !self.cursor.accept(b',')? {
                break;
            }
        }
        self.cursor.expect(b')')?;
        Ok(variables)
    }

    /// `name: .branchtargets a, b;` or `name: .calltargets f, g;`
    pub(super) fn target_list(&mut self, body: &mut Body<'a>, label: Token<'a>) -> Result<()> {
        let branches = self.cursor.advance()?.text == ".branchtargets";
        let list = body.function.targets.len();
        let mut calls = Vec::new();
        loop {
            if branches {
                let name = self.cursor.name()?;
                let scope = body.names.label_scope();
                body.targets.push(PendingTarget { list, scope, name });
            } else {
                calls.push(self.function_name()?);
            }
            if !self.cursor.accept(b',')? {
                break;
            }
        }
        self.cursor.expect(b';')?;
        let targets = if branches { Targets::Branch(Vec::new()) } else { Targets::Call(calls) };
        let name = body.names.unique(label.text);
        body.function.targets.push(TargetList { name, targets });
        if body.names.declare(label.text, Meaning::Targets(list as u32)) {
            return Ok(());
        }
        Err(self.duplicate(label))
    }

    /// `name:`
    pub(super) fn label_statement(&mut self, body: &mut Body<'a>, label: Token<'a>) -> Result<()> {
        let target = body.function.body.len() as u32;
        if !body.names.declare_label(label.text, target) {
            return Err(self.duplicate(label));
        }
        let name = body.names.unique(label.text);
        body.function.labels.push(Label { name, target });
        Ok(())
    }
}

fn empty_function(name: Token<'_>, linkage: Linkage, kind: FunctionKind) -> Function {
    Function {
        name: name.text.to_string(),
        position: name.position,
        linkage,
        kind,
        params: Vec::new(),
        returns: Vec::new(),
        tuning: Tuning::default(),
        attributes: Vec::new(),
        pragmas: Vec::new(),
        registers: Vec::new(),
        locals: Vec::new(),
        body: Vec::new(),
        labels: Vec::new(),
        prototypes: Vec::new(),
        targets: Vec::new(),
    }
}

/// Whether two functions take and give values of the same sizes.
fn same_signature(left: &Function, right: &Function) -> bool {
    let same = |a: &[Variable], b: &[Variable]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.size_bytes() == b.size_bytes())
    };
    same(&left.params, &right.params) && same(&left.returns, &right.returns)
}
