//! `terrane inspect`: looks into the files of a database.
//!
//! Nothing is changed and nothing is locked; all of it works while the database is in use. What is
//! damaged is told as far as it can be read.

mod log;
mod manifest;
mod table;
mod tree;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  terrane inspect tree ./db
  terrane inspect table ./db/00000007-0000000000000002.sst --entries --limit 10
  terrane inspect log ./db
  terrane inspect manifest ./db --json";

/// Look inside: the tree of a database, a table, the log, the manifest.
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
}

impl InspectArgs {
    /// Looks.
    pub(crate) fn run(&self) -> Result<Exit> {
        match &self.command {
            InspectCommand::Tree(args) => args.run(),
            InspectCommand::Table(args) => args.run(),
            InspectCommand::Log(args) => args.run(),
            InspectCommand::Manifest(args) => args.run(),
        }
    }
}
