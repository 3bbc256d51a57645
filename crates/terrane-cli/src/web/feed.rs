//! The last hour of a database as lines of JSON, which all pages share.
//!
//! A line is an item of the control protocol, or one of [`Note`]. The same lines are the format of a recording
//! (`terrane top --record`, docs/control.md).
//!
//! Lines older than an hour are dropped, and the oldest ones of more than [`BYTES_MAX`]. What they said about
//! tables is folded into a first line, so that a page can always put the trees together.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use terrane_control::tables::{JobTables, PlacedTable, TableChanges, TreeChanges};
use terrane_control::{CurrentOptions, Info, Item};
use terrane_lab::output::json::SCHEMA;

/// How long lines are kept.
const KEPT_FOR: Duration = Duration::from_secs(3600);

/// The most bytes of lines that are kept.
const BYTES_MAX: usize = 64 << 20;

/// A line that is not from the database.
#[derive(Debug, Serialize)]
#[serde(tag = "item", rename_all = "kebab-case")]
pub(crate) enum Note<'a> {
    /// The lines that follow are from this process.
    Connected {
        /// The version of the format.
        schema: u32,
        at_micros: u64,
        /// The directory as it was given.
        database: &'a str,
        /// The process; `None` if the files were read.
        process: Option<Process<'a>>,
        options: Option<&'a CurrentOptions>,
    },
    /// The process has gone, or cannot be reached.
    Disconnected { at_micros: u64, text: &'a str },
}

/// The process that has the database open.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Process<'a> {
    pub(crate) pid: u32,
    pub(crate) program: &'a str,
    pub(crate) version: &'a str,
}

impl<'a> Process<'a> {
    /// Returns this process.
    pub(crate) fn own() -> Self {
        let version = env!("CARGO_PKG_VERSION");
        Self { pid: std::process::id(), program: "terrane", version }
    }

    /// Returns the process at the other end of a connection.
    pub(crate) fn of(info: &'a Info) -> Self {
        Self { pid: info.pid, program: &info.program, version: &info.version }
    }
}

impl<'a> Note<'a> {
    /// Returns the note of a connection at the present time.
    pub(crate) fn connected(
        database: &'a str,
        process: Option<Process<'a>>,
        options: Option<&'a CurrentOptions>,
    ) -> Self {
        Self::Connected { schema: SCHEMA, at_micros: now_micros(), database, process, options }
    }
}

/// Returns the present time in microseconds since the Unix epoch.
pub(crate) fn now_micros() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(now.unwrap_or_default().as_micros()).unwrap_or(u64::MAX)
}

/// The lines, for any number of readers.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Line>,
    bytes: usize,
    /// The number of the next line.
    next: u64,
    base: Base,
    record: Option<File>,
    /// Why the recording has ended.
    record_failed: Option<io::Error>,
    /// True if the feed ends with its recording.
    is_for_record: bool,
    has_ended: bool,
}

#[derive(Debug, Clone)]
struct Line {
    at: Instant,
    text: Arc<str>,
}

/// The most jobs that are remembered; a database has at most 64 threads for compactions.
const JOBS_MAX: usize = 256;

/// What dropped lines said.
#[derive(Debug, Default)]
struct Base {
    connected: Option<Arc<str>>,
    at_micros: u64,
    trees: BTreeMap<String, BTreeMap<u64, PlacedTable>>,
    /// The last jobs that have begun, which may still run.
    jobs: VecDeque<JobTables>,
}

/// Lines for a reader.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    /// True if the reader must forget what it knows.
    pub(crate) is_reset: bool,
    pub(crate) texts: Vec<Arc<str>>,
    /// The number of the next line.
    pub(crate) next: u64,
}

/// The most lines for a reader at a time.
const LINES_MAX: usize = 256;

impl Feed {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Also writes all lines to a new file. The feed ends with a line that cannot be written if it `is_for_record`
    /// alone.
    ///
    /// # Errors
    /// The file exists, or cannot be created.
    pub(crate) fn record_to(&self, path: &Path, is_for_record: bool) -> io::Result<()> {
        let file = File::create_new(path)?;
        let mut state = self.lock();
        (state.record, state.is_for_record) = (Some(file), is_for_record);
        Ok(())
    }

    /// Returns why the recording has ended.
    pub(crate) fn take_record_error(&self) -> Option<io::Error> {
        self.lock().record_failed.take()
    }

    /// Adds a line.
    pub(crate) fn push(&self, line: &impl Serialize) {
        self.push_at(Instant::now(), line);
    }

