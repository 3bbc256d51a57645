//! `terrane shell`: an interactive store, which also reads scripts.
//!
//! A command is a line, except `batch … end`. Answers go to standard output in order, each once its
//! write has the durability of the database, and are flushed before the shell waits for input. An
//! error goes to standard error with its line number; the shell continues, and the exit status
//! reports the error.
//!
//! With `--json` every answer is an object on a line, errors included: `{"schema":1,"ok":true}`,
//! `{"schema":1,"value":…}` (null if absent), `{"schema":1,"count":3}`,
//! `{"schema":1,"error":…,"line":7}`. A scan writes `{"key":…,"value":…}` for each entry, and then
//! `{"schema":1,"entries":2}`, which marks it complete; `keys` writes `{"schema":1,"key":…}` for each key. `stats --openmetrics` answers with
//! `{"schema":1,"openmetrics":…}`.
//!
//! | module | one line |
//! |---|---|
//! | [`command`] | the commands and their help |
//! | [`parse`] | parses commands |
//! | [`session`] | runs commands |
//! | [`scan`] | the commands that read a range |
//! | [`maintain`] | the commands about the database as a whole |
//! | [`answer`] | answers, as text and as JSON |
//! | [`prompt`] | the terminal: line editing, history, completion |

mod answer;
mod command;
mod maintain;
mod parse;
mod prompt;
mod scan;
mod session;

use std::ffi::OsString;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use terrane::storage::MemoryStorage;
use terrane::{Db, OpenMode, Options};

use self::answer::Answers;
use self::session::{Creation, Next, Session};
use crate::control::ControlFlag;
use crate::engine_flags::EngineFlags;
use crate::exit::Exit;
use crate::open::{self, DEFAULT_KEYSPACE};
use crate::output;
use crate::terminal::{is_input_from_person, is_output_for_people};
use terrane_lab::input::lines::Lines;
use terrane_lab::input::spec;

/// The size of the buffer for answers, which is flushed before waiting for input.
const OUT_BYTES: usize = 64 << 10;

const EXAMPLES: &str = "\
Commands: put get del scan prefix count exists keys batch…end stats tree
events advise design options ttl checkpoint flush compact keyspaces use help exit

Keys and values: word 'single quoted' \"esc\\n\\x00\" 0xdeadbeef u64:42 i32:-1 @file
Ranges: a..m  a..=m  ..m  a..  ..

Examples:
  terrane shell ./db
  terrane shell                  (in memory, to try things)
  terrane shell ./db -c 'put user:1 Ada' -c 'prefix user:'
  terrane shell ./db --durability sync < script.txt
  echo 'scan ..' | terrane shell ./db --read-only --json";

/// Store and look up keys, interactively or from a script on standard input
///
/// The first command that writes creates the database if it does not exist; --create creates it at once.
/// Commands that only read never do.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ShellArgs {
    /// The directory of the database [default: in memory, and lost at the end]
    db: Option<PathBuf>,

    /// Run this command instead of reading commands from standard input; repeatable
    #[arg(short, long, value_name = "COMMAND")]
    command: Vec<OsString>,

    /// Open read-only, which works while another process has the database open and shows its
    /// current state
    #[arg(long, requires = "db")]
    read_only: bool,

    /// Create the database at once if it does not exist
    #[arg(long, conflicts_with = "read_only")]
    create: bool,

    /// Open a snapshot of a volume that was taken while the database was in use. Unsynced writes of
    /// the last moments may be missing, as after a loss of power
    #[arg(long)]
    after_power_loss: bool,

    /// The keyspace at the start
    #[arg(long, value_name = "NAME", default_value = DEFAULT_KEYSPACE)]
    keyspace: String,

    /// The design of a new database; see `terrane design list`
    #[arg(long, value_name = "SPEC", conflicts_with = "read_only")]
    design: Option<String>,

    /// Answer with a JSON object per line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    control: ControlFlag,

    #[command(flatten)]
    engine: EngineFlags,
}

