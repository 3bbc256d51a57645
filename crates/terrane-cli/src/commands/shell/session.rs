//! Runs commands.

use anyhow::{Result, anyhow};
use terrane::{Db, Keyspace, KeyspaceOptions, WriteBatch};
use terrane_control::{ControlSocket, EventItem};

use super::answer::Answers;
use super::command::{self, Advise, Command};
use super::parse::parse;
use crate::commands::advise::show;
use crate::commands::keyspace;
use crate::events::{JsonEvent, sentence};
use crate::exit::{self, Exit, is_broken_pipe};
use crate::open;
use crate::picture::{JsonTree, Work, by_key, by_size};
use crate::statistics::JsonStats;
use crate::terminal::{Paint, columns, picture_columns};
use terrane_lab::advice::decide::ChangeTerms;
use terrane_lab::advice::live::OperationWindow;
use terrane_lab::host::interrupt;

/// The state of a shell.
pub(super) struct Session {
    db: Db,
    keyspace: Keyspace,
    answers: Answers,
    batch: Option<Batch>,
    failed: Option<Exit>,
    /// The operations since the previous advice.
    since: OperationWindow,
    /// Creates the database on disk, which does not exist yet; `db` is empty and in memory until then.
    creation: Option<Creation>,
    control: Option<ControlSocket>,
}

/// Creates a database and the socket through which others use it.
pub(super) type Creation = Box<dyn FnOnce() -> Result<(Db, Option<ControlSocket>)>>;

/// An open batch.
struct Batch {
    writes: WriteBatch,
    /// The number of commands that failed; a batch with failures is not written.
    errors: u64,
}

/// Whether the shell reads another line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Continue,
    End,
}

impl Session {
    /// Starts a session on a keyspace.
    pub(super) fn new(db: Db, keyspace: Keyspace, answers: Answers) -> Self {
        let since = OperationWindow::now(&db);
        Self {
            db,
            keyspace,
            answers,
            batch: None,
            failed: None,
            since,
            creation: None,
            control: None,
        }
    }

    /// Lets the first command that writes create the database. Until then, others report that there is none.
    pub(super) fn creating(self, creation: Creation) -> Self {
        Self { creation: Some(creation), ..self }
    }

    /// Keeps the control socket of the database until the session ends.
    pub(super) fn with_control(self, control: Option<ControlSocket>) -> Self {
        Self { control, ..self }
    }

    pub(super) fn db(&self) -> &Db {
        &self.db
    }

    /// Ends the session, and returns its database.
    pub(super) fn into_db(self) -> Db {
        self.db
    }

    pub(super) fn answers(&mut self) -> &mut Answers {
        &mut self.answers
    }

    pub(super) fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    /// Returns true if a batch is open.
    pub(super) fn is_in_batch(&self) -> bool {
        self.batch.is_some()
    }

    /// Returns the exit status of the session if a command failed; corruption takes precedence.
    pub(super) fn failed(&self) -> Option<Exit> {
        self.failed
    }

    /// Handles the end of the input.
    pub(super) fn finish(&mut self) -> Result<()> {
        if self.batch.take().is_some() {
            let error = anyhow!(
                "the input ends inside a batch, which was not written; close it with 'end'"
            );
            self.fail(&error, 0)?;
        }
        Ok(self.answers.flush()?)
    }

    /// Runs a line.
    ///
    /// # Errors
    ///
    /// The answers cannot be written. Any other error is reported as an answer.
    pub(super) fn line(&mut self, line: &[u8], number: u64) -> Result<Next> {
        let done = match parse(line) {
            Ok(None) => return Ok(Next::Continue),
            Ok(Some(Command::Exit)) => return Ok(Next::End),
            Ok(Some(command)) if self.batch.is_some() => self.in_batch(command),
            Ok(Some(command)) => self.command(command),
            Err(message) => Err(anyhow!(message)),
        };
        if let Err(error) = done {
            if is_broken_pipe(&error) {
                return Err(error);
            }
            if let Some(batch) = &mut self.batch {
                batch.errors += 1;
            }
            self.fail(&error, number)?;
        }
        Ok(Next::Continue)
    }

