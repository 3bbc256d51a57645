//! Scans as streams.
//!
//! A thread reads a chunk of entries when the stream has none left, and then leaves the scan until the
//! next chunk. So a stream that is not polled uses no thread and reads nothing, which provides
//! backpressure.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::operation::Operation;
use super::shared::Shared;
use crate::api::iterator::Iter;
use crate::base::error::{Error, Result};
use crate::files::value::{Key, Value};

/// The number of entries in the first chunk: a scan that needs few entries reads few.
const FIRST_ENTRIES: usize = 16;

/// The number of entries in later chunks. Handing over a chunk costs about as much as reading a few
/// dozen entries, so larger chunks gain little.
const ENTRIES_MAX: usize = 256;

/// The bytes of keys and values after which a chunk ends.
const BYTES_MAX: usize = 64 << 10;

/// The entries of a scan as a stream, in order, from a snapshot taken when the stream was first polled;
/// a stream of an [`AsyncSnapshot`](crate::AsyncSnapshot) reads from that snapshot.
///
/// The stream buffers up to 256 entries, and ends a chunk after 64 KiB. It reads the next chunk when it
/// is polled and has no entry left, so a slow consumer slows the scan down, and occupies no thread
/// meanwhile. Until the stream ends or is dropped, it pins its tables and memtables like an
/// [`Iter`]. After an error it returns no more entries.
///
/// Dropping the stream ends the scan. A thread that is reading a chunk finishes reading it and drops it.
///
/// [`AsyncIter::next`] is for loops; as a `Stream` of `futures-core` it works with the adapters of
/// `futures` and `tokio-stream`.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # pollster::block_on(async {
/// let db = terrane::AsyncDb::from(terrane::Db::open(dir.path())?);
/// db.put("user:1", "Ada").await?;
/// db.put("visit:1", "today").await?;
/// let mut users = db.prefix("user:");
/// while let Some((key, value)) = users.next().await.transpose()? {
///     assert_eq!((&key[..], &value[..]), (&b"user:1"[..], &b"Ada"[..]));
/// }
/// # Ok(())
/// # })
/// # }
/// ```
pub struct AsyncIter {
    buffered: VecDeque<(Key, Value)>,
    source: Source,
    entries_max: usize,
    /// Dropped last, so that the scan does not own the last handle.
    shared: Arc<Shared>,
}

type Open = Box<dyn FnOnce() -> Result<Iter> + Send>;

/// Where the next chunk comes from.
enum Source {
    Unopened(Open),
    Idle(Box<Iter>),
    Reading(Operation<Chunk>),
    Failed(Error),
    Ended,
}

/// Consecutive entries of a scan.
struct Chunk {
    entries: VecDeque<(Key, Value)>,
    rest: Source,
}

impl AsyncIter {
    /// Returns a stream over the iterator from `open`, which a thread calls at the first poll.
    pub(super) fn new(
        shared: &Arc<Shared>,
        open: impl FnOnce() -> Result<Iter> + Send + 'static,
    ) -> Self {
        Self {
            buffered: VecDeque::new(),
            source: Source::Unopened(Box::new(open)),
            entries_max: FIRST_ENTRIES,
            shared: Arc::clone(shared),
        }
    }

    /// Returns the next entry; `None` after the last one.
    ///
    /// Dropping the future loses no entry: the next call continues.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed before the first entry was requested.
    pub async fn next(&mut self) -> Option<Result<(Key, Value)>> {
        poll_fn(|context| self.poll_entry(context)).await
    }

    fn poll_entry(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<(Key, Value)>>> {
        loop {
            if let Some(entry) = self.buffered.pop_front() {
                return Poll::Ready(Some(Ok(entry)));
            }
            let entries_max = self.entries_max;
            match std::mem::replace(&mut self.source, Source::Ended) {
                Source::Ended => return Poll::Ready(None),
                Source::Failed(error) => return Poll::Ready(Some(Err(error))),
                Source::Unopened(open) => {
                    self.start(move || open().map(|iter| read_chunk(Box::new(iter), entries_max)));
                }
                Source::Idle(iter) => self.start(move || Ok(read_chunk(iter, entries_max))),
                Source::Reading(mut operation) => {
                    let Poll::Ready(chunk) = Pin::new(&mut operation).poll(context) else {
                        self.source = Source::Reading(operation);
                        return Poll::Pending;
                    };
                    match chunk {
                        Ok(chunk) => (self.buffered, self.source) = (chunk.entries, chunk.rest),
                        Err(error) => self.source = Source::Failed(error),
                    }
                }
            }
        }
    }

    fn start(&mut self, read: impl FnOnce() -> Result<Chunk> + Send + 'static) {
        self.entries_max = ENTRIES_MAX;
        self.source = Source::Reading(self.shared.read(read));
    }
}

fn read_chunk(mut iter: Box<Iter>, entries_max: usize) -> Chunk {
    let (mut entries, mut bytes) = (VecDeque::with_capacity(entries_max), 0);
    while entries.len() < entries_max && bytes < BYTES_MAX {
        match iter.next() {
            Some(Ok((key, value))) => {
                bytes += key.len() + value.len();
                entries.push_back((key, value));
            }
            Some(Err(error)) => return Chunk { entries, rest: Source::Failed(error) },
            None => return Chunk { entries, rest: Source::Ended },
        }
    }
    Chunk { entries, rest: Source::Idle(iter) }
}

impl Stream for AsyncIter {
    type Item = Result<(Key, Value)>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<(Key, Value)>>> {
        self.poll_entry(context)
    }
}

// Nothing is pinned.
impl Unpin for AsyncIter {}

impl fmt::Debug for AsyncIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("AsyncIter");
        fields.field("buffered", &self.buffered.len()).finish_non_exhaustive()
    }
}
