//! Lines of the log that operators read: what happened to the database and to the server.
//!
//! They are events of `tracing` with the target `terrane_server`; a program without a subscriber pays nothing.
//! Everything that can happen many times a second prints at most one line in ten seconds, with the number
//! of times that it happened.

mod repeats;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use terrane::{Event, LoggedEvent};
use tracing::Level;

use self::repeats::{Line, Repeats};

/// Passes the events of a database on to the log; see [`terrane::Options::on_event`].
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let log = terrane_server::EngineLog::default();
/// let db = terrane::Options::new().on_event(log.listener()).open(dir.path())?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct EngineLog {
    repeats: Arc<Mutex<Repeats>>,
}

impl fmt::Debug for EngineLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineLog").finish_non_exhaustive()
    }
}

impl EngineLog {
    /// Returns the listener for the options of the database.
    pub fn listener(&self) -> impl Fn(&LoggedEvent) + Send + Sync + 'static {
        let log = self.clone();
        move |logged| {
            if let Some(line) = line_of(&logged.event) {
                log.offer(line);
            }
        }
    }

    /// Prints a line, unless one like it was printed a moment ago.
    fn offer(&self, line: Line) {
        let mut repeats = self.repeats.lock().unwrap_or_else(PoisonError::into_inner);
        let due = repeats.offer(line, Instant::now());
        drop(repeats);
        due.into_iter().for_each(|(line, times)| print(&line, times));
    }

    /// Prints the lines that were held back and are due.
    pub(crate) fn print_due(&self) {
        let mut repeats = self.repeats.lock().unwrap_or_else(PoisonError::into_inner);
        let due = repeats.due(Instant::now());
        drop(repeats);
        due.into_iter().for_each(|(line, times)| print(&line, times));
    }
}

/// Returns the line about an event of the engine; `None` for normal work.
fn line_of(event: &Event) -> Option<Line> {
    let (level, kind, subject) = match event {
        Event::Failed { .. } => (Level::ERROR, "failed", ""),
        Event::WorkFailed { .. } => (Level::ERROR, "work-failed", ""),
        Event::WorkRecovered { .. } => (Level::INFO, "work-recovered", ""),
        Event::WritesStalled(stall) => (Level::WARN, "writes-stalled", &*stall.keyspace),
        Event::WritesResumed { keyspace, .. } => (Level::INFO, "writes-resumed", &**keyspace),
        Event::FlushEnded { keyspace, failure: Some(_), .. } => {
            (Level::WARN, "flush-failed", &**keyspace)
        }
        Event::JobEnded { keyspace, failure: Some(_), .. } => {
            (Level::WARN, "compaction-failed", &**keyspace)
        }
        Event::CompactionFilterInactive { keyspace, .. } => {
            (Level::WARN, "compaction-filter-inactive", &**keyspace)
        }
        Event::DeletesLate { keyspace, .. } => (Level::WARN, "deletes-late", &**keyspace),
        Event::DeadValuesLate { keyspace, .. } => (Level::WARN, "dead-values-late", &**keyspace),
        Event::DirectoryNotSynced { path, .. } => (Level::WARN, "directory-not-synced", &**path),
        Event::LogNotMapped { .. } => (Level::WARN, "log-not-mapped", ""),
        Event::MemoryBudgetTooLarge { .. } => (Level::WARN, "memory-budget-too-large", ""),
        Event::MemoryShort { .. } => (Level::WARN, "memory-short", ""),
        Event::MemoryRecovered { .. } => (Level::INFO, "memory-recovered", ""),
        Event::DesignChanged { keyspace, .. } => (Level::INFO, "design-changed", &**keyspace),
        Event::OptionChanged { option, .. } => (Level::INFO, "option-changed", *option),
        Event::TablesIngested { keyspace, .. } => (Level::DEBUG, "tables-ingested", &**keyspace),
        _ => return None,
    };
    Some(Line { level, kind, subject: subject.to_owned(), text: event.to_string() })
}

/// Prints a line, with the number of times that it stands for.
fn print(line: &Line, times: u64) {
    let Line { level, kind, text, .. } = line;
    let repeated = (times > 1).then_some(times);
    // The macro needs a constant level.
    macro_rules! at {
        ($level:ident) => {
            tracing::event!(target: "terrane_server", Level::$level, kind, times = repeated, "{text}")
        };
    }
    match *level {
        Level::ERROR => at!(ERROR),
        Level::WARN => at!(WARN),
        Level::INFO => at!(INFO),
        _ => at!(DEBUG),
    }
}
