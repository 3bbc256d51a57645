//! Problems of a database, as text and as JSON.

use std::io::{self, Write};

use serde::Serialize;
use terrane::inspect::Problem;

use crate::terminal::Paint;

/// A problem as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct JsonProblem {
    path: String,
    offset: Option<u64>,
    what: String,
}

impl JsonProblem {
    /// Converts a problem.
    pub(crate) fn of(problem: &Problem) -> Self {
        let path = problem.path.display().to_string();
        Self { path, offset: problem.offset, what: problem.what.clone() }
    }
}

/// Writes problems, one per line.
pub(crate) fn write_problems(out: &mut dyn Write, problems: &[Problem]) -> io::Result<()> {
    let paint = Paint::stdout();
    problems.iter().try_for_each(|problem| writeln!(out, "{} {problem}", paint.red("problem:")))
}