    fn push_at(&self, at: Instant, line: &impl Serialize) {
        // These types have no maps with other keys than strings.
        let Ok(text) = serde_json::to_string(line) else { return };
        let mut state = self.lock();
        state.write(&text);
        state.bytes += text.len();
        state.next += 1;
        state.lines.push_back(Line { at, text: text.into() });
        state.drop_old(at);
        drop(state);
        self.changed.notify_all();
    }

    /// Ends all readers.
    pub(crate) fn end(&self) {
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.lock().has_ended
    }

    /// Returns lines from a number on; waits for the first one, but not longer than a time. `None` is the number
    /// of a reader that knows nothing. Returns `None` once the feed has ended.
    pub(crate) fn lines(&self, from: Option<u64>, most: Duration) -> Option<Lines> {
        let state = self.lock();
        let wanted = from.unwrap_or(0);
        let waits = |state: &mut State| !state.has_ended && state.next == wanted && from.is_some();
        let waited = self.changed.wait_timeout_while(state, most, waits);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.has_ended { None } else { Some(state.lines(from)) }
    }

    /// Returns all lines that are kept, as a recording.
    pub(crate) fn recording(&self) -> String {
        let state = self.lock();
        let mut lines = state.base.lines();
        lines.extend(state.lines.iter().map(|line| Arc::clone(&line.text)));
        drop(state);
        lines.iter().flat_map(|line| [&**line, "\n"]).collect()
    }
}

impl State {
    /// Returns the number of the first line.
    fn first(&self) -> u64 {
        self.next - self.lines.len() as u64
    }

    fn lines(&self, from: Option<u64>) -> Lines {
        let first = self.first();
        let known = from.filter(|from| (first..=self.next).contains(from));
        let begin = known.unwrap_or(first);
        let skipped = usize::try_from(begin - first).unwrap_or(usize::MAX);
        let lines =
            self.lines.iter().skip(skipped).take(LINES_MAX).map(|line| Arc::clone(&line.text));
        let mut texts = if known.is_none() { self.base.lines() } else { Vec::new() };
        let before = texts.len();
        texts.extend(lines);
        let next = begin + (texts.len() - before) as u64;
        Lines { is_reset: known.is_none(), texts, next }
    }

    fn drop_old(&mut self, now: Instant) {
        let is_old = |line: &Line| now.saturating_duration_since(line.at) > KEPT_FOR;
        while self.lines.len() > 1
            && (self.bytes > BYTES_MAX || self.lines.front().is_some_and(is_old))
        {
            let Some(line) = self.lines.pop_front() else { return };
            self.bytes -= line.text.len();
            self.base.add(&line.text);
        }
    }

    /// Writes a line to the recording. One that cannot be written ends it.
    fn write(&mut self, text: &str) {
        let Some(file) = &mut self.record else { return };
        if let Err(error) = writeln!(file, "{text}") {
            self.record = None;
            if self.is_for_record {
                (self.record_failed, self.has_ended) = (Some(error), true);
            } else {
                let _ = writeln!(io::stderr(), "error: the recording ends here: {error}");
            }
        }
    }
}

impl Base {
    fn add(&mut self, text: &Arc<str>) {
        if text.starts_with(r#"{"item":"connected""#) {
            self.connected = Some(Arc::clone(text));
            return;
        }
        if !text.starts_with(r#"{"item":"tables""#) {
            return;
        }
        let Ok(Item::Tables(changes)) = serde_json::from_str(text) else { return };
        self.at_micros = changes.at_micros;
        if changes.is_whole {
            self.trees.clear();
            self.jobs.clear();
        }
        self.jobs.extend(changes.jobs);
        self.jobs.drain(..self.jobs.len().saturating_sub(JOBS_MAX));
        for TreeChanges { keyspace, removed, added, .. } in changes.trees {
            let tree = self.trees.entry(keyspace).or_default();
            for id in removed {
                tree.remove(&id);
            }
            tree.extend(added.into_iter().map(|table| (table.table, table)));
        }
        self.trees.retain(|_, tables| !tables.is_empty());
    }

    /// Returns the lines that stand for the dropped ones.
    fn lines(&self) -> Vec<Arc<str>> {
        let mut lines: Vec<Arc<str>> = self.connected.iter().map(Arc::clone).collect();
        if self.at_micros > 0 {
            let trees = self.trees.iter().map(|(keyspace, tables)| {
                TreeChanges::whole(keyspace.clone(), tables.values().cloned().collect())
            });
            let mut whole = TableChanges::whole(self.at_micros, trees.collect());
            whole.jobs = self.jobs.iter().cloned().collect();
            let text = serde_json::to_string(&Item::Tables(Box::new(whole)));
            lines.extend(text.ok().map(Arc::from));
        }
        lines
    }
}

#[cfg(test)]
mod tests;
