//! Writes entries into a keyspace, in batches or as an ingest.

use std::cell::Cell;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result, anyhow};
use indicatif::ProgressBar;
use terrane::{Clock, Db, Ingest, Keyspace, SystemClock, WriteBatch};

use super::interruption::Interruptible;
use super::report::Counts;
use terrane_lab::input::import_export::{
    Entry, EntryReader, NumberedEntry, RowError, Skipped, pairs,
};
use terrane_lab::output::human;

/// The size of a batch in bytes of keys and values: large enough to amortise the cost of a write,
/// and small compared with a memtable.
const BATCH_BYTES: u64 = 256 << 10;

/// A reader that counts the bytes read, for the progress.
pub(super) struct CountingReader<R> {
    input: R,
    bytes: Rc<Cell<u64>>,
}

impl<R: Read> CountingReader<R> {
    /// Returns the reader and its count.
    pub(super) fn new(input: R) -> (Self, Rc<Cell<u64>>) {
        let bytes = Rc::new(Cell::new(0));
        (Self { input, bytes: Rc::clone(&bytes) }, bytes)
    }
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.bytes.set(self.bytes.get() + count as u64);
        Ok(count)
    }
}

/// A running load.
pub(super) struct Loader {
    db: Db,
    keyspace: Keyspace,
    /// With `--sorted`, receives the entries instead of the batch.
    ingest: Option<Ingest>,
    interruptible: Interruptible,
    batch: WriteBatch,
    /// The counts of the batch, and those of the entries that are written.
    pending: Counts,
    written: Counts,
    /// The line of the first entry of the batch.
    batch_line: Option<u64>,
    now_micros: u64,
    /// The line to go on with after an error, if the file has lines.
    resume_line: Option<u64>,
    read_bytes: Rc<Cell<u64>>,
    bar: ProgressBar,
}

impl Loader {
    pub(super) fn new(
        keyspace: &Keyspace,
        (db, file): (&Db, &Path),
        ingest: Option<Ingest>,
        (bar, read_bytes): (ProgressBar, Rc<Cell<u64>>),
    ) -> Self {
        Self {
            db: db.clone(),
            keyspace: keyspace.clone(),
            interruptible: Interruptible::begin(db, file, ingest.is_some()),
            ingest,
            batch: WriteBatch::new(),
            pending: Counts::default(),
            written: Counts::default(),
            batch_line: None,
            now_micros: SystemClock.now_micros(),
            resume_line: None,
            read_bytes,
            bar,
        }
    }

    /// Returns the counts of the entries that are written.
    pub(super) fn counts(&self) -> Counts {
        self.written
    }

    /// Returns the line to go on with after an error.
    pub(super) fn resume_line(&self) -> Option<u64> {
        self.resume_line
    }

    /// Loads the entries of a text.
    pub(super) fn rows(&mut self, reader: &mut EntryReader<'_>) -> Result<Skipped> {
        loop {
            while let Some((line, entry)) = self.take(reader)? {
                let added = self.add(&entry, Some(line));
                added.with_context(|| format!("line {line}"))?;
            }
            self.write()?;
            self.bar.set_position(self.read_bytes.get());
            let next_line = reader.next_line();
            self.resume_line = Some(next_line);
            let entries = self.written.entries;
            let waited = self.interruptible.wait(entries, Some(next_line), || reader.wait());
            match waited {
                Ok(true) => {}
                Ok(false) => return Ok(reader.skipped()),
                Err(error) => {
                    let names_line = error
                        .get_ref()
                        .is_some_and(<dyn std::error::Error + Send + Sync>::is::<RowError>);
                    let error = anyhow::Error::from(error);
                    return Err(if names_line {
                        error
                    } else {
                        error.context(format!("line {next_line}"))
                    });
                }
            }
        }
    }

    fn take<'a>(
        &mut self,
        reader: &'a mut EntryReader<'_>,
    ) -> Result<Option<NumberedEntry<'a>>, RowError> {
        reader.take().inspect_err(|error| self.resume_line = Some(error.line))
    }

    /// Loads pairs of numbers.
    pub(super) fn pairs(&mut self, input: impl Read) -> Result<Skipped> {
        let mut reader = pairs::PairReader::new(input);
        loop {
            let entries = self.written.entries;
            let pairs = self.interruptible.wait(entries, None, || reader.read())?;
            if pairs.is_empty() {
                break;
            }
            for pair in pairs {
                let Entry { key, value, expires_at_micros } = pairs::entry(pair);
                self.add(&Entry { key: &key, value: &value, expires_at_micros }, None)?;
            }
            self.write()?;
            self.bar.set_position(self.read_bytes.get());
        }
        match reader.left_over_bytes() {
            0 => Ok(Skipped::default()),
            bytes => Err(anyhow!(
                "the last {} are not a whole pair",
                human::counted(bytes as u64, "byte")
            )),
        }
    }
    fn add(&mut self, entry: &Entry<&[u8]>, line: Option<u64>) -> Result<()> {
        let Entry { key, value, expires_at_micros } = *entry;
        // The engine rejects a whole batch for one invalid entry.
        if let Err(error) = check_sizes(key, value) {
            self.resume_line = line;
            return Err(error);
        }
        self.pending.entries += 1;
        self.pending.user_bytes += (key.len() + value.len()) as u64;
        self.pending.expired +=
            u64::from(expires_at_micros.is_some_and(|micros| micros <= self.now_micros));
        if let Some(ingest) = &mut self.ingest {
            match expires_at_micros {
                Some(expires_at) => ingest.put_with_expiry(key, value, expires_at)?,
                None => ingest.put(key, value)?,
            }
            return Ok(());
        }
        if self.batch.is_empty() {
            self.batch_line = line;
        }
        match expires_at_micros {
            Some(expires_at) => {
                self.batch.put_with_expiry_in(&self.keyspace, key, value, expires_at)
            }
            None => self.batch.put_in(&self.keyspace, key, value),
        };
        if self.pending.user_bytes >= BATCH_BYTES { self.write() } else { Ok(()) }
    }

    /// Writes the last batch, or commits the ingest.
    pub(super) fn finish(&mut self) -> Result<()> {
        let Some(ingest) = self.ingest.take() else { return self.write() };
        ingest.commit()?;
        self.count_written();
        Ok(())
    }

    /// Writes the batch. An ingest writes its entries itself.
    fn write(&mut self) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let done = self.db.write(&self.batch);
        self.batch.clear();
        if let Err(error) = done {
            self.pending = Counts::default();
            self.resume_line = self.batch_line;
            return Err(error.into());
        }
        self.count_written();
        Ok(())
    }

    fn count_written(&mut self) {
        let Counts { entries, user_bytes, expired } = std::mem::take(&mut self.pending);
        self.written.entries += entries;
        self.written.user_bytes += user_bytes;
        self.written.expired += expired;
    }
}

fn check_sizes(key: &[u8], value: &[u8]) -> Result<()> {
    let (what, found, most) = if key.len() > terrane::MAX_KEY_LEN {
        ("key", key.len(), terrane::MAX_KEY_LEN)
    } else if value.len() > terrane::MAX_VALUE_LEN {
        ("value", value.len(), terrane::MAX_VALUE_LEN)
    } else {
        return Ok(());
    };
    let found = human::bytes(found as u64);
    Err(anyhow!("the {what} has {found}; {what}s have at most {most} bytes"))
}
