//! `terrane options`: the options of the engine.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand};
use serde::Serialize;
use terrane::{OptionInfo, Options};
use terrane_control::{Client, Reply, Request};

use crate::database::{Database, unexpected};
use crate::engine_flags::plain;
use crate::exit::{Exit, usage};
use crate::open;
use crate::output;
use crate::terminal::Paint;
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};
use terrane_policy::suggest::did_you_mean;

/// Document the options of the engine, show and change those of an open database
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct OptionsArgs {
    #[command(subcommand)]
    command: Option<OptionsCommand>,

    /// Show the options in effect in the process that has this database open, like `show`; without it, list
    /// all options
    db: Option<PathBuf>,

    /// Print a JSON object per line
    #[arg(long, global = true)]
    json: bool,
}

/// The option that can be changed while a database is open.
const IO_BUDGET: &str = "io_budget";

#[derive(Debug, Clone, Subcommand)]
enum OptionsCommand {
    /// List all options, or some: purpose, default, accepted values, cost
    List {
        /// The options, such as memory_budget
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
    /// Show the options in effect in the process that has a database open
    Show {
        /// The directory of the database
        db: PathBuf,
    },
    /// Change an option of the process that has a database open, until it closes the database
    Set {
        /// The directory of the database
        db: PathBuf,

        /// The option: io_budget
        name: String,

        /// The value, such as 50MiB or unlimited
        value: String,
    },
}

#[derive(Serialize)]
struct JsonOption<'a> {
    schema: u32,
    name: &'a str,
    flag: String,
    about: String,
    default: &'a str,
    accepts: String,
    trade_off: String,
    takes_effect: String,
}

impl OptionsArgs {
    /// Prints the options.
    pub(crate) fn run(&self) -> Result<Exit> {
        match &self.command {
            None => match &self.db {
                Some(db) => self.current(db, &Request::Options)?,
                None => self.list(&[])?,
            },
            Some(OptionsCommand::List { names }) => self.list(names)?,
            Some(OptionsCommand::Show { db }) => self.current(db, &Request::Options)?,
            Some(OptionsCommand::Set { db, name, value }) => {
                if wanted(name) != IO_BUDGET {
                    chosen(std::slice::from_ref(name))?;
                    return Err(usage(format!(
                        "only {IO_BUDGET} can be changed while the database is open; `terrane options \
                         list {name}` says when {name} takes effect"
                    )));
                }
                self.current(db, &Request::SetIoBudget { io_budget: value.clone() })?;
            }
        }
        Ok(Exit::Done)
    }

    /// Prints the options in effect in the process that has a database open.
    fn current(&self, db: &Path, request: &Request) -> Result<()> {
        let Some(client) = Client::connect(db)? else {
            // Reports the problem with the directory, if it holds no database.
            open::read_only(db)?;
            return Err(anyhow!(
                "no process serves {}: options apply only to an open database, and are set when it is \
                 opened",
                db.display()
            ));
        };
        let reply = Database::Served(Box::new(client)).ask(request)?;
        let Reply::Options(current) = reply else { return Err(unexpected(&reply)) };
        let mut out = output::text_or_json(self.json);
        if self.json {
            let mut options = serde_json::to_value(&current)?;
            options["schema"] = SCHEMA.into();
            return Ok(write_line(&mut out, &options)?);
        }
        writeln!(out, "durability     {}", current.durability)?;
        writeln!(out, "io_budget      {}", current.io_budget)?;
        writeln!(out, "memory_budget  {}", human::bytes(current.memory_budget))?;
        Ok(())
    }

    fn list(&self, names: &[String]) -> Result<()> {
        let mut out = output::text_or_json(self.json);
        for (number, info) in chosen(names)?.iter().enumerate() {
            if self.json {
                write_line(&mut out, &JsonOption::of(info))?;
            } else {
                if number > 0 {
                    writeln!(out)?;
                }
                write_option(&mut out, info)?;
            }
        }
        Ok(())
    }
}

/// Returns the name of an option that may be given as a flag.
fn wanted(name: &str) -> String {
    name.trim_start_matches('-').replace('-', "_")
}

/// Returns the options of these names, or all of them.
fn chosen(names: &[String]) -> Result<Vec<OptionInfo>> {
    let all = Options::table();
    if names.is_empty() {
        return Ok(all.into_iter().collect());
    }
    let find = |name: &String| {
        let wanted = wanted(name);
        let found = Options::table().into_iter().find(|info| info.name == wanted);
        found.ok_or_else(|| {
            let meant = did_you_mean(&wanted, all.iter().map(|info| info.name));
            usage(format!("unknown option '{name}'{meant}"))
        })
    };
    names.iter().map(find).collect()
}

fn flag(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

fn write_option(out: &mut impl Write, info: &OptionInfo) -> io::Result<()> {
    let paint = Paint::stdout();
    writeln!(
        out,
        "{}  {}",
        paint.bold(&flag(info.name)),
        paint.dim(&format!("[{}]", info.default))
    )?;
    writeln!(out, "  {}", plain(info.about))?;
    writeln!(out, "  accepts {}", plain(info.accepted))?;
    writeln!(out, "  {}", plain(info.trade_off))?;
    writeln!(out, "  takes effect {}", plain(info.takes_effect))
}

impl<'a> JsonOption<'a> {
    fn of(info: &'a OptionInfo) -> Self {
        Self {
            schema: SCHEMA,
            name: info.name,
            flag: flag(info.name),
            about: plain(info.about),
            default: &info.default,
            accepts: plain(info.accepted),
            trade_off: plain(info.trade_off),
            takes_effect: plain(info.takes_effect),
        }
    }
}
