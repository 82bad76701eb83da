//! Programs around `mbarrier`: what threads write before they arrive, others read after they
//! waited. One part of these runs around the form's own instruction.

use assay_ptx::forms::Form;
use assay_ptx::{Base, Modifier, StateSpace, Type};

use crate::program::{Check, Skip, instruction};
use crate::values::Limit;
use crate::writer::{THREADS, Writer};

/// Bytes that each thread expects and completes.
const BYTES: &str = "16";

/// Makes all blocks of a cluster wait for each other.
pub(crate) const CLUSTER_SYNC: &str =
    "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;";

/// The steps of a program; each may be replaced by the form's own.
struct Steps {
    init: String,
    before: String,
    arrive: String,
    wait: String,
    /// Threads arrive again, fewer of them, and wait for the phase behind.
    again: Option<String>,
}

/// Registers that all steps share.
struct Names {
    /// The object of the own block.
    own: String,
    /// The object as the form names it: in its space, or of the other block.
    at: String,
    /// Whether that is another block's.
    remote: bool,
    state: String,
    done: String,
}

/// `mbarrier.*`, `cp.async.mbarrier.arrive`.
pub(crate) fn mbarrier(form: &Form, writer: &mut Writer) -> Result<Check, Skip> {
    let names = names(form, writer);
    let mut steps = Steps {
        init: format!("mbarrier.init.shared.b64 [{}], {THREADS};", names.own),
        before: String::new(),
        arrive: plain_arrival(&names),
        wait: format!("mbarrier.try_wait.parity.shared.b64 {}, [{}], 0;", names.done, names.own),
        again: None,
    };
    let at = format!("[{}]", names.at);
    let text = &spelled(form);
    match form.opcode.base {
        Base::MbarrierInit => steps.init = instruction(text, &[at, THREADS.to_string()]),
        Base::MbarrierInval => invalidate(&mut steps, &instruction(text, &[at])),
        Base::MbarrierExpectTx => {
            let complete = transactions("complete_tx", &names);
            let expect = instruction(text, &[at, BYTES.to_string()]);
            steps.arrive = format!("{expect}\n{}\n{complete}", steps.arrive);
        }
        Base::MbarrierCompleteTx => {
            let expect = transactions("expect_tx", &names);
            let complete = instruction(text, &[at, BYTES.to_string()]);
            steps.arrive = format!("{expect}\n{}\n{complete}", steps.arrive);
        }
        Base::MbarrierArrive | Base::MbarrierArriveDrop => {
            arrive(form, writer, &names, &mut steps);
        }
        Base::MbarrierTestWait | Base::MbarrierTryWait => wait(form, writer, &names, &mut steps),
        Base::MbarrierPendingCount => {
            let count = counted(writer, &names, &mut steps, "mbarrier.arrive.noComplete.shared");
            steps.before = steps.before.replace("PENDING", text);
            return Ok(finish(writer, &names, &steps, Some(&count)));
        }
        Base::CpAsyncMbarrierArrive => return Ok(copies(form, writer, &names, &mut steps)),
        _ => return Err("an operation of mbarrier that no template makes"),
    }
    Ok(finish(writer, &names, &steps, None))
}

/// The opcode with its parts in the order that the assembler wants.
fn spelled(form: &Form) -> String {
    let text = &form.opcode.text;
    let first = [".noComplete", ".expect_tx", ".parity"].into_iter().find(|part| {
        // The base `mbarrier.expect_tx` has its name from one of them.
        text.contains(part) && !text.starts_with(&format!("mbarrier{part}"))
    });
    let base = form.opcode.base.name();
    match (first, text.strip_prefix(base)) {
        (Some(part), Some(rest)) => format!("{base}{part}{}", rest.replacen(part, "", 1)),
        _ => text.clone(),
    }
}