    fn fail(&mut self, error: &anyhow::Error, line: u64) -> Result<()> {
        self.failed = Some(exit::worse(self.failed, error));
        Ok(self.answers.error(error, line)?)
    }

    /// Creates the database if the command writes, or refuses it if it reads one that does not exist.
    fn create_for(&mut self, command: &Command) -> Result<()> {
        if command.needs_nothing() {
            return Ok(());
        }
        if !command.writes() && self.creation.is_some() {
            let path = self.db.path().display();
            return Err(anyhow!("no database in '{path}'; the first write creates it"));
        }
        if let Some(create) = self.creation.take() {
            (self.db, self.control) = create()?;
            self.keyspace = open::keyspace(&self.db, self.keyspace.name())?;
            self.since = OperationWindow::now(&self.db);
        }
        Ok(())
    }

    fn command(&mut self, command: Command) -> Result<()> {
        self.create_for(&command)?;
        match command {
            Command::Put { key, value } => {
                self.keyspace.put(key, value)?;
                self.answers.ok()?;
            }
            Command::Get { key } => {
                let value = self.keyspace.get(key)?;
                self.answers.value(value.as_deref())?;
            }
            Command::Delete { key } => {
                self.keyspace.delete(key)?;
                self.answers.ok()?;
            }
            Command::DeleteRange(range) => {
                self.keyspace.delete_range(range)?;
                self.answers.ok()?;
            }
            Command::Scan { range, limit, order } => self.scan(range, limit, order)?,
            Command::Count { range } => self.count(range)?,
            Command::Keys { range, limit } => self.keys(range, limit)?,
            Command::Batch => self.batch = Some(Batch { writes: WriteBatch::new(), errors: 0 }),
            Command::End | Command::Abort => return Err(anyhow!("no open batch; see 'batch'")),
            Command::Stats { is_open_metrics } => self.stats(is_open_metrics)?,
            Command::Tree => self.tree()?,
            Command::Events { limit } => self.events(limit)?,
            Command::Advise(arguments) => self.advise(arguments)?,
            Command::Design { spec } => self.design(spec.as_deref())?,
            Command::Options => self.options()?,
            Command::Ttl { key, ttl } => self.ttl(&key, ttl)?,
            Command::Checkpoint { dir } => self.checkpoint(&dir)?,
            Command::Flush => {
                self.keyspace.flush()?;
                self.answers.ok()?;
            }
            Command::Compact(range) => {
                self.keyspace.compact_range(range)?;
                self.answers.ok()?;
            }
            Command::Keyspaces => self.answers.keyspaces(&self.db.keyspaces())?,
            Command::Rename { keyspace, new_name } => {
                keyspace::rename(&self.db, &keyspace, &new_name)?;
                self.answers.ok()?;
            }
            Command::Drop { keyspace } => self.drop_keyspace(&keyspace)?,
            Command::Use { keyspace } => {
                self.keyspace = self.db.keyspace(&keyspace, KeyspaceOptions::new())?;
                self.answers.ok()?;
            }
            Command::Help { about } => self.help(about.as_deref())?,
            Command::Exit => {}
        }
        Ok(())
    }

    /// Runs a command inside a batch. Only the batch's `end` answers.
    fn in_batch(&mut self, command: Command) -> Result<()> {
        let Some(batch) = &mut self.batch else { return Ok(()) };
        let keyspace = &self.keyspace;
        match command {
            Command::Put { key, value } => {
                batch.writes.put_in(keyspace, key, value);
            }
            Command::Delete { key } => {
                batch.writes.delete_in(keyspace, key);
            }
            Command::DeleteRange(range) => {
                batch.writes.delete_range_in(keyspace, range);
            }
            Command::End => return self.end_batch(),
            Command::Abort => {
                self.batch = None;
                self.answers.ok()?;
            }
            Command::Help { about } => self.help(about.as_deref())?,
            Command::Use { keyspace } => {
                self.keyspace = self.db.keyspace(&keyspace, KeyspaceOptions::new())?;
            }
            _ => {
                return Err(anyhow!(
                    "a batch accepts put, del, use and help; finish it with 'end' or 'abort' first"
                ));
            }
        }
        Ok(())
    }

