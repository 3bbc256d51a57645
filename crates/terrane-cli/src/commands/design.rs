//! `terrane design`: lists designs, explains one, and changes the design of a database.

mod change;
mod costs;
mod overhead;
mod recorded;
mod space;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand};
use serde::Serialize;
use terrane::Design;
use terrane_policy::FlushMode;
use terrane_policy::catalogue::Row;
use terrane_policy::catalogue::{self, Entry};

use self::costs::{CostArgs, JsonCosts};
use crate::exit::Exit;
use crate::open;
use crate::output;
use crate::table::{Align, lines, table};
use crate::terminal::Paint;
use overhead::Overhead;
use terrane_lab::input::spec;
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

/// Levels whose capacity `show` prints.
const LEVELS_SHOWN: usize = 6;

const EXAMPLES: &str = "\
Examples:
  terrane design list
  terrane design show 'tiering T=4; filter=5'
  terrane design show ./db
  terrane design show 'tiering T=4' --records 100M --record-size 128
  terrane design show lethe --toml > mine.toml
  terrane design enumerate tombstone-ttl expired-ttl --list
  terrane design set ./db lazy-leveling --dry-run
  terrane design set ./db @mine.toml --converge
  terrane design set ./db --undo";

/// List designs, explain one, show or change the design of a database
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DesignArgs {
    #[command(subcommand)]
    command: DesignCommand,

    /// Print JSON objects
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Clone, Subcommand)]
enum DesignCommand {
    /// List the named designs, one per line, with the four primitives of each
    List {
        /// Describe each design, with its source
        #[arg(long)]
        about: bool,
    },
    /// Count or list the valid strategies
    Enumerate(space::EnumerateArgs),
    /// Show every setting of a design, and the levels it implies
    Show {
        /// A name such as `tiering`, with settings such as 'tiering T=4; filter=5', or @FILE of TOML;
        /// or the directory of a database, whose designs are shown, one per keyspace
        #[arg(value_name = "DESIGN|DB", required_unless_present = "db", conflicts_with = "db")]
        design: Option<OsString>,

        /// The same as DB
        #[arg(long, value_name = "DIR", hide = true)]
        db: Option<PathBuf>,

        /// Print it as TOML
        #[arg(long, conflicts_with_all = ["json", "records"])]
        toml: bool,

        #[command(flatten)]
        costs: CostArgs,
    },
    /// Compare the recorded decisions of other systems with those of a design
    Recorded(recorded::RecordedArgs),
    /// Change the design of a database; compactions then reshape its tree
    Set(change::SetArgs),
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
    #[serde(skip_serializing_if = "Option::is_none")]
    beyond: Option<&'a str>,
    words: [String; 4],
    design: String,
    levels: Vec<JsonLevel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memtable: Option<Overhead>,
    costs: Option<JsonCosts>,
}

#[derive(Serialize)]
struct JsonLevel {
    level: usize,
    /// `None` if the design has no levels.
    capacity_bytes: Option<u64>,
    runs: Option<u32>,
    filter_bits: f64,
    compression: String,
}

/// Facts about a design.
#[derive(Clone, Copy, Default)]
struct Context<'a> {
    entry: Option<&'a Entry>,
    keyspace: Option<&'a str>,
    costs: Option<&'a CostArgs>,
}

impl DesignArgs {
    /// Runs the subcommand.
    pub(crate) fn run(&self) -> Result<Exit> {
        match &self.command {
            DesignCommand::List { about } => self.list(*about)?,
            DesignCommand::Enumerate(args) => args.run(self.json)?,
            DesignCommand::Recorded(args) => args.run(self.json)?,
            DesignCommand::Show { design: Some(text), toml, costs, .. } => {
                costs.check()?;
                // A directory is a database, unless a design has its name: `./tiering` is a directory.
                let parsed = text.to_str().map(spec::parse);
                let (entry, design) = match (text.to_str(), parsed) {
                    (Some(text), Some(Ok(design))) => (catalogue::find(text.trim()), design),
                    (Some(_), Some(Err(error))) if !Path::new(text).is_dir() => return Err(error),
                    _ => {
                        self.show_database(Path::new(text), costs)?;
                        return Ok(Exit::Done);
                    }
                };
                if *toml {
                    write!(output::stdout(), "{}", spec::to_toml(&design))?;
                } else {
                    let costs = Some(costs);
                    self.show(&design, Context { entry, keyspace: None, costs })?;
                }
            }
            DesignCommand::Show { design: None, db, costs, .. } => {
                costs.check()?;
                let dir =
                    db.as_deref().ok_or_else(|| anyhow!("no design and no database given"))?;
                self.show_database(dir, costs)?;
            }
            DesignCommand::Set(args) => return args.run(self.json),
        }
        Ok(Exit::Done)
    }

