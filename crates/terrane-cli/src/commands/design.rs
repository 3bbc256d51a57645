//! `terrane design`: the catalogue of designs, and what one of them means.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand};
use serde::Serialize;
use terrane::policy::catalogue::{self, Entry};
use terrane::{Db, Design};

use crate::exit::{Exit, usage};
use crate::human;
use crate::json::{SCHEMA, write_line};
use crate::open;
use crate::table::{Align, lines, table};
use crate::terminal::Paint;

/// Levels whose capacity `show` tells.
const LEVELS_SHOWN: usize = 6;

const EXAMPLES: &str = "\
Examples:
  terrane design list
  terrane design show 'tiering T=4; filter=5'
  terrane design show --db ./db
  terrane design set ./db lazy-leveling";

/// The catalogue of designs: which there are, what one means, which a database has.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DesignArgs {
    #[command(subcommand)]
    command: DesignCommand,

    /// Write objects for programs
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Clone, Subcommand)]
enum DesignCommand {
    /// List the designs that have a name
    List,
    /// Show every choice of a design, and the levels that follow from it
    Show {
        /// A name such as `tiering`, or with settings: 'tiering T=4; filter=5'
        #[arg(required_unless_present = "db", conflicts_with = "db")]
        design: Option<String>,

        /// The designs of a database instead, one for each keyspace
        #[arg(long, value_name = "DIR")]
        db: Option<PathBuf>,
    },
    /// Give a database another design; compactions change its tree from now on
    Set {
        /// The directory of the database
        db: PathBuf,

        /// The design
        design: String,

        /// The keyspace
        #[arg(long, value_name = "NAME", default_value = open::DEFAULT_KEYSPACE)]
        keyspace: String,
    },
}

#[derive(Serialize)]
struct JsonDesign<'a> {
    schema: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keyspace: Option<&'a str>,
    design: String,
    levels: Vec<JsonLevel>,
}

#[derive(Serialize)]
struct JsonLevel {
    level: usize,
    capacity_bytes: u64,
    runs: u32,
    filter_bits: f64,
    compression: String,
}

/// What is known of a design beside itself.
#[derive(Clone, Copy, Default)]
struct Context<'a> {
    entry: Option<&'a Entry>,
    keyspace: Option<&'a str>,
}

impl DesignArgs {
    /// Writes what is asked for.
    pub(crate) fn run(&self) -> Result<Exit> {
        match &self.command {
            DesignCommand::List => self.list()?,
            DesignCommand::Show { design: Some(text), .. } => {
                let entry = catalogue::find(text.trim());
                self.show(&parse(text)?, Context { entry, ..Context::default() })?;
            }
            DesignCommand::Show { design: None, db } => {
                let dir = db.as_deref().ok_or_else(|| anyhow!("there is no database given"))?;
                self.show_database(dir)?;
            }
            DesignCommand::Set { db, design, keyspace } => set(db, design, keyspace)?,
        }
        Ok(Exit::Done)
    }

    fn list(&self) -> Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            for entry in catalogue::ALL {
                let context = Context { entry: Some(entry), keyspace: None };
                write_line(&mut out, &JsonDesign::of(&(entry.design)(), context))?;
            }
            return Ok(());
        }
        let headers = ["name", "what it is", "source"].map(|name| (name, Align::Left));
        let mut table = table(&headers);
        for entry in catalogue::ALL {
            table.add_row([entry.name, entry.about, entry.source]);
        }
        for line in lines(&table) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn show_database(&self, dir: &Path) -> Result<()> {
        let db = Db::open_read_only(dir)?;
        for name in db.keyspaces() {
            let design = open::keyspace(&db, &name)?.design();
            let entry = catalogue::ALL.iter().find(|entry| (entry.design)() == design);
            self.show(&design, Context { entry, keyspace: Some(&name) })?;
        }
        Ok(())
    }

    fn show(&self, design: &Design, context: Context<'_>) -> Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            return Ok(write_line(&mut out, &JsonDesign::of(design, context))?);
        }
        let paint = Paint::stdout();
        if let Some(keyspace) = context.keyspace {
            writeln!(out, "keyspace {}", paint.bold(keyspace))?;
        }
        if let Some(entry) = context.entry {
            writeln!(out, "{}: {}\n{}", paint.bold(entry.name), entry.about, entry.source)?;
        }
        for part in design.to_string().split("; ") {
            writeln!(out, "  {part}")?;
        }
        let mut table = table(&[
            ("level", Align::Left),
            ("capacity", Align::Right),
            ("runs at rest", Align::Right),
            ("filter bits", Align::Right),
            ("compression", Align::Left),
        ]);
        for level in levels(design) {
            table.add_row([
                format!("level {}", level.level),
                human::bytes(level.capacity_bytes),
                level.runs.to_string(),
                human::number(level.filter_bits),
                level.compression,
            ]);
        }
        for line in lines(&table) {
            writeln!(out, "{line}")?;
        }
        let memtable = design.memtable;
        writeln!(out, "memtable {}: {}", paint.bold(&memtable.to_string()), memtable.about())?;
        Ok(())
    }
}

fn parse(text: &str) -> Result<Design> {
    text.parse().map_err(|error| usage(format!("{error}")))
}

fn set(dir: &Path, text: &str, keyspace: &str) -> Result<()> {
    let design = parse(text)?;
    let db = open::existing(dir)?;
    let done = open::keyspace(&db, keyspace).and_then(|keyspace| Ok(keyspace.set_design(design)?));
    let closed = db.close();
    done?;
    Ok(closed?)
}

/// The first levels of a tree that is as deep as they are.
fn levels(design: &Design) -> impl Iterator<Item = JsonLevel> {
    let last = LEVELS_SHOWN - 1;
    (0..LEVELS_SHOWN).map(move |level| JsonLevel {
        level,
        capacity_bytes: design.capacity_bytes(level),
        runs: design.strategy.runs_allowed(level, last),
        filter_bits: design.filter_bits.get(level),
        compression: design.compression.get(level).to_string(),
    })
}

impl<'a> JsonDesign<'a> {
    fn of(design: &Design, context: Context<'a>) -> Self {
        Self {
            schema: SCHEMA,
            name: context.entry.map(|entry| entry.name),
            about: context.entry.map(|entry| entry.about),
            source: context.entry.map(|entry| entry.source),
            keyspace: context.keyspace,
            design: design.to_string(),
            levels: levels(design).collect(),
        }
    }
}