fn names(form: &Form, writer: &mut Writer) -> Names {
    writer.declare(".shared .align 8 .b64 gate;");
    let own = writer.register(Type::B64, false);
    writer.line(&format!("mov.u64 {own}, gate;"));
    let at = match form.opcode.space() {
        StateSpace::Generic => {
            let generic = writer.register(Type::B64, false);
            writer.line(&format!("cvta.shared.u64 {generic}, {own};"));
            generic
        }
        StateSpace::SharedCluster => mapped(writer, &own),
        _ => own.clone(),
    };
    let remote = form.opcode.space() == StateSpace::SharedCluster;
    let state = writer.register(Type::B64, false);
    let done = writer.register(Type::Pred, false);
    Names { own, at, remote, state, done }
}

/// A shared address as the other block of a cluster of two has it.
pub(crate) fn mapped(writer: &mut Writer, own: &str) -> String {
    writer.cluster = 2;
    let (rank, there) = (writer.register(Type::B32, false), writer.register(Type::B64, false));
    writer.line(&format!("mov.u32 {rank}, %cluster_ctarank;"));
    writer.line(&format!("xor.b32 {rank}, {rank}, 1;"));
    writer.line(&format!("mapa.shared::cluster.u64 {there}, {own}, {rank};"));
    there
}

fn plain_arrival(names: &Names) -> String {
    if names.remote {
        return format!("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [{}];", names.at);
    }
    format!("mbarrier.arrive.shared.b64 {}, [{}];", names.state, names.own)
}

/// `expect_tx` or `complete_tx` of the object that the program's threads arrive at.
fn transactions(operation: &str, names: &Names) -> String {
    let (space, at) =
        if names.remote { ("shared::cluster", &names.at) } else { ("shared::cta", &names.own) };
    format!("mbarrier.{operation}.relaxed.cluster.{space}.b64 [{at}], {BYTES};")
}

/// The object becomes none, and then one again.
fn invalidate(steps: &mut Steps, invalidates: &str) {
    let init = steps.init.clone();
    steps.init = format!("{init}\n{invalidates}\n{init}");
}

fn lanes_below(writer: &mut Writer, limit: u32) -> String {
    let below = writer.register(Type::Pred, false);
    writer.line(&format!("setp.lt.u32 {below}, %lane, {limit};"));
    below
}

fn arrive(form: &Form, writer: &mut Writer, names: &Names, steps: &mut Steps) {
    let opcode = &form.opcode;
    let text = &spelled(form);
    let drops = opcode.base == Base::MbarrierArriveDrop;
    let state = if names.remote { "_".to_string() } else { names.state.clone() };
    let mut operands = vec![state, format!("[{}]", names.at)];
    let plain = plain_arrival(names);
    let few = lanes_below(writer, if drops { 32 } else { 64 });
    let first = lanes_below(writer, 1);
    let some = lanes_below(writer, 64);
    let (left, leaves) = if opcode.has(Modifier::NoComplete) {
        operands.push("1".to_string());
        let one = instruction(text, &operands);
        steps.before = format!("@{first} {one}\nbar.sync 0;");
        steps.arrive = format!("@!{first} {plain}");
        (first.clone(), drops)
    } else if opcode.has(Modifier::ExpectTx) {
        operands.push(BYTES.to_string());
        let own = instruction(text, &operands);
        let complete = transactions("complete_tx", names);
        steps.arrive = if drops {
            format!("@{some} {own}\n@{some} {complete}\n@!{some} {plain}")
        } else {
            format!("{own}\n{complete}")
        };
        (some.clone(), drops)
    } else if form.operands.len() > 2 {
        // Some arrive for two.
        operands.push("2".to_string());
        let own = instruction(text, &operands);
        let others = if drops { format!("\n@!{some} {plain}") } else { String::new() };
        steps.arrive = format!("@{few} {own}{others}");
        (some.clone(), drops)
    } else {
        let own = instruction(text, &operands);
        steps.arrive = if drops { format!("@{some} {own}\n@!{some} {plain}") } else { own };
        (some.clone(), drops)
    };
    if leaves {
        steps.again = Some(format!("@!{left} {plain}"));
    }
}

