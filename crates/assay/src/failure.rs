//! What is written to stderr when a request cannot be served, and the exit code that goes with it.

use std::error::Error;
use std::fmt;

use assay_record::ExitCode;

/// A reason to stop, shown as `error:`, `caused by:`, and after a blank line `hint:`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
    /// How the process ends.
    pub(crate) exit: ExitCode,
}

impl Failure {
    /// A wrong request.
    pub(crate) fn request(message: impl Into<String>) -> Failure {
        Failure::new(ExitCode::Request, message)
    }

    pub(crate) fn new(exit: ExitCode, message: impl Into<String>) -> Failure {
        Failure { message: message.into(), causes: Vec::new(), hint: None, exit }
    }

    /// Adds an error and the chain of its sources as causes.
    pub(crate) fn caused_by(mut self, error: &dyn Error) -> Failure {
        let mut next = Some(error);
        while let Some(error) = next {
            let text = error.to_string();
            if self.causes.last() != Some(&text) {
                self.causes.push(text);
            }
            next = error.source();
        }
        self
    }

    /// The failure of a run in which something else went wrong too.
    pub(crate) fn beside(mut self, exit: ExitCode) -> Failure {
        self.exit = self.exit.worst(exit);
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<Option<String>>) -> Failure {
        self.hint = hint.into().or(self.hint);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "error: {}", self.message)?;
        for cause in &self.causes {
            writeln!(formatter, "  caused by: {cause}")?;
        }
        if let Some(hint) = &self.hint {
            writeln!(formatter, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Failure;

    #[test]
    fn a_failure_shows_its_causes_and_a_hint_after_a_blank_line() {
        let cause = std::io::Error::other("the disk is full");
        let failure = Failure::request("cannot write the report").caused_by(&cause);
        let shown = "error: cannot write the report\n  caused by: the disk is full\n";
        assert_eq!(failure.to_string(), shown);
        let failure = failure.hint("make room".to_owned());
        assert_eq!(failure.to_string(), format!("{shown}\nhint: make room\n"));
    }
}
