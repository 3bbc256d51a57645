//! The thread that follows a database into a feed.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use terrane::Db;
use terrane_control::{
    Client, CurrentOptions, Failure, Interest, Item, Progress, Reply, Request, Watch, execute,
};

use super::feed::{Feed, Note, Process, now_micros};
use crate::database::Database;

/// How long a process may send nothing, or three intervals.
const SILENCE_MAX: Duration = Duration::from_secs(10);

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

    /// Returns the number, the program and the version of the process.
    fn process(&self) -> (u32, String, String) {
        let Process { pid, program, version } = match self {
            Self::Own(_) => Process::own(),
            Self::Served(client) => Process::of(client.info()),
        };
        (pid, program.to_owned(), version.to_owned())
    }
}

/// How an attempt to follow a database has ended.
enum Outcome {
    /// The connection has ended, for this reason.
    Ended(String),
    /// There was no connection, for this reason.
    Unreachable(String),
    /// There still is no process.
    Nothing,
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
            let mut last = None;
            loop {
                match self.follow_once(&feed, interval, last.is_none()) {
                    Outcome::Nothing => {}
                    // The same again.
                    Outcome::Unreachable(text) if last.as_ref() == Some(&text) => {}
                    Outcome::Unreachable(text) | Outcome::Ended(text) => {
                        feed.push(&Note::Disconnected { at_micros: now_micros(), text: &text });
                        last = Some(text);
                    }
                }
                if feed.has_ended() {
                    return;
                }
                thread::sleep(RETRY_AFTER);
            }
        };
        thread::Builder::new().name("terrane-feed".to_owned()).spawn(follow)
    }

    /// Follows a connection to its end.
    fn follow_once(&self, feed: &Feed, interval: Duration, is_first: bool) -> Outcome {
        let mut connection = match self.connect() {
            Ok(Some(connection)) => connection,
            Ok(None) if is_first => return Outcome::Ended(self.show_files(feed)),
            Ok(None) => return Outcome::Nothing,
            Err(failure) => return Outcome::Unreachable(failure.to_string()),
        };
        let (options, name) = (options(&mut connection), self.name());
        let (pid, program, version) = connection.process();
        let process = Process { pid, program: &program, version: &version };
        let connected = || feed.push(&Note::connected(&name, Some(process), options.as_ref()));
        connected();
        let mut pusher = Pusher::new(feed, SILENCE_MAX.max(interval.saturating_mul(3)), &connected);
        let interval_millis = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        let request = Request::Top { interval_millis, count: None, details: true };
        let ended = connection.ask(&request, &mut pusher);
        let closed = || "the database was closed".to_owned();
        Outcome::Ended(ended.err().map_or_else(closed, |failure| failure.to_string()))
    }

    /// Shows the contents of the files, which no process serves. Returns the note that ends them.
    fn show_files(&self, feed: &Feed) -> String {
        let shown = || -> anyhow::Result<()> {
            let Self::Served(dir) = self else { return Ok(()) };
            let Database::Open(db) = Database::to_view(dir)? else { return Ok(()) };
            feed.push(&Note::connected(&self.name(), None, None));
            let request = Request::Top { interval_millis: 100, count: Some(1), details: true };
            execute(&db, &request, &mut Pusher::new(feed, SILENCE_MAX, &|| {}))?;
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

/// Passes items on to a feed, and notes if none come any more.
struct Pusher<'a> {
    feed: &'a Feed,
    /// How long the process may send nothing.
    most: Duration,
    heard: Instant,
    is_silent: bool,
    /// Notes that the process answers again.
    connected: &'a dyn Fn(),
}

impl<'a> Pusher<'a> {
    fn new(feed: &'a Feed, most: Duration, connected: &'a dyn Fn()) -> Self {
        Self { feed, most, heard: Instant::now(), is_silent: false, connected }
    }
}

impl Watch for Pusher<'_> {
    fn item(&mut self, item: Item) {
        self.heard = Instant::now();
        if std::mem::take(&mut self.is_silent) {
            (self.connected)();
        }
        self.feed.push(&item);
    }

    fn progress(&mut self, _: &Progress) {}

    fn interest(&mut self) -> Interest {
        if !self.is_silent && self.heard.elapsed() > self.most {
            self.is_silent = true;
            let seconds = self.most.as_secs();
            let text = format!("the process has not answered for {seconds} s; it may be stopped");
            self.feed.push(&Note::Disconnected { at_micros: now_micros(), text: &text });
        }
        if self.feed.has_ended() { Interest::Cancelled } else { Interest::Waiting }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page and a recording showed the last sample of a stopped process as if it were the present.
    #[test]
    fn silence_is_noted_once_and_so_is_its_end() {
        let (feed, most) = (Feed::default(), Duration::from_millis(20));
        let connected = || feed.push(&Note::connected("db", None, None));
        let mut pusher = Pusher::new(&feed, most, &connected);
        let text = r#"{"item":"tables","at_micros":5,"is_whole":true,"trees":[],"jobs":[]}"#;
        let item = || serde_json::from_str::<Item>(text).unwrap();
        pusher.item(item());
        assert_eq!(pusher.interest(), Interest::Waiting);
        thread::sleep(2 * most);
        (0..3).for_each(|_| assert_eq!(pusher.interest(), Interest::Waiting));
        pusher.item(item());
        pusher.item(item());
        let kinds: Vec<String> = feed
            .recording()
            .lines()
            .map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                line["item"].as_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(kinds, ["tables", "disconnected", "connected", "tables", "tables"]);
    }
}
