//! `terrane keyspace`: lists, renames and drops keyspaces.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand};
use serde::Serialize;
use terrane::{Db, Design, Error};
use terrane_control::{Reply, Request};

use crate::database::{Database, change, unexpected};
use crate::exit::Exit;
use crate::open;
use crate::output;
use crate::table::{Align, lines, table};
use terrane_lab::input::kv_literal;
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

const EXAMPLES: &str = "\
Examples:
  terrane keyspace list ./db
  terrane keyspace rename ./db users people
  terrane keyspace drop ./db typo";

/// List, rename and drop the keyspaces of a database
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct KeyspaceArgs {
    #[command(subcommand)]
    command: KeyspaceCommand,
}

#[derive(Debug, Clone, Subcommand)]
enum KeyspaceCommand {
    /// List the keyspaces with their sizes and designs, even while the database is open
    List {
        /// The directory of the database
        db: PathBuf,

        /// Print JSON objects
        #[arg(long)]
        json: bool,
    },
    /// Rename a keyspace; its entries and its design stay
    Rename {
        /// The directory of the database
        db: PathBuf,

        /// The name of the keyspace
        name: String,

        /// The new name
        new_name: String,
    },
    /// Remove a keyspace with all its entries
    Drop {
        /// The directory of the database
        db: PathBuf,

        /// The name of the keyspace
        name: String,
    },
}

#[derive(Serialize)]
struct JsonKeyspace<'a> {
    schema: u32,
    keyspace: &'a str,
    entries: u64,
    table_bytes: u64,
    tables: u64,
    design: &'a str,
}

impl KeyspaceArgs {
    /// Runs the subcommand.
    pub(crate) fn run(&self) -> Result<Exit> {
        match &self.command {
            KeyspaceCommand::List { db, json } => list(&mut Database::to_view(db)?, *json)?,
            KeyspaceCommand::Rename { db, name, new_name } => {
                let (keyspace, name_to) = (name.clone(), new_name.clone());
                change(db, &Request::RenameKeyspace { keyspace, new_name: name_to })?;
                let (name, new_name) = (print(name), print(new_name));
                let _ = writeln!(io::stderr(), "renamed keyspace {name} to {new_name}");
            }
            KeyspaceCommand::Drop { db, name } => {
                let reply = change(db, &Request::DropKeyspace { keyspace: name.clone() })?;
                let Reply::Dropped { table_bytes } = reply else { return Err(unexpected(&reply)) };
                let (name, bytes) = (print(name), human::bytes(table_bytes));
                let _ = writeln!(io::stderr(), "dropped keyspace {name} with {bytes} of tables");
            }
        }
        Ok(Exit::Done)
    }
}

/// Returns a name in the notation of `terrane shell`.
fn print(name: &str) -> String {
    kv_literal::print(name.as_bytes())
}

/// Renames a keyspace, which must exist.
pub(crate) fn rename(db: &Db, name: &str, new_name: &str) -> Result<()> {
    open::keyspace(db, name)?;
    if name == open::DEFAULT_KEYSPACE {
        return Err(anyhow!("the default keyspace cannot be renamed"));
    }
    if db.rename_keyspace(name, new_name)? { Ok(()) } else { Err(anyhow!("no keyspace '{name}'")) }
}

/// Drops a keyspace, which must exist.
pub(crate) fn drop_keyspace(db: &Db, name: &str) -> Result<()> {
    open::keyspace(db, name)?;
    if name == open::DEFAULT_KEYSPACE {
        return Err(anyhow!("the default keyspace cannot be dropped"));
    }
    if db.drop_keyspace(name)? { Ok(()) } else { Err(anyhow!("no keyspace '{name}'")) }
}

fn list(database: &mut Database, json: bool) -> Result<()> {
    let reply = database.ask(&Request::Keyspaces)?;
    let Reply::Keyspaces { mut keyspaces } = reply else { return Err(unexpected(&reply)) };
    keyspaces.sort_by(|one, other| one.keyspace.cmp(&other.keyspace));
    let mut out = output::stdout();
    let mut table = table(&[
        ("keyspace", Align::Left),
        ("entries", Align::Right),
        ("tables", Align::Right),
        ("design", Align::Left),
    ]);
    for info in &keyspaces {
        if json {
            write_line(
                &mut out,
                &JsonKeyspace {
                    schema: SCHEMA,
                    keyspace: &info.keyspace,
                    entries: info.entries,
                    table_bytes: info.table_bytes,
                    tables: info.tables,
                    design: &info.design,
                },
            )?;
        } else {
            let (entries, bytes) = (human::count(info.entries), human::bytes(info.table_bytes));
            let design: Design = info.design.parse().map_err(Error::from)?;
            table.add_row([print(&info.keyspace), entries, bytes, design.summary()]);
        }
    }
    if !json {
        lines(&table).try_for_each(|line| writeln!(out, "{line}"))?;
    }
    Ok(())
}