    fn drop_keyspace(&mut self, name: &str) -> Result<()> {
        let is_current = self.keyspace.name() == name;
        keyspace::drop_keyspace(&self.db, name)?;
        if is_current {
            self.keyspace = open::keyspace(&self.db, open::DEFAULT_KEYSPACE)?;
        }
        Ok(self.answers.ok()?)
    }

    fn end_batch(&mut self) -> Result<()> {
        let Some(batch) = self.batch.take() else { return Ok(()) };
        if batch.errors > 0 {
            let errors = terrane_lab::output::human::counted(batch.errors, "error");
            return Err(anyhow!("the batch was not written because it has {errors}"));
        }
        self.db.write(&batch.writes)?;
        Ok(self.answers.ok()?)
    }

    /// Makes Ctrl-C cancel the current command on a terminal; it ends a script.
    pub(super) fn cancellable(&self) -> Option<interrupt::Cancellable> {
        self.answers.is_for_person().then(interrupt::Cancellable::begin)
    }

    fn stats(&mut self, is_open_metrics: bool) -> Result<()> {
        let stats = self.db.stats();
        if is_open_metrics {
            return Ok(self.answers.open_metrics(&stats.open_metrics())?);
        }
        if self.answers.is_json() {
            return Ok(self.answers.json(&JsonStats::of(&stats))?);
        }
        Ok(self.answers.text(&format!("{stats}\n"))?)
    }

    fn tree(&mut self) -> Result<()> {
        let view = self.keyspace.tree();
        if self.answers.is_json() {
            return Ok(self.answers.json(&JsonTree::of(&view))?);
        }
        let paint = Paint::stdout();
        // The counters cover all trees.
        let is_alone = self.db.keyspaces().len() == 1;
        let work = is_alone.then(|| Work::of(&self.db.stats()));
        self.answers.text(&by_size(&view, work, picture_columns(), paint))?;
        if view.shape.run_count() > 0 {
            self.answers.text(&format!("\n{}", by_key(&view, picture_columns(), paint)))?;
        }
        Ok(())
    }

    fn events(&mut self, limit: usize) -> Result<()> {
        let events = self.db.events();
        if events.is_empty() && self.answers.is_for_person() {
            return Ok(self.answers.text("no events since the database was opened\n")?);
        }
        for event in events.iter().skip(events.len().saturating_sub(limit)) {
            if self.answers.is_json() {
                self.answers.json(&JsonEvent::of(EventItem::of(event)))?;
            } else {
                self.answers.text(&(sentence(event) + "\n"))?;
            }
        }
        Ok(())
    }

    fn advise(&mut self, arguments: Advise) -> Result<()> {
        let terms = ChangeTerms { gain: arguments.gain as f64 / 100.0, within: arguments.within };
        let advice = self.since.advise(&self.db, &self.keyspace, terms)?;
        if arguments.applies {
            advice.decision.apply(&self.keyspace)?;
        }
        let report = advice.report(arguments.applies);
        if self.answers.is_json() {
            return Ok(self.answers.json(&report.json())?);
        }
        let mut text = Vec::new();
        show::advice(&mut text, &report, Paint::stdout())?;
        Ok(self.answers.text(&String::from_utf8(text)?)?)
    }

    fn help(&mut self, about: Option<&str>) -> Result<()> {
        let text = match about {
            None => command::help(columns()),
            Some(name) => {
                let found = command::find(name);
                let found = found.ok_or_else(|| anyhow!("unknown command '{name}'; see 'help'"))?;
                command::help_about(found)
            }
        };
        Ok(self.answers.text(&text)?)
    }
}
