//! The emulator's refusals and faults as a device's errors.

use assay_emulator::{AllocationError, Fault, FaultKind as Cause};

use crate::error::{DeviceError, FaultKind, KernelFault, Rejection};

pub(super) fn rejected(name: &str, error: assay_ptx::ParseError) -> DeviceError {
    DeviceError::ModuleRejected(Box::new(Rejection {
        image: name.to_string(),
        reason: error.message,
        log: String::new(),
        line: Some(error.line),
        source_line: Some(error.source_line),
        hint: error.hint,
    }))
}

pub(super) fn not_compiled(name: &str, reason: &str) -> DeviceError {
    DeviceError::ModuleRejected(Box::new(Rejection {
        image: name.to_string(),
        reason: reason.to_string(),
        ..Rejection::default()
    }))
}

/// The machine refused what this device had checked already.
pub(super) fn refused(call: &str, error: &AllocationError) -> DeviceError {
    DeviceError::Api {
        call: format!("the emulator's {call}"),
        code: 1,
        name: "a refusal".to_string(),
        text: error.to_string(),
    }
}

pub(super) fn translate_fault(image: &str, fault: Fault) -> DeviceError {
    let hint = fault.hint().to_string();
    let place = fault.line.map(|line| format!("{image}:{line}"));
    let kind = match &fault.kind {
        Cause::Unsupported { opcode } => {
            let at = place.map(|place| format!(" at {place}")).unwrap_or_default();
            return DeviceError::Unsupported { what: format!("{opcode}{at}") };
        }
        Cause::InvalidLaunch { reason } => {
            let (symbol, reason) = (fault.symbol, reason.clone());
            return DeviceError::InvalidLaunch { symbol, reason, hint };
        }
        Cause::SymbolNotFound { available } => {
            let (symbol, available) = (fault.symbol, available.clone());
            return DeviceError::KernelNotFound { symbol, available };
        }
        Cause::OutOfBounds { .. } | Cause::ReadOnlyWrite { .. } | Cause::InvalidAddress { .. } => {
            FaultKind::OutOfBounds
        }
        Cause::Misaligned { .. } => FaultKind::Misaligned,
        Cause::Runaway { .. } => FaultKind::Hang,
        Cause::Deadlock { .. } => FaultKind::Deadlock,
        Cause::BarrierMisuse { .. }
        | Cause::ClusterMisuse { .. }
        | Cause::InactiveLaneRead { .. }
        | Cause::WarpMisuse { .. } => FaultKind::Synchronization,
        Cause::Trap | Cause::Assertion { .. } => FaultKind::Trap,
        _ => FaultKind::Other,
    };
    let description = describe(&fault);
    DeviceError::Fault(KernelFault {
        kind,
        description,
        place,
        hint: Some(hint),
        lost_context: false,
    })
}

/// The kernel, what happened, and in which thread, without the PTX line, which is the place.
fn describe(fault: &Fault) -> String {
    let mut text = format!("{}: {}", fault.symbol, fault.kind);
    if fault.line.is_some() {
        let ([a, b, c], [x, y, z]) = (fault.block, fault.thread);
        text = format!("{text}, in block ({a},{b},{c}), thread ({x},{y},{z})");
    }
    if let Some((file, line)) = &fault.source {
        text = format!("{text} ({file}:{line})");
    }
    match last_lines(&fault.output) {
        Some(printed) => format!("{text}; it had printed: {printed}"),
        None => text,
    }
}

/// The end of what a kernel printed, on one line.
fn last_lines(output: &str) -> Option<String> {
    const LINES: usize = 3;
    const CHARACTERS: usize = 300;
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let kept = lines.get(lines.len().saturating_sub(LINES)..)?.join(" | ");
    let long = kept.chars().count().saturating_sub(CHARACTERS);
    let end: String = kept.chars().skip(long).collect();
    (!end.is_empty()).then_some(end)
}
