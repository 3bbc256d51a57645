//! `terrane experiment`: points to the separate program that runs the experiments of the papers.

use std::iter;

use anyhow::Result;
use clap::Args;
use terrane_lab::host::program::shell_quoted;

use crate::exit::{Exit, usage};

/// The experiments of the papers are in `terrane-papers`
#[derive(Debug, Clone, Args)]
pub(crate) struct ExperimentArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<String>,
}

impl ExperimentArgs {
    /// Fails with the command that runs the experiments.
    pub(crate) fn run(&self) -> Result<Exit> {
        let arguments = match self.arguments.as_slice() {
            [] => "list".to_owned(),
            // In that program, `papers` is called `items`.
            [first, rest @ ..] if first == "papers" => quoted("items", rest),
            [first, rest @ ..] => quoted(first, rest),
        };
        Err(usage(format!(
            "the experiments of the papers moved; run cargo run --release -p terrane-papers -- {arguments}"
        )))
    }
}

/// Returns the words as a line that can be pasted into a shell.
fn quoted(first: &str, rest: &[String]) -> String {
    let words = iter::once(first).chain(rest.iter().map(String::as_str));
    words.map(shell_quoted).collect::<Vec<_>>().join(" ")
}
