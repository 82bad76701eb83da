//! What a kernel prints in a child process: the driver writes it to the process's own streams.
//!
//! The emulator hands a kernel's text to the report by itself. On a GPU `printf` ends on the
//! child's stdout, between the messages to the parent, and a failed `assert` on its stderr.

use assay_record::KernelResult;

/// The most text that is kept of one child.
const MOST_BYTES: usize = 64 << 10;
/// The most that a note shows.
const LINES: usize = 5;
const CHARACTERS: usize = 400;

/// The first lines that a child's kernel printed, and how many there were in all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Printed {
    lines: Vec<String>,
    bytes: usize,
    count: u64,
}

impl Printed {
    /// Takes a line that is no message to the parent.
    pub(crate) fn add(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        self.count += 1;
        if self.bytes < MOST_BYTES {
            let kept: String = text.chars().take(CHARACTERS).collect();
            self.bytes += kept.len();
            self.lines.push(kept);
        }
    }

    /// The text as a note; none where nothing was printed.
    pub(crate) fn note(&self) -> Option<String> {
        let shown: Vec<&str> = self.lines.iter().take(LINES).map(String::as_str).collect();
        let text: String = shown.join(" | ").chars().take(CHARACTERS).collect();
        let more = match self.count.saturating_sub(shown.len() as u64) {
            0 => String::new(),
            1 => " and 1 more line".to_owned(),
            more => format!(" and {more} more lines"),
        };
        (self.count > 0).then(|| format!("it printed in its runs: {text}{more}"))
    }

    /// The last lines, for the words about a process that died.
    pub(crate) fn last_words(&self) -> Option<String> {
        let last = &self.lines[self.lines.len().saturating_sub(LINES)..];
        (!last.is_empty()).then(|| format!("; it had printed: {}", last.join(" | ")))
    }
}

/// Whether a line of stderr is what CUDA's `assert` writes.
pub(crate) fn is_assertion(line: &str) -> bool {
    line.contains("Assertion `") && line.trim_end().ends_with("failed.")
}

/// Adds what a kernel printed, and an assertion that failed, to the gates it was printed in.
pub(crate) fn attach(result: &mut KernelResult, printed: &Printed, assertion: Option<&str>) {
    let assertion = assertion.map(|line| format!("its assertion failed: {}", line.trim()));
    let notes: Vec<String> = printed.note().into_iter().chain(assertion).collect();
    for gate in &mut result.gates {
        gate.notes.extend(notes.iter().cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(lines: impl IntoIterator<Item = String>) -> Printed {
        let mut printed = Printed::default();
        lines.into_iter().for_each(|line| printed.add(line.as_bytes()));
        printed
    }

    #[test]
    fn a_note_shows_the_first_lines_and_counts_the_others() {
        assert_eq!(printed([]).note(), None);
        assert_eq!(printed([" \n".to_owned()]).note(), None);
        let few = printed(["a".to_owned(), String::new(), "b\r".to_owned()]);
        assert_eq!(few.note().unwrap(), "it printed in its runs: a | b");
        let many = printed((0..100).map(|n| n.to_string()));
        assert_eq!(
            many.note().unwrap(),
            "it printed in its runs: 0 | 1 | 2 | 3 | 4 and 95 more lines"
        );
    }

    #[test]
    fn a_kernel_that_prints_without_end_takes_bounded_memory() {
        let long = printed((0..100_000).map(|n| format!("{n} {}", "x".repeat(1000))));
        assert!(long.bytes < MOST_BYTES + CHARACTERS && long.count == 100_000);
        assert!(long.note().unwrap().len() < 500);
    }

    #[test]
    fn only_what_cuda_s_assert_writes_is_an_assertion() {
        let line =
            "a.cu:12: void k(int): block: [0,0,0], thread: [3,0,0] Assertion `x > 0` failed.";
        assert!(is_assertion(line));
        assert!(!is_assertion("k: 12 s in this launch"));
    }
}
