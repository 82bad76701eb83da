//! Text told apart into code, comments and strings, line by line.

use std::path::{Path, PathBuf};

/// A file and its text in three layers of the same shape.
pub(super) struct Source {
    /// The path from the root of the repository.
    pub(super) path: PathBuf,
    /// The lines as they are.
    pub(super) lines: Vec<String>,
    /// The text with comments and the contents of strings blanked.
    pub(super) code: String,
    /// The lines of the comments, with all else blanked.
    pub(super) comments: Vec<String>,
}

impl Source {
    pub(super) fn new(path: &Path, text: &str) -> Self {
        let lines = text.lines().map(str::to_owned).collect();
        let is_code = path
            .extension()
            .is_some_and(|extension| extension == "rs" || extension == "cu" || extension == "cuh");
        let (code, comments) =
            if is_code { Scanner::split(text) } else { (text.to_owned(), String::new()) };
        let comments = comments.lines().map(str::to_owned).collect();
        Source { path: path.to_owned(), lines, code, comments }
    }

    pub(super) fn has_extension(&self, wanted: &str) -> bool {
        self.path.extension().is_some_and(|extension| extension == wanted)
    }

    pub(super) fn is_rust(&self) -> bool {
        self.has_extension("rs")
    }

    pub(super) fn is_cuda(&self) -> bool {
        self.has_extension("cu") || self.has_extension("cuh")
    }

    /// The crate that the file belongs to: its folder below `crates/`, or `xtask`.
    pub(super) fn crate_name(&self) -> Option<&str> {
        let mut parts = self.path.iter().filter_map(|part| part.to_str());
        match parts.next()? {
            "crates" => parts.next(),
            "xtask" => Some("xtask"),
            _ => None,
        }
    }

    /// The line, from 1, of a place in the code.
    pub(super) fn line_of(&self, offset: usize) -> usize {
        self.code[..offset].matches('\n').count() + 1
    }

    /// The words of the code and where they are.
    pub(super) fn words(&self) -> impl Iterator<Item = (usize, &str)> {
        words(&self.code)
    }
}

/// Whether a character can be part of a name.
pub(super) fn is_name(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + code[rest..].find(is_name)?;
        let length = code[start..].find(|c| !is_name(c)).unwrap_or(code.len() - start);
        rest = start + length;
        Some((start, &code[start..rest]))
    })
}

/// The scanner's place in the text and the two layers that it writes.
struct Scanner {
    text: Vec<char>,
    at: usize,
    code: String,
    comments: String,
}

/// The layer that a character belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Layer {
    Code,
    Comment,
    Content,
}

impl Scanner {
    fn split(text: &str) -> (String, String) {
        let mut scanner = Scanner {
            text: text.chars().collect(),
            at: 0,
            code: String::with_capacity(text.len()),
            comments: String::with_capacity(text.len()),
        };
        while scanner.at < scanner.text.len() {
            scanner.step();
        }
        (scanner.code, scanner.comments)
    }

    fn peek(&self, ahead: usize) -> char {
        self.text.get(self.at + ahead).copied().unwrap_or('\0')
    }

    /// Moves one character on and puts it into its layer.
    fn take(&mut self, layer: Layer) {
        let Some(&character) = self.text.get(self.at) else { return };
        let blank = if character == '\n' { '\n' } else { ' ' };
        self.code.push(if layer == Layer::Code { character } else { blank });
        self.comments.push(if layer == Layer::Comment { character } else { blank });
        self.at += 1;
    }

    fn take_while(&mut self, layer: Layer, more: impl Fn(&Scanner) -> bool) {
        while self.at < self.text.len() && more(self) {
            self.take(layer);
        }
    }

    fn step(&mut self) {
        match (self.peek(0), self.peek(1)) {
            ('/', '/') => self.take_while(Layer::Comment, |scanner| scanner.peek(0) != '\n'),
            ('/', '*') => self.block_comment(),
            ('"', _) => self.string(),
            ('r', '"' | '#') if self.starts_raw_string() => self.raw_string(),
            ('\'', _) => self.character_or_lifetime(),
            _ => self.take(Layer::Code),
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.text.len() {
            let step = match (self.peek(0), self.peek(1)) {
                ('/', '*') => 1,
                ('*', '/') => -1,
                _ => 0,
            };
            depth += step;
            self.take(Layer::Comment);
            if step != 0 {
                self.take(Layer::Comment);
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.take(Layer::Code);
        while self.at < self.text.len() && self.peek(0) != '"' {
            if self.peek(0) == '\\' {
                self.take(Layer::Content);
            }
            self.take(Layer::Content);
        }
        self.take(Layer::Code);
    }

    /// Whether the `r` here begins a raw string, after `b` or `c` perhaps, and is no raw name.
    fn starts_raw_string(&self) -> bool {
        let before = |back: usize| self.at.checked_sub(back).map_or(' ', |index| self.text[index]);
        let prefix = usize::from(matches!(before(1), 'b' | 'c'));
        let hashes = self.text[self.at + 1..].iter().take_while(|&&c| c == '#').count();
        !is_name(before(1 + prefix)) && self.peek(1 + hashes) == '"'
    }

    fn raw_string(&mut self) {
        let hashes = self.text[self.at + 1..].iter().take_while(|&&c| c == '#').count();
        for _ in 0..hashes + 2 {
            self.take(Layer::Code);
        }
        let closes = |scanner: &Scanner| {
            scanner.peek(0) == '"' && (1..=hashes).all(|ahead| scanner.peek(ahead) == '#')
        };
        self.take_while(Layer::Content, |scanner| !closes(scanner));
        for _ in 0..=hashes {
            self.take(Layer::Code);
        }
    }

    fn character_or_lifetime(&mut self) {
        let escaped = self.peek(1) == '\\';
        if !escaped && self.peek(2) != '\'' {
            return self.take(Layer::Code);
        }
        self.take(Layer::Code);
        if escaped {
            self.take(Layer::Content);
        }
        self.take(Layer::Content);
        self.take_while(Layer::Content, |scanner| scanner.peek(0) != '\'');
        self.take(Layer::Code);
    }
}
