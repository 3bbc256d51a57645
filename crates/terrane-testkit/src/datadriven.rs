//! Tests as text: a directive with its input, `----`, and the expected output.
//!
//! ```text
//! pick design=leveling
//! L0 r1: 1=a..=z:64MiB
//! ----
//! L0 r1: 1 -> L1 new run
//! ```
//!
//! Cases are separated by blank lines; `#` starts a comment between cases. With `TERRANE_REWRITE=1`
//! in the environment, the actual output replaces the expected one, so that a review shows changes
//! of behaviour as changes of text.

use std::fmt::Write;
use std::path::Path;

/// A test case: a directive with its arguments and its input.
#[derive(Debug, Clone)]
pub struct Case {
    /// The first word of the first line.
    pub directive: String,
    /// The `name=value` words after it; a value may be quoted with `'`.
    pub arguments: Vec<(String, String)>,
    /// The lines up to `----`.
    pub input: String,
    /// The line of the case in its file, for messages.
    pub line: usize,
}

impl Case {
    /// The value of an argument, if it is given.
    pub fn argument(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Passes every case of the file to `answer`, and compares the result with the expected output.
///
/// # Panics
/// When the file cannot be read, or a result differs from the expected output.
#[allow(clippy::panic, reason = "a failed test is a panic")]
pub fn run(path: impl AsRef<Path>, mut answer: impl FnMut(&Case) -> String) {
    let path = path.as_ref();
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut rewritten = String::new();
    let mut failures = String::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        if line.trim().is_empty() || line.starts_with('#') {
            rewritten.push_str(line);
            rewritten.push('\n');
            continue;
        }
        let mut case = head(line, number + 1);
        for (_, line) in lines.by_ref().take_while(|(_, line)| *line != "----") {
            case.input.push_str(line);
            case.input.push('\n');
        }
        let mut expected = String::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.trim().is_empty()) {
            expected.push_str(line);
            expected.push('\n');
        }
        let mut actual = answer(&case).trim_end().to_owned();
        actual.push('\n');
        if actual != expected {
            let place = format!("{}:{}", path.display(), case.line);
            let _ = writeln!(failures, "{place}: expected\n{expected}but the answer is\n{actual}");
        }
        let _ = write!(rewritten, "{line}\n{}----\n{actual}", case.input);
    }
    if std::env::var_os("TERRANE_REWRITE").is_some() {
        std::fs::write(path, rewritten)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    } else {
        assert!(failures.is_empty(), "{failures}(TERRANE_REWRITE=1 accepts the answers)");
    }
}

fn head(line: &str, number: usize) -> Case {
    let mut words = split_words(line).into_iter();
    let directive = words.next().unwrap_or_default();
    let arguments = words
        .map(|word| {
            let (key, value) = word.split_once('=').unwrap_or((&word, ""));
            (key.to_owned(), value.to_owned())
        })
        .collect();
    Case { directive, arguments, input: String::new(), line: number }
}

/// Splits at spaces that are not between `'` quotes, and drops the quotes.
fn split_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            _ => {
                if let Some(word) = words.last_mut() {
                    word.push(character);
                }
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