    fn list(&self, about: bool) -> Result<()> {
        let mut out = output::text_or_json(self.json);
        if self.json {
            for entry in catalogue::ALL {
                let context = Context { entry: Some(entry), ..Context::default() };
                write_line(&mut out, &JsonDesign::of(&(entry.design)(), context))?;
            }
            return Ok(());
        }
        let names: &[&str] = if about {
            &["name", "what it is", "source"]
        } else {
            &["name", "eagerness", "trigger", "granularity", "movement"]
        };
        let headers: Vec<_> = names.iter().map(|name| (*name, Align::Left)).collect();
        let mut table = table(&headers);
        for entry in catalogue::ALL {
            if about {
                table.add_row([entry.name, entry.about, entry.source]);
            } else {
                let [eagerness, trigger, granularity, movement] = (entry.design)().strategy.words();
                table.add_row([entry.name, &eagerness, &trigger, &granularity, &movement]);
            }
        }
        for line in lines(&table) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn show_database(&self, dir: &Path, costs: &CostArgs) -> Result<()> {
        let db = open::read_only(dir)?;
        for name in db.keyspaces() {
            let design = open::keyspace(&db, &name)?.design();
            let entry = catalogue::ALL.iter().find(|entry| (entry.design)() == design);
            let costs = Some(costs);
            self.show(&design, Context { entry, keyspace: Some(&name), costs })?;
        }
        Ok(())
    }

    fn show(&self, design: &Design, context: Context<'_>) -> Result<()> {
        let mut out = output::text_or_json(self.json);
        if self.json {
            return Ok(write_line(&mut out, &JsonDesign::of(design, context))?);
        }
        let paint = Paint::stdout();
        if let Some(keyspace) = context.keyspace {
            writeln!(out, "keyspace {}", paint.bold(keyspace))?;
        }
        if let Some(entry) = context.entry {
            writeln!(out, "{}: {}\n{}", paint.bold(entry.name), entry.about, entry.source)?;
            if let Some(Row { eagerness, triggers, granularity, movement, .. }) = entry.row {
                let row = format!("{eagerness} | {triggers} | {granularity} | {movement}");
                writeln!(out, "Table 1 of the compaction paper: {row}")?;
            }
            if !entry.beyond.is_empty() {
                writeln!(out, "compared with the original: {}", entry.beyond)?;
            }
        }
        for part in design.to_string().split("; ") {
            writeln!(out, "  {part}")?;
        }
        write_levels(&mut out, design)?;
        let memtable = design.memtable;
        writeln!(out, "memtable {}: {}", paint.bold(&memtable.to_string()), memtable.about())?;
        if let Some(overhead) = Overhead::of(design) {
            writeln!(out, "{overhead}")?;
        }
        if design.flush == FlushMode::Merge {
            let most = human::bytes(design.capacity_bytes(0, LEVELS_SHOWN - 1));
            writeln!(
                out,
                "flushes merge with level 0, which is one run of up to {most}: lookups search fewer \
                 runs, and each flush rewrites level 0"
            )?;
        }
        if let Some(costs) = context.costs {
            costs.write(&mut out, design)?;
        }
        Ok(())
    }
}

/// Prints the levels of a design, or explains why it has none.
fn write_levels(out: &mut impl Write, design: &Design) -> io::Result<()> {
    if let Some(policy) = design.strategy.size_tiered_trigger() {
        let level = levels(design).next();
        let (bits, compression) =
            level.map_or((0.0, String::new()), |level| (level.filter_bits, level.compression));
        return writeln!(
            out,
            "no levels: the runs form a list by age, and {policy} merges adjacent runs by size; \
             filter bits {}, compression {compression}",
            human::number(bits)
        );
    }
    let mut table = table(&[
        ("level", Align::Left),
        ("capacity", Align::Right),
        ("runs when settled", Align::Right),
        ("filter bits", Align::Right),
        ("compression", Align::Left),
    ]);
    for level in levels(design) {
        table.add_row([
            format!("level {}", level.level),
            level.capacity_bytes.map_or("-".to_owned(), human::bytes),
            level.runs.map_or("-".to_owned(), |runs| runs.to_string()),
            human::number(level.filter_bits),
            level.compression,
        ]);
    }
    lines(&table).into_iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// Returns the first [`LEVELS_SHOWN`] levels of a tree of that depth; a size-tiered design has one
/// level for all runs.
fn levels(design: &Design) -> impl Iterator<Item = JsonLevel> {
    let last = LEVELS_SHOWN - 1;
    let is_sized = design.strategy.size_tiered().is_some();
    let shown = if is_sized { 1 } else { LEVELS_SHOWN };
    (0..shown).map(move |level| JsonLevel {
        level,
        capacity_bytes: (!is_sized).then(|| design.capacity_bytes(level, last)),
        runs: (!is_sized).then(|| match design.flush {
            FlushMode::Merge if level == 0 => 1,
            _ => design.strategy.runs_allowed(level, last),
        }),
        filter_bits: design.filter_bits_at(level, last),
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
            beyond: context.entry.map(|entry| entry.beyond).filter(|text| !text.is_empty()),
            words: design.strategy.words(),
            design: design.to_string(),
            levels: levels(design).collect(),
            memtable: Overhead::of(design),
            costs: context.costs.and_then(|args| args.costs(design)).map(JsonCosts::from),
        }
    }
}
