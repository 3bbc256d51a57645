//! The thread that follows a database into a feed.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use terrane::Db;
use terrane_control::{
    Client, CurrentOptions, Failure, Interest, Item, Progress, Reply, Request, Watch, execute,
};

use super::feed::{Feed, Note, Process, now_micros};
use crate::database::Database;

/// The time between two attempts to reach a process.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A database, again and again.
pub(crate) enum Source {
    /// One that this process has open.
    Own(Db),
    /// The one in a directory, which another process has open.
    Served(PathBuf),
}

/// A connection to a database.
enum Connection {
    Own(Db),
    Served(Box<Client>),
}

impl Connection {
    fn ask(&mut self, request: &Request, watch: &mut dyn Watch) -> Result<Reply, Failure> {
        match self {
            Self::Own(db) => execute(db, request, watch),
            Self::Served(client) => client.ask(request, watch),
        }
    }

    fn process(&self) -> Process<'_> {
        match self {
            Self::Own(_) => Process::own(),
            Self::Served(client) => Process::of(client.info()),
        }
    }
}

impl Source {
    /// Returns the directory of the database.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Own(db) => db.path().display().to_string(),
            Self::Served(dir) => dir.display().to_string(),
        }
    }

    fn connect(&self) -> Result<Option<Connection>, Failure> {
        match self {
            Self::Own(db) => Ok(Some(Connection::Own(db.clone()))),
            Self::Served(dir) => {
                Ok(Client::connect(dir)?.map(|client| Connection::Served(Box::new(client))))
            }
        }
    }

    /// Carries out a request of a page, over a connection of its own.
    pub(crate) fn ask(&self, request: &Request) -> Result<Reply, String> {
        let connection = self.connect().map_err(|failure| failure.to_string())?;
        let mut connection = connection.ok_or("no process serves the database")?;
        connection.ask(request, &mut Vec::new()).map_err(|failure| failure.to_string())
    }

    /// Follows the database into a feed until that ends, on a thread.
    pub(crate) fn follow(
        self: Arc<Self>,
        feed: Arc<Feed>,
        interval: Duration,
    ) -> io::Result<JoinHandle<()>> {
        let follow = move || {
            let mut is_first = true;
            loop {
                if let Some(text) = self.follow_once(&feed, interval, is_first) {
                    feed.push(&Note::Disconnected { at_micros: now_micros(), text: &text });
                }
                is_first = false;
                if feed.has_ended() {
                    return;
                }
                thread::sleep(RETRY_AFTER);
            }
        };
        thread::Builder::new().name("terrane-feed".to_owned()).spawn(follow)
    }

    /// Follows a connection to its end. Returns why it has ended; `None` if nothing is new.
    fn follow_once(&self, feed: &Feed, interval: Duration, is_first: bool) -> Option<String> {
        let mut connection = match self.connect() {
            Ok(Some(connection)) => connection,
            Ok(None) => return is_first.then(|| self.show_files(feed)),
            Err(failure) => return is_first.then(|| failure.to_string()),
        };
        let options = options(&mut connection);
        feed.push(&Note::connected(&self.name(), Some(connection.process()), options.as_ref()));
        let interval_millis = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        let request = Request::Top { interval_millis, count: None, details: true };
        let ended = connection.ask(&request, &mut Pusher(feed));
        Some(
            ended.err().map_or_else(
                || "the database was closed".to_owned(),
                |failure| failure.to_string(),
            ),
        )
    }

    /// Shows the contents of the files, which no process serves. Returns the note that ends them.
    fn show_files(&self, feed: &Feed) -> String {
        let shown = || -> anyhow::Result<()> {
            let Self::Served(dir) = self else { return Ok(()) };
            let Database::Open(db) = Database::to_view(dir)? else { return Ok(()) };
            feed.push(&Note::connected(&self.name(), None, None));
            let request = Request::Top { interval_millis: 100, count: Some(1), details: true };
            execute(&db, &request, &mut Pusher(feed))?;
            Ok(())
        };
        match shown() {
            Ok(()) => "no process serves the database: these are its files".to_owned(),
            Err(error) => format!("{error:#}"),
        }
    }
}

fn options(connection: &mut Connection) -> Option<CurrentOptions> {
    match connection.ask(&Request::Options, &mut Vec::new()) {
        Ok(Reply::Options(options)) => Some(options),
        _ => None,
    }
}

/// Passes items on to a feed.
struct Pusher<'a>(&'a Feed);

impl Watch for Pusher<'_> {
    fn item(&mut self, item: Item) {
        self.0.push(&item);
    }

    fn progress(&mut self, _: &Progress) {}

    fn interest(&mut self) -> Interest {
        if self.0.has_ended() { Interest::Cancelled } else { Interest::Waiting }
    }
}
