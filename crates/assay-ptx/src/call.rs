//! Checks calls: the callee, and arguments and returned values against its signature.

use crate::check::{Complaint, Context};
use crate::module::{Operand, Symbol, Targets, Variable};
use crate::types::{StateSpace, Type};

type Checked = Result<(), Complaint>;

/// Checks the four operands of a `call`.
pub(crate) fn check(context: Context<'_>, operands: &[Operand]) -> Checked {
    let [Operand::List(returns), callee, Operand::List(arguments), prototype] = operands else {
        return Err(Complaint::new("a call is `(returns), callee, (arguments), prototype`"));
    };
    let (name, expected_returns, expected_params) = signature(context, callee, prototype)?;
    same_count(&name, "returned values", expected_returns.len(), returns.len())?;
    same_count(&name, "arguments", expected_params.len(), arguments.len())?;
    for (index, (value, expected)) in returns.iter().zip(expected_returns).enumerate() {
        let what = format!("returned value {} of `{name}`", index + 1);
        check_value(context, &what, value, expected)?;
        if !matches!(value, Operand::Register(_) | Operand::Symbol(..) | Operand::Sink) {
            return Err(Complaint::new(format!("{what} needs a variable or register")));
        }
    }
    for (index, (value, expected)) in arguments.iter().zip(expected_params).enumerate() {
        check_value(context, &format!("argument {} of `{name}`", index + 1), value, expected)?;
    }
    Ok(())
}

type Signature<'a> = (String, &'a [Variable], &'a [Variable]);

fn signature<'a>(
    context: Context<'a>,
    callee: &Operand,
    prototype: &Operand,
) -> Result<Signature<'a>, Complaint> {
    match (callee, prototype) {
        (Operand::Symbol(Symbol::Function(id), 0), Operand::Sink) => direct(context, id.0 as usize),
        (Operand::Symbol(..), Operand::Sink) => Err(Complaint::new("the callee is no function")),
        (Operand::Register(id), Operand::Prototype(index)) => {
            holds_function(context, id.index())?;
            let prototype = context.prototypes.get(*index as usize);
            let prototype = prototype.ok_or_else(|| Complaint::new("no such prototype"))?;
            Ok((prototype.name.clone(), &prototype.returns, &prototype.params))
        }
        (Operand::Register(id), Operand::Targets(index)) => {
            holds_function(context, id.index())?;
            match context.targets.get(*index as usize).map(|list| &list.targets) {
                Some(Targets::Call(functions)) if !functions.is_empty() => {
                    direct(context, functions[0].0 as usize)
                }
                _ => Err(Complaint::new("an indirect call needs a `.calltargets` list")),
            }
        }
        (Operand::Register(_), _) => Err(Complaint::new("an indirect call needs a prototype")
            .hint("declare it: `p: .callprototype _ (.param .b32 _);`")),
        _ => Err(Complaint::new("the callee is neither a function nor a register")),
    }
}

fn direct(context: Context<'_>, index: usize) -> Result<Signature<'_>, Complaint> {
    let function = context.functions.get(index);
    let function = function.ok_or_else(|| Complaint::new("the callee is not in the module"))?;
    Ok((function.name.clone(), &function.returns, &function.params))
}

fn holds_function(context: Context<'_>, index: usize) -> Checked {
    let register = context.registers.get(index);
    let fits = |ty: Type| matches!(ty, Type::B64 | Type::U64 | Type::S64 | Type::B32 | Type::U32);
    match register {
        Some(register) if fits(register.ty) => Ok(()),
        _ => Err(Complaint::new("the callee of an indirect call is an address in a register")),
    }
}

fn same_count(name: &str, what: &str, expected: usize, given: usize) -> Checked {
    if expected == given {
        return Ok(());
    }
    Err(Complaint::new(format!("`{name}` has {expected} {what}, but {given} are written")))
}

fn check_value(context: Context<'_>, what: &str, value: &Operand, expected: &Variable) -> Checked {
    let size = match value {
        Operand::Symbol(Symbol::Local(index), 0) => {
            let variable = context.locals.get(*index as usize);
            variable.filter(|v| v.space == StateSpace::Param).map(Variable::size_bytes)
        }
        Operand::Symbol(Symbol::Parameter(index), 0) => {
            context.params.get(*index as usize).map(Variable::size_bytes)
        }
        Operand::Symbol(Symbol::Return(index), 0) => {
            context.returns.get(*index as usize).map(Variable::size_bytes)
        }
        Operand::Register(id) => {
            let register = context.registers.get(id.index());
            register.filter(|r| r.ty != Type::Pred).map(|r| u64::from(r.ty.bytes()))
        }
        Operand::Immediate(_) | Operand::Float32(_) | Operand::Float64(_) | Operand::Sink => {
            Some(expected.size_bytes())
        }
        _ => None,
    };
    match size {
        Some(size) if size == expected.size_bytes() || expected.is_unsized() => Ok(()),
        Some(size) => Err(Complaint::new(format!(
            "{what} has {} bytes, but a value of {size} is written",
            expected.size_bytes()
        ))),
        None => Err(Complaint::new(format!("{what} needs a `.param` variable or a value"))),
    }
}