impl ShellArgs {
    /// Runs the shell to the end of its input.
    pub(crate) fn run(&self) -> Result<Exit> {
        let creation = self.creation()?;
        let db = self.open(creation.is_some())?;
        let is_on_disk = self.db.is_some() && !self.read_only && creation.is_none();
        let control = if is_on_disk { self.control.serve(&db) } else { None };
        let keyspace = open::keyspace(&db, &self.keyspace)?;
        let is_for_person = self.command.is_empty()
            && is_input_from_person()
            && is_output_for_people()
            && !self.json;
        let out = BufWriter::with_capacity(OUT_BYTES, output::stdout());
        let answers = Answers::new(out, self.json, is_for_person);
        let mut session = Session::new(db, keyspace, answers).with_control(control);
        if let Some(creation) = creation {
            session = session.creating(creation);
        }
        let done = if is_for_person {
            prompt::run(&mut session)
        } else if self.command.is_empty() {
            run_script(&mut session)
        } else {
            self.run_commands(&mut session)
        };
        // A person has seen the error; a script reports it by its exit status.
        let failed = session.failed().filter(|_| !is_for_person);
        let db = session.into_db();
        // Writes must be safe even if an answer could not be written.
        let closed = if self.read_only { Ok(()) } else { db.close() };
        done?;
        closed?;
        Ok(failed.unwrap_or(Exit::Done))
    }

    /// Returns the deferred creation of a database that does not exist; `None` if it is created at once, or
    /// exists.
    fn creation(&self) -> Result<Option<Creation>> {
        let Some(dir) = &self.db else { return Ok(None) };
        let is_at_once = self.create || self.read_only || self.design.is_some();
        // A directory with files is opened at once, which reports what is wrong with them.
        let is_empty =
            std::fs::read_dir(dir).map_or(!dir.exists(), |mut found| found.next().is_none());
        if is_at_once || !is_empty {
            return Ok(None);
        }
        let (options, dir, control) = (self.options()?, dir.clone(), self.control);
        Ok(Some(Box::new(move || {
            let db = options.open(dir)?;
            let control = control.serve(&db);
            Ok((db, control))
        })))
    }

    fn options(&self) -> Result<Options> {
        let options = self.engine.options()?;
        Ok(if self.after_power_loss { options.after_power_loss() } else { options })
    }

    /// Opens the database; with `is_deferred`, an empty one in memory that stands for it until it is created.
    fn open(&self, is_deferred: bool) -> Result<Db> {
        let mut options = self.options()?;
        let in_memory = || Path::new("memory").to_owned();
        let path = self.db.clone().unwrap_or_else(in_memory);
        if self.read_only {
            return Ok(options.open_mode(OpenMode::MustExist).open_read_only(path)?);
        }
        if self.db.is_none() || is_deferred {
            options = options.storage(Arc::new(MemoryStorage::new(0)));
        }
        if let Some(text) = &self.design {
            options = options.design(spec::parse(text)?);
        }
        Ok(options.open(path)?)
    }

    fn run_commands(&self, session: &mut Session) -> Result<()> {
        for (index, text) in self.command.iter().enumerate() {
            // As from standard input: the shell itself reports bytes that are not UTF-8, and how to write them.
            for line in text.as_encoded_bytes().split(|byte| *byte == b'\n') {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                if session.line(line, index as u64 + 1)? == Next::End {
                    return session.finish();
                }
            }
        }
        session.finish()
    }
}

fn run_script(session: &mut Session) -> Result<()> {
    let mut lines = Lines::new(io::stdin().lock());
    loop {
        while let Some(line) = lines.take() {
            let number = lines.number();
            if session.line(lines.text(line), number)? == Next::End {
                return session.finish();
            }
        }
        session.answers().flush()?;
        if !lines.wait().context("cannot read standard input")? {
            return session.finish();
        }
    }
}
