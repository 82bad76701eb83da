//! The token without which no kernel is timed: proof that its checks passed, or a confession.

use serde::{Deserialize, Serialize};

use crate::{KernelResult, Outcome};

/// Proof that a kernel passed every gate that it was asked. Only [`Checked::of`] makes one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    kernel: String,
    gates: u32,
}

/// Why a kernel's result is no proof.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{kernel}` is not timed: {reason}")]
pub struct NotChecked {
    /// The kernel.
    pub kernel: String,
    /// What its checks found.
    pub reason: String,
}

impl Checked {
    /// The token of a kernel whose gates all passed.
    ///
    /// # Errors
    /// [`NotChecked`] with the first gate that did not pass and why.
    pub fn of(result: &KernelResult) -> Result<Checked, NotChecked> {
        let refuse = |reason: String| NotChecked { kernel: result.kernel.clone(), reason };
        if let Some(error) = &result.error {
            return Err(refuse(format!("its checks could not be run: {error}")));
        }
        let holds = |outcome| matches!(outcome, Outcome::Pass | Outcome::NotApplicable);
        if let Some(gate) = result.gates.iter().find(|gate| !holds(gate.outcome)) {
            let (name, outcome, why) = (gate.gate, gate.outcome, &gate.reason);
            return Err(refuse(format!("gate {name} says {outcome}: {why}")));
        }
        if !result.passes() {
            return Err(refuse("no gate was asked".to_owned()));
        }
        Ok(Checked { kernel: result.kernel.clone(), gates: result.gates.len() as u32 })
    }

    /// The kernel.
    #[must_use]
    pub fn kernel(&self) -> &str {
        &self.kernel
    }
}

/// Whether a timed kernel is known to be right.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "standing", rename_all = "snake_case")]
pub enum Standing {
    /// It passed its gates, in this run and on this device.
    Checked {
        /// Gates that it was asked.
        gates: u32,
    },
    /// Nobody checked it: its time may be that of a kernel that does nothing right.
    Unchecked {
        /// Why not.
        reason: String,
    },
}

impl From<&Checked> for Standing {
    fn from(checked: &Checked) -> Standing {
        Standing::Checked { gates: checked.gates }
    }
}

impl Standing {
    /// Of a kernel that is timed though nobody checked it.
    pub fn unchecked(reason: impl Into<String>) -> Standing {
        Standing::Unchecked { reason: reason.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gate, GateResult};

    fn gate(gate: Gate, outcome: Outcome) -> GateResult {
        let reason = "for a reason".to_owned();
        let (findings, notes, chips) = (Vec::new(), Vec::new(), Vec::new());
        GateResult { gate, outcome, reason, cases: 1, margin: None, findings, notes, chips }
    }

    fn result(gates: Vec<GateResult>, error: Option<&str>) -> KernelResult {
        let (kernel, error) = ("scale".to_owned(), error.map(str::to_owned));
        KernelResult { kernel, control_for: None, gates, error, build: None, seconds: 0.0 }
    }

    #[test]
    fn only_a_kernel_whose_gates_all_passed_gets_the_token() {
        let passed = gate(Gate::Shapes, Outcome::Pass);
        let nothing = gate(Gate::NonFinite, Outcome::NotApplicable);
        let token = Checked::of(&result(vec![passed.clone(), nothing.clone()], None));
        assert_eq!(token.map(|token| Standing::from(&token)), Ok(Standing::Checked { gates: 2 }));
        for outcome in [Outcome::Fail, Outcome::Known, Outcome::Unproven, Outcome::Unsupported] {
            let gates = vec![passed.clone(), gate(Gate::NonFinite, outcome)];
            let refused = Checked::of(&result(gates, None));
            assert!(refused.is_err_and(|refused| refused.reason.contains("for a reason")));
        }
        assert!(Checked::of(&result(vec![], None)).is_err());
        assert!(Checked::of(&result(vec![nothing], None)).is_err());
        assert!(Checked::of(&result(vec![passed], Some("broken"))).is_err());
    }
}
