//! A database for commands that work whether or not another process has it open.
//!
//! If no process has it open, the command opens it. Otherwise the command sends its request to the
//! process that has it open, through the control socket (`terrane-control`). The same code carries
//! out requests in both cases, so output, messages and exit codes are the same.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Result, anyhow};
use indicatif::ProgressBar;
use terrane::{Db, Error, JobState, Options};
use terrane_control::{Client, Interest, Item, Progress, Reply, Request, Watch, execute};

use crate::open;
use terrane_lab::host::interrupt::{Cancellable, is_cancelled};
use terrane_lab::host::progress;

/// A database that this process or another one has open.
#[derive(Debug)]
pub(crate) enum Database {
    /// This process has it open.
    Open(Db),
    /// Another process has it open, and serves a socket.
    Served(Box<Client>),
}

impl Database {
    /// Opens a database for writing, or connects to the process that has it open.
    pub(crate) fn to_change(dir: &Path) -> Result<Self> {
        Self::to_change_with(&open::options(), dir)
    }

    fn to_change_with(options: &Options, dir: &Path) -> Result<Self> {
        let error = match open::existing_with(options, dir) {
            Ok(db) => return Ok(Self::Open(db)),
            Err(error) => error,
        };
        let is_locked = matches!(error.downcast_ref::<Error>(), Some(Error::Locked { .. }));
        if !is_locked {
            return Err(error);
        }
        match Client::connect(dir)? {
            Some(client) => Ok(Self::Served(Box::new(client))),
            None => {
                let text = format!("{error}; or let that process serve a control socket");
                Err(error.context(text))
            }
        }
    }

    /// Like [`Self::to_change`], for a command that only copies: a database that this process may not
    /// write, for example on a read-only file system, is opened for reading.
    pub(crate) fn to_copy(options: &Options, dir: &Path) -> Result<Self> {
        match Self::to_change_with(options, dir) {
            Err(error) if open::is_write_refused(&error) => match served(dir) {
                Some(client) => Ok(Self::Served(Box::new(client))),
                None => Ok(Self::Open(open::read_only_with(options, dir)?)),
            },
            other => other,
        }
    }

    /// Connects to the process that serves a database, or opens it read-only.
    pub(crate) fn to_view(dir: &Path) -> Result<Self> {
        match served(dir) {
            Some(client) => Ok(Self::Served(Box::new(client))),
            None => Ok(Self::Open(open::read_only(dir)?)),
        }
    }

    /// Returns true if another process has the database open.
    pub(crate) fn is_served(&self) -> bool {
        matches!(self, Self::Served(_))
    }

    /// Carries out a request. Ctrl-C cancels it.
    pub(crate) fn ask(&mut self, request: &Request) -> Result<Reply> {
        self.ask_each(request, &mut |_| Err(anyhow!("unexpected part of an answer")))
    }

    /// Carries out a request whose answer has parts. Ctrl-C cancels it, and so does an error of `item`.
    pub(crate) fn ask_each(
        &mut self,
        request: &Request,
        item: &mut dyn FnMut(Item) -> Result<()>,
    ) -> Result<Reply> {
        self.ask_while(request, &mut |part| part.map_or(Ok(()), &mut *item), &|| false)
    }

    /// Like [`Self::ask_each`], but also calls `item` with `None` several times a second, and ends
    /// the request when `has_enough` holds.
    pub(crate) fn ask_while(
        &mut self,
        request: &Request,
        item: &mut dyn FnMut(Option<Item>) -> Result<()>,
        has_enough: &dyn Fn() -> bool,
    ) -> Result<Reply> {
        let _cancellable = Cancellable::begin();
        let mut person = Person { item, has_enough, failed: None, bar: None, is_told: false };
        let reply = match self {
            Self::Open(db) => execute(db, request, &mut person),
            Self::Served(client) => client.ask(request, &mut person),
        };
        if let Some(bar) = person.bar {
            bar.finish_and_clear();
        }
        match person.failed {
            Some(error) => Err(error),
            None => Ok(reply?),
        }
    }

    /// Closes the database if this process has opened it for writing.
    pub(crate) fn close(self) -> Result<()> {
        match self {
            Self::Open(db) => Ok(db.close()?),
            Self::Served(_) => Ok(()),
        }
    }
}

/// Carries out a request that changes a database, and closes the database.
pub(crate) fn change(dir: &Path, request: &Request) -> Result<Reply> {
    ask_and_close(Database::to_change(dir)?, request)
}

/// Carries out a request that copies a database, and closes the database.
pub(crate) fn copy(options: &Options, dir: &Path, request: &Request) -> Result<Reply> {
    ask_and_close(Database::to_copy(options, dir)?, request)
}

fn ask_and_close(mut database: Database, request: &Request) -> Result<Reply> {
    let done = database.ask(request);
    let closed = database.close();
    let reply = done?;
    closed?;
    Ok(reply)
}

/// Returns a client of the process that serves a database, for a command that also works without
/// one.
pub(crate) fn served(dir: &Path) -> Option<Client> {
    match Client::connect(dir) {
        Ok(client) => client,
        Err(failure) => {
            let _ = writeln!(io::stderr(), "warning: reading the files, because {failure}");
            None
        }
    }
}

/// Returns the error for an answer that does not belong to its request.
pub(crate) fn unexpected(reply: &Reply) -> anyhow::Error {
    anyhow!("internal error, please report it: the answer of another request: {reply:?}")
}

/// The person at the terminal.
struct Person<'a> {
    item: &'a mut dyn FnMut(Option<Item>) -> Result<()>,
    has_enough: &'a dyn Fn() -> bool,
    failed: Option<anyhow::Error>,
    bar: Option<ProgressBar>,
    is_told: bool,
}

impl Watch for Person<'_> {
    fn item(&mut self, item: Item) {
        if self.failed.is_none() {
            self.failed = (self.item)(Some(item)).err();
        }
    }

    fn progress(&mut self, report: &Progress) {
        let is_bar = report.total_bytes > 0;
        if let Some(other) = self.bar.take_if(|bar| bar.length().is_some() != is_bar) {
            other.finish_and_clear();
        }
        let bar = self.bar.get_or_insert_with(|| match report.total_bytes {
            0 => progress::spinner(String::new()),
            total => progress::bytes(total, String::new()),
        });
        bar.set_prefix(report.what.clone());
        if is_bar {
            bar.set_length(report.total_bytes);
            bar.set_position(report.done_bytes);
        }
        let running = report.jobs.iter().find(|job| job.state == JobState::Running);
        // The request may be waiting for the first running job.
        if let Some(job) = running.filter(|_| !self.is_told) {
            bar.set_message(format!("{}: {}", job.keyspace, job.what));
        }
    }

    fn interest(&mut self) -> Interest {
        if self.failed.is_none() {
            self.failed = (self.item)(None).err();
        }
        if self.failed.is_some() {
            return Interest::Gone;
        }
        if (self.has_enough)() {
            return Interest::Cancelled;
        }
        if !is_cancelled() {
            return Interest::Waiting;
        }
        if let (Some(bar), false) = (&self.bar, self.is_told) {
            self.is_told = true;
            bar.set_message("cancelling");
        }
        Interest::Cancelled
    }
}
