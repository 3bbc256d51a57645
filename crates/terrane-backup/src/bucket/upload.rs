//! Stores an object: a small one by one request, a larger one in parts.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;

use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt};

use super::{Bucket, PIECE_BYTES, Pending};

/// How many parts are sent concurrently, while the next one is read.
pub(super) const IN_FLIGHT: usize = 3;

/// The most parts of an object in S3. Azure allows more.
const PARTS_MAX: u64 = 10_000;

/// Returns the size of the parts of an object: larger ones only if there would be too many.
pub(super) fn part_bytes(object_bytes: u64) -> usize {
    let least = object_bytes.div_ceil(PARTS_MAX);
    let pieces = least.div_ceil(PIECE_BYTES as u64).max(1);
    usize::try_from(pieces).map_or(usize::MAX, |pieces| pieces.saturating_mul(PIECE_BYTES))
}

/// Stores all bytes of `contents`. On failure, nothing is stored.
pub(super) fn upload(
    bucket: &Bucket,
    path: &Path,
    part_bytes: usize,
    contents: &mut dyn Read,
) -> io::Result<()> {
    let first = read_part(contents, part_bytes)?;
    let (store, path) = (Arc::clone(&bucket.store), path.clone());
    if first.len() < part_bytes {
        return bucket.wait(async move { store.put(&path, first.into()).await }).map(drop);
    }
    let upload = bucket.wait(async move { store.put_multipart(&path).await })?;
    join(bucket, upload, first, part_bytes, contents)
}

/// Sends all parts, and joins them to an object. On failure, the parts are removed.
fn join(
    bucket: &Bucket,
    mut upload: Box<dyn MultipartUpload>,
    first: Vec<u8>,
    part_bytes: usize,
    contents: &mut dyn Read,
) -> io::Result<()> {
    let sent = send(bucket, &mut *upload, first, part_bytes, contents);
    if let Err(error) = sent {
        // The remaining parts are not an object; the store may keep them until a rule of the bucket removes
        // them.
        let _ = bucket.wait(async move { upload.abort().await });
        return Err(error);
    }
    let completed = bucket.wait(async move {
        let completed = upload.complete().await;
        if completed.is_err() {
            let _ = upload.abort().await;
        }
        completed
    });
    completed.map(drop)
}

/// Sends all parts. When this returns, none is still being sent.
fn send(
    bucket: &Bucket,
    upload: &mut dyn MultipartUpload,
    first: Vec<u8>,
    part_bytes: usize,
    contents: &mut dyn Read,
) -> io::Result<()> {
    let mut sending: VecDeque<Pending<()>> = VecDeque::new();
    let mut part = Ok(first);
    let result = loop {
        match part {
            Ok(bytes) if bytes.is_empty() => break Ok(()),
            Ok(bytes) => sending.push_back(bucket.begin(upload.put_part(bytes.into()))),
            Err(error) => break Err(error),
        }
        if sending.len() >= IN_FLIGHT
            && let Some(oldest) = sending.pop_front()
            && let Err(error) = oldest.wait()
        {
            break Err(error);
        }
        part = read_part(contents, part_bytes);
    };
    sending.into_iter().map(Pending::wait).fold(result, Result::and)
}