fn wait(form: &Form, writer: &mut Writer, names: &Names, steps: &mut Steps) {
    let opcode = &form.opcode;
    let phase = if opcode.has(Modifier::Parity) { "0".to_string() } else { names.state.clone() };
    let mut operands = vec![names.done.clone(), format!("[{}]", names.at), phase];
    if form.operands.len() > 3 {
        let hint = writer.register(Type::B32, false);
        writer.line(&format!("mov.u32 {hint}, 1000;"));
        operands.push(hint);
    }
    steps.wait = instruction(&spelled(form), &operands);
}

/// Thread 0 arrives first, and all learn what was pending before: a register.
fn counted(writer: &mut Writer, names: &Names, steps: &mut Steps, arrives: &str) -> String {
    writer.declare(".shared .align 4 .b32 note;");
    let (count, first) = (writer.register(Type::B32, false), lanes_below(writer, 1));
    let Names { own, state, .. } = names;
    steps.before = format!(
        "@{first} {arrives}.b64 {state}, [{own}], 1;
@{first} PENDING {count}, {state};
@{first} st.shared.b32 [note], {count};
bar.sync 0;
ld.shared.b32 {count}, [note];"
    );
    steps.arrive = format!("@!{first} {}", steps.arrive);
    count
}

/// `cp.async` into the thread's slot, which arrives when it is done.
fn copies(form: &Form, writer: &mut Writer, names: &Names, steps: &mut Steps) -> Check {
    let arrives = instruction(&form.opcode.text, &[format!("[{}]", names.at)]);
    let counted = form.opcode.has(Modifier::Noinc);
    let own = if counted { String::new() } else { format!("\n{}", steps.arrive) };
    steps.arrive = format!("cp.async.ca.shared.global [%slot], [%in+8], 4;\n{arrives}{own}");
    let check = finish(writer, names, steps, None);
    // What is copied lies behind what was there before.
    writer.raw_input(Type::B32, Limit::Any);
    check
}

/// Writes the steps out.
fn finish(writer: &mut Writer, names: &Names, steps: &Steps, count: Option<&str>) -> Check {
    writer.declare(&format!(".shared .align 4 .b8 slots[{}];", 4 * THREADS));
    writer.declare(".reg .b32 %away;\n.reg .b64 %slot, %other;\n.reg .pred %one;");
    let (value, result) = (writer.input(Type::B32, Limit::Any), writer.register(Type::B32, false));
    writer.line("mov.u64 %slot, slots;\nmad.wide.u32 %slot, %lane, 4, %slot;");
    writer.line("mov.u64 %other, slots;\nxor.b32 %away, %lane, 64;");
    writer.line("mad.wide.u32 %other, %away, 4, %other;");
    // Who arrives at another block's object tells it of what it wrote in its own block.
    let (meet, load) = if names.remote {
        let there = mapped(writer, "%other");
        let fence = "fence.acq_rel.cluster;";
        (CLUSTER_SYNC, format!("{fence}\nld.shared::cluster.b32 {result}, [{there}];"))
    } else {
        ("bar.sync 0;", format!("ld.shared.b32 {result}, [%other];"))
    };
    let Steps { init, before, arrive, wait, again } = steps;
    let done = &names.done;
    writer.line(&format!("setp.ne.u32 %one, %lane, 0;\n@%one bra MADE;\n{init}\nMADE:\n{meet}"));
    writer.line(&format!("st.shared.b32 [%slot], {value};\n{before}"));
    if names.remote {
        writer.line("fence.acq_rel.cluster;");
    }
    writer.line(&format!("{arrive}\nWAIT:\n{wait}\n@!{done} bra WAIT;"));
    if let Some(again) = again {
        let next = format!("mbarrier.try_wait.parity.shared.b64 {done}, [{}], 1;", names.own);
        writer.line(&format!("{meet}\n{again}\nAGAIN:\n{next}\n@!{done} bra AGAIN;"));
    }
    writer.line(&load);
    if names.remote {
        writer.line(CLUSTER_SYNC);
    }
    writer.output(&result, Type::B32);
    if let Some(count) = count {
        writer.output(count, Type::B32);
    }
    Check::Exact
}
