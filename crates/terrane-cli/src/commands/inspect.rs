//! `terrane inspect`: looks into the files of a database.

mod log;
mod manifest;
mod table;
mod tree;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  terrane inspect tree ./db
  terrane inspect table ./db/00000001-0123456789abcdef.sst --entries | head
  terrane inspect log ./db --operations
  terrane inspect manifest ./db --json";

/// Look into a tree, a table, a log or a manifest; nothing is changed.
///
/// The files of a database that is in use may change while they are read.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InspectArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Clone, Subcommand)]
enum What {
    /// The levels, runs and tables of a database
    Tree(OfPath),
    /// What a table says about itself, and its entries
    Table(TableArgs),
    /// The records of the log of a database, or of one file of it
    Log(LogArgs),
    /// The edits of the manifest of a database, or of one file of it
    Manifest(OfPath),
}

#[derive(Debug, Clone, Args)]
struct OfPath {
    /// The directory of a database, or a file of it
    path: PathBuf,

    /// Tell it as objects for programs, one a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Args)]
struct TableArgs {
    #[command(flatten)]
    of: OfPath,

    /// The entries as well
    #[arg(long)]
    entries: bool,
}

#[derive(Debug, Clone, Args)]
struct LogArgs {
    #[command(flatten)]
    of: OfPath,

    /// The records and their operations as well
    #[arg(long)]
    operations: bool,
}

impl InspectArgs {
    /// Looks.
    pub(crate) fn run(&self) -> Result<Exit> {
        match &self.what {
            What::Tree(of) => tree::run(&of.path, of.json)?,
            What::Table(args) => table::run(&args.of.path, args.of.json, args.entries)?,
            What::Log(args) => return log::run(&args.of.path, args.of.json, args.operations),
            What::Manifest(of) => manifest::run(&of.path, of.json)?,
        }
        Ok(Exit::Done)
    }
}
