//! How a run ends, as the number that the process returns.

/// The exit codes of the command line. They are stable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum ExitCode {
    /// Everything asked for holds.
    Holds = 0,
    /// Problems were found: a failed gate, a green control, a limit problem, a stale known entry.
    Problems = 1,
    /// The request is wrong: an unknown option, a manifest that does not parse, nothing selected.
    Request = 2,
    /// There is no such device.
    NoDevice = 3,
    /// A measurement was not stable enough to say anything.
    Unstable = 4,
    /// Assay itself failed.
    Internal = 70,
}

impl ExitCode {
    /// All codes, the one that wins over all others first.
    pub const BY_PRECEDENCE: [ExitCode; 6] = [
        ExitCode::Internal,
        ExitCode::Request,
        ExitCode::NoDevice,
        ExitCode::Unstable,
        ExitCode::Problems,
        ExitCode::Holds,
    ];

    /// The number that the process returns.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The code of that number.
    #[must_use]
    pub fn from_code(code: u8) -> Option<ExitCode> {
        Self::BY_PRECEDENCE.into_iter().find(|exit| exit.code() == code)
    }

    /// What the code means, in a few words.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            ExitCode::Holds => "everything asked for holds",
            ExitCode::Problems => "problems were found",
            ExitCode::Request => "the request is wrong",
            ExitCode::NoDevice => "there is no such device",
            ExitCode::Unstable => "a measurement was unstable",
            ExitCode::Internal => "an internal error",
        }
    }

    /// The code of a run in which both happened: 70, 2, 3, 4, 1, 0 in that order.
    #[must_use]
    pub fn worst(self, other: ExitCode) -> ExitCode {
        let happened = |exit: &ExitCode| *exit == self || *exit == other;
        Self::BY_PRECEDENCE.into_iter().find(happened).unwrap_or(ExitCode::Internal)
    }
}
