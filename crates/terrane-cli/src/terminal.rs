//! Terminals: their width and their colours.

use std::io::{self, IsTerminal};

/// The columns of pictures in a file or a pipe.
const COLUMNS_OF_FILES: usize = 100;

/// Narrower output is unreadable, so a narrower terminal is treated as one of this width.
const COLUMNS_MIN: usize = 40;

/// Returns the number of columns that standard output has: `COLUMNS` if it is set, else the width
/// of the terminal; `None` for a file or a pipe, which have no limit.
pub(crate) fn columns() -> Option<usize> {
    let set = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse::<usize>().ok());
    let columns = set.filter(|columns| *columns > 0).or_else(|| {
        let size = terminal_size::terminal_size_of(io::stdout());
        size.map(|(width, _)| usize::from(width.0))
    });
    columns.map(|columns| columns.max(COLUMNS_MIN))
}

/// Returns the number of columns of standard error, if it is a terminal.
pub(crate) fn error_columns() -> Option<usize> {
    let size = terminal_size::terminal_size_of(io::stderr());
    size.map(|(width, _)| usize::from(width.0).max(COLUMNS_MIN))
}

/// Returns the columns of a picture: those of standard output, or a fixed number if it has no limit.
pub(crate) fn picture_columns() -> usize {
    columns().unwrap_or(COLUMNS_OF_FILES)
}

/// Returns true if standard output is a terminal.
pub(crate) fn is_output_for_people() -> bool {
    io::stdout().is_terminal()
}

/// Returns true if standard input is a terminal.
pub(crate) fn is_input_from_person() -> bool {
    io::stdin().is_terminal()
}

/// Colours text for a terminal, or leaves it plain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    is_on: bool,
}

/// Colours that differ clearly on dark and light backgrounds, and for most colour-blind people.
const LEVEL_CODES: [&str; 6] = ["33", "36", "35", "34", "32", "31"];

impl Paint {
    /// Returns the colours for standard output: on if it is a terminal, unless the user disabled
    /// colours.
    pub(crate) fn stdout() -> Self {
        Self { is_on: io::stdout().is_terminal() && wants_colour() }
    }

    /// Returns the colours for standard error.
    pub(crate) fn stderr() -> Self {
        Self { is_on: io::stderr().is_terminal() && wants_colour() }
    }

    /// Leaves text plain.
    pub(crate) const fn off() -> Self {
        Self { is_on: false }
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.is_on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Emphasises text.
    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// Dims secondary text.
    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    /// Marks an error.
    pub(crate) fn red(self, text: &str) -> String {
        self.with("1;31", text)
    }

    /// Colours text by the level of the tree.
    pub(crate) fn level(self, level: usize, text: &str) -> String {
        self.with(LEVEL_CODES[level % LEVEL_CODES.len()], text)
    }
}

/// See <https://no-color.org>.
fn wants_colour() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
