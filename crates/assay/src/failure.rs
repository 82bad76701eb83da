//! What is written to stderr when a request cannot be served, and the exit code that goes with it.

use std::error::Error;
use std::fmt;

use assay_record::ExitCode;
use serde::{Deserialize, Serialize};

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

/// A failure on its way from one process to another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Told {
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
    exit: u8,
}

impl Failure {
    /// The failure as another process may be told of it.
    pub(crate) fn told(self) -> Told {
        let Failure { message, causes, hint, exit } = self;
        Told { message, causes, hint, exit: exit.code() }
    }

    /// Adds a cause that is only known as words.
    pub(crate) fn because(mut self, cause: String) -> Failure {
        self.causes.push(cause);
        self
    }

    /// The message and its first cause, as words within other words.
    pub(crate) fn words(&self) -> String {
        let cause = self.causes.first().map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("{}{cause}", self.message)
    }
}

impl From<Told> for Failure {
    fn from(told: Told) -> Failure {
        let Told { message, causes, hint, exit } = told;
        let exit = ExitCode::from_code(exit).unwrap_or(ExitCode::Internal);
        Failure { message, causes, hint, exit }
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
