//! `terrane experiment`: points to the separate program that runs the experiments of the papers.

use anyhow::Result;
use clap::Args;

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
            words => words.join(" "),
        };
        Err(usage(format!(
            "the experiments of the papers moved; run cargo run --release -p terrane-papers -- {arguments}"
        )))
    }
}
