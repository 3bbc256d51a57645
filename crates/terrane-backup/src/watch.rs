//! Pace, progress and cancellation of a long operation.

use std::fmt;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cancelled::cancelled;
use crate::content::{ContentHasher, ContentId};

/// How far an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Files or objects that are done.
    pub done_files: u64,
    /// All files or objects.
    pub total_files: u64,
    /// Bytes of them that are done.
    pub done_bytes: u64,
    /// All bytes.
    pub total_bytes: u64,
}

/// Receives the progress, and cancels the operation with [`ControlFlow::Break`].
#[derive(Clone)]
struct Callback(Arc<dyn Fn(Progress) -> ControlFlow<()> + Send + Sync>);

impl fmt::Debug for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}

/// The options that all long operations have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    /// Bytes per second.
    rate: Option<u64>,
    callback: Option<Callback>,
}

impl Pace {
    pub(crate) fn set_rate(&mut self, bytes_per_second: u64) {
        self.rate = Some(bytes_per_second);
    }

    pub(crate) fn set_callback(
        &mut self,
        callback: impl Fn(Progress) -> ControlFlow<()> + Send + Sync + 'static,
    ) {
        self.callback = Some(Callback(Arc::new(callback)));
    }
}

/// Gives options with a field `pace` the methods `rate` and `on_progress`. The literals document them.
macro_rules! impl_pace {
    ($options:ty, $rate:literal, $on_progress:literal) => {
        impl $options {
            #[doc = $rate]
            #[must_use]
            pub fn rate(mut self, bytes_per_second: u64) -> Self {
                self.pace.set_rate(bytes_per_second);
                self
            }

            #[doc = $on_progress]
            #[must_use]
            pub fn on_progress(
                mut self,
                callback: impl Fn($crate::Progress) -> std::ops::ControlFlow<()> + Send + Sync + 'static,
            ) -> Self {
                self.pace.set_callback(callback);
                self
            }
        }
    };
}

pub(crate) use impl_pace;

/// How long a slow operation sleeps before it checks again whether it was cancelled.
const NAP: Duration = Duration::from_millis(50);

/// The number of bytes read at once.
pub(crate) const PIECE_BYTES: usize = 256 << 10;

/// The pace and the progress of one operation.
pub(crate) struct Watch {
    pace: Pace,
    /// The time at which the next byte may be read.
    next: Instant,
    progress: Progress,
}

impl Watch {
    pub(crate) fn new(pace: Pace) -> Self {
        Self { pace, next: Instant::now(), progress: Progress::default() }
    }

    /// Sets the total of files and bytes.
    pub(crate) fn set_total(&mut self, files: u64, bytes: u64) {
        self.progress = Progress { total_files: files, total_bytes: bytes, ..Progress::default() };
    }

    /// Counts bytes as done.
    pub(crate) fn add_bytes(&mut self, bytes: u64) {
        self.progress.done_bytes += bytes;
    }

    /// Counts a file as done.
    pub(crate) fn add_file(&mut self) {
        self.progress.done_files += 1;
    }

    /// Calls the callback.
    ///
    /// # Errors
    /// It cancelled the operation.
    pub(crate) fn report(&self) -> io::Result<()> {
        match self.pace.callback.as_ref().map(|callback| (callback.0)(self.progress)) {
            Some(ControlFlow::Break(())) => Err(cancelled()),
            _ => Ok(()),
        }
    }

    /// Waits until this many more bytes conform to the rate.
    fn spend(&mut self, bytes: u64) -> io::Result<()> {
        self.report()?;
        let Some(rate) = self.pace.rate else { return Ok(()) };
        // Unused time is not credited, so that a pause is not followed by a burst.
        self.next = self.next.max(Instant::now());
        self.next += Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
        loop {
            let left = self.next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(NAP));
            self.report()?;
        }
    }
}

/// How the bytes of a reader count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    /// As progress, and fully against the rate.
    Whole,
    /// As progress, and half against the rate, because they are read twice.
    SecondOfTwo,
    /// Not as progress, and half against the rate.
    FirstOfTwo,
}

/// A reader that hashes its bytes, at the pace of a [`Watch`].
pub(crate) struct Watched<'a, R> {
    inner: R,
    watch: &'a mut Watch,
    counting: Counting,
    hasher: ContentHasher,
    /// XXH3-64, which the engine's manifest has for tables.
    sum: Option<xxhash_rust::xxh3::Xxh3>,
    /// The expected contents.
    expected: Option<ContentId>,
    has_other_contents: bool,
}

impl<'a, R: Read> Watched<'a, R> {
    pub(crate) fn new(inner: R, watch: &'a mut Watch, counting: Counting) -> Self {
        let hasher = ContentHasher::default();
        let (sum, expected, has_other_contents) = (None, None, false);
        Self { inner, watch, counting, hasher, sum, expected, has_other_contents }
    }

    /// Fails at the end if the contents differ, so that a repository does not store them.
    pub(crate) fn expecting(mut self, content: ContentId) -> Self {
        self.expected = Some(content);
        self
    }

    /// Returns true if the reader failed because of its contents.
    pub(crate) fn has_other_contents(&self) -> bool {
        self.has_other_contents
    }

    /// Computes XXH3-64 as well.
    pub(crate) fn with_sum(mut self) -> Self {
        self.sum = Some(xxhash_rust::xxh3::Xxh3::new());
        self
    }

    /// Reads to the end.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match self.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the identity of the bytes read, and their XXH3-64 if it was computed.
    pub(crate) fn finish(self) -> (ContentId, Option<u64>) {
        (self.hasher.finish(), self.sum.map(|sum| sum.digest()))
    }
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(PIECE_BYTES);
        let bytes = self.inner.read(&mut buffer[..most])?;
        if bytes == 0
            && most > 0
            && self.expected.is_some_and(|content| content != self.hasher.clone().finish())
        {
            self.has_other_contents = true;
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.hasher.update(&buffer[..bytes]);
        if let Some(sum) = &mut self.sum {
            sum.update(&buffer[..bytes]);
        }
        let bytes = bytes as u64;
        if self.counting != Counting::FirstOfTwo {
            self.watch.add_bytes(bytes);
        }
        let spent = if self.counting == Counting::Whole { bytes } else { bytes.div_ceil(2) };
        self.watch.spend(spent)?;
        Ok(bytes as usize)
    }
}