/// Reads one part. It is shorter only at the end.
fn read_part(contents: &mut dyn Read, part_bytes: usize) -> io::Result<Vec<u8>> {
    let mut part = Vec::with_capacity(part_bytes.min(PIECE_BYTES));
    contents.take(part_bytes as u64).read_to_end(&mut part)?;
    Ok(part)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use object_store::memory::InMemory;
    use object_store::{PutPayload, PutResult, UploadPart};

    use super::*;

    type Answer<'a, T> = Pin<Box<dyn Future<Output = object_store::Result<T>> + Send + 'a>>;

    /// The history of an upload's parts.
    #[derive(Debug, Default)]
    struct Seen {
        begun: AtomicUsize,
        done: AtomicUsize,
        most_in_flight: AtomicUsize,
        ends: Mutex<Vec<&'static str>>,
    }

    /// An upload that takes time, and fails at one part or at the end.
    #[derive(Debug)]
    struct Observed {
        seen: Arc<Seen>,
        fails_at: Option<usize>,
        is_completed: bool,
    }

    fn refused() -> object_store::Error {
        object_store::Error::Generic { store: "test", source: "refused".into() }
    }

    impl MultipartUpload for Observed {
        fn put_part(&mut self, _: PutPayload) -> UploadPart {
            let seen = Arc::clone(&self.seen);
            let part = seen.begun.fetch_add(1, Ordering::SeqCst);
            let in_flight = part + 1 - seen.done.load(Ordering::SeqCst);
            seen.most_in_flight.fetch_max(in_flight, Ordering::SeqCst);
            let fails = self.fails_at == Some(part);
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(3)).await;
                seen.done.fetch_add(1, Ordering::SeqCst);
                if fails { Err(refused()) } else { Ok(()) }
            })
        }

        fn complete<'a, 'b>(&'a mut self) -> Answer<'b, PutResult>
        where
            'a: 'b,
            Self: 'b,
        {
            self.seen.ends.lock().unwrap().push("complete");
            let is_completed = self.is_completed;
            Box::pin(async move {
                let (e_tag, version, extensions) = (None, None, Default::default());
                let result = PutResult { e_tag, version, extensions };
                if is_completed { Ok(result) } else { Err(refused()) }
            })
        }

        fn abort<'a, 'b>(&'a mut self) -> Answer<'b, ()>
        where
            'a: 'b,
            Self: 'b,
        {
            let (begun, done) =
                (self.seen.begun.load(Ordering::SeqCst), self.seen.done.load(Ordering::SeqCst));
            assert_eq!(begun, done, "a part is still being sent");
            self.seen.ends.lock().unwrap().push("abort");
            Box::pin(async { Ok(()) })
        }
    }

    /// Uploads parts of 10 bytes, the first of which was already read.
    fn join_parts(
        fails_at: Option<usize>,
        is_completed: bool,
        contents: &mut dyn Read,
    ) -> (io::Result<()>, Arc<Seen>) {
        let bucket = Bucket::new(Arc::new(InMemory::new()), "", "memory").unwrap();
        let seen = Arc::new(Seen::default());
        let upload = Observed { seen: Arc::clone(&seen), fails_at, is_completed };
        (join(&bucket, Box::new(upload), vec![0; 10], 10, contents), seen)
    }

    #[test]
    fn few_parts_are_sent_at_a_time_and_all_of_them() {
        let (result, seen) = join_parts(None, true, &mut &[0; 195][..]);
        result.unwrap();
        assert_eq!(seen.begun.load(Ordering::SeqCst), 21);
        assert_eq!(seen.most_in_flight.load(Ordering::SeqCst), IN_FLIGHT);
        assert_eq!(*seen.ends.lock().unwrap(), ["complete"]);
    }

    #[test]
    fn an_upload_that_fails_is_aborted_when_no_part_is_being_sent_any_more() {
        for fails_at in 0..21 {
            let (result, seen) = join_parts(Some(fails_at), true, &mut &[0; 195][..]);
            assert!(result.unwrap_err().to_string().contains("refused"));
            assert_eq!(*seen.ends.lock().unwrap(), ["abort"]);
        }
        let (result, seen) = join_parts(None, false, &mut &[0; 195][..]);
        assert!(result.unwrap_err().to_string().contains("refused"));
        assert_eq!(*seen.ends.lock().unwrap(), ["complete", "abort"]);
    }

    #[test]
    fn the_error_of_a_reader_is_returned() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(crate::cancelled::cancelled())
            }
        }
        let (result, seen) = join_parts(None, true, &mut [0; 35].chain(Failing));
        assert!(crate::cancelled::is_cancelled(&result.unwrap_err()));
        assert_eq!(*seen.ends.lock().unwrap(), ["abort"]);
    }

    #[test]
    fn parts_are_larger_only_if_there_would_be_too_many() {
        for (bytes, pieces) in [(0, 1), (1 << 30, 1), (80_000 << 20, 1), ((80_000 << 20) + 1, 2)] {
            assert_eq!(part_bytes(bytes), pieces * PIECE_BYTES, "{bytes}");
        }
        let largest = 5 << 40;
        assert!(largest / part_bytes(largest) as u64 <= PARTS_MAX);
        assert_eq!(part_bytes(u64::MAX) as u64 % PIECE_BYTES as u64, 0);
    }
}
