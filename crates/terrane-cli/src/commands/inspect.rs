//! `terrane inspect`: shows the contents of the files of a database.
//!
//! Inspection changes and locks nothing, so it works while the database is in use. Damaged files are
//! shown as far as they can be read.

mod deletes;
mod jobs;
mod key;
mod log;
mod manifest;
mod table;
mod tree;
mod values;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  terrane inspect tree ./db
  terrane inspect table ./db/00000007-0000000000000002.sst --entries --limit 10
  terrane inspect log ./db
  terrane inspect manifest ./db --json
  terrane inspect jobs ./db --last 5
  terrane inspect values ./db
  terrane inspect deletes ./db
  terrane inspect key ./db user:42";

/// Show the contents of files: tree, tables, log, manifest, compactions, deletes, value files, a key
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InspectArgs {
    #[command(subcommand)]
    command: InspectCommand,
}

#[derive(Debug, Clone, Subcommand)]
enum InspectCommand {
    Tree(tree::TreeArgs),
    Table(table::TableArgs),
    Log(log::LogArgs),
    Manifest(manifest::ManifestArgs),
    Jobs(jobs::JobsArgs),
    Deletes(deletes::DeletesArgs),
    Key(key::KeyArgs),
    Values(values::ValuesArgs),
}

impl InspectArgs {
    /// Runs the subcommand.
    pub(crate) fn run(&self) -> Result<Exit> {
        match &self.command {
            InspectCommand::Tree(args) => args.run(),
            InspectCommand::Table(args) => args.run(),
            InspectCommand::Log(args) => args.run(),
            InspectCommand::Manifest(args) => args.run(),
            InspectCommand::Jobs(args) => args.run(),
            InspectCommand::Deletes(args) => args.run(),
            InspectCommand::Key(args) => args.run(),
            InspectCommand::Values(args) => args.run(),
        }
    }
}
