//! Reads an object in pieces, the next one while the caller uses the last.

use std::io::{self, Cursor, Read};
use std::ops::Range;
use std::sync::Arc;

use object_store::path::Path;
use object_store::{GetOptions, ObjectMeta, ObjectStore};

use super::{Bucket, PIECE_BYTES, Pending};

/// The contents of an object.
pub(super) struct Body<'a> {
    bucket: &'a Bucket,
    object: ObjectMeta,
    /// The piece that is being read.
    piece: Cursor<Vec<u8>>,
    /// The next piece, and its expected number of bytes.
    next: Option<(u64, Pending<Vec<u8>>)>,
    /// The start of the piece after the next one.
    end: u64,
}

impl<'a> Body<'a> {
    /// Reads the first piece. Unless more than one piece is expected, it requests the whole object,
    /// because an empty object has no valid range.
    pub(super) fn open(bucket: &'a Bucket, path: Path, expected: u64) -> io::Result<Self> {
        let store = Arc::clone(&bucket.store);
        let range = (expected > PIECE_BYTES as u64).then_some(0..PIECE_BYTES as u64);
        let (object, piece) = bucket.wait(async move {
            let options = GetOptions { range: range.map(Into::into), ..GetOptions::default() };
            let found = store.get_opts(&path, options).await?;
            let object = found.meta.clone();
            let piece = if found.range.end - found.range.start <= PIECE_BYTES as u64 {
                found.bytes().await?.to_vec()
            } else {
                drop(found);
                read(&*store, &object, 0..PIECE_BYTES as u64).await?
            };
            Ok((object, piece))
        })?;
        let end = piece.len() as u64;
        let mut body = Self { bucket, object, piece: Cursor::new(piece), next: None, end };
        body.ask();
        Ok(body)
    }

    /// Requests the next piece.
    fn ask(&mut self) {
        let range = self.end..self.object.size.min(self.end + PIECE_BYTES as u64);
        if range.is_empty() {
            return;
        }
        let (store, object) = (Arc::clone(&self.bucket.store), self.object.clone());
        let bytes = range.end - range.start;
        self.end = range.end;
        let pending = self.bucket.begin(async move { read(&*store, &object, range).await });
        self.next = Some((bytes, pending));
    }
}

/// Reads a part of an object, if the store still has the same version.
async fn read(
    store: &dyn ObjectStore,
    object: &ObjectMeta,
    range: Range<u64>,
) -> object_store::Result<Vec<u8>> {
    let options = GetOptions {
        if_match: object.e_tag.clone(),
        range: Some(range.into()),
        ..GetOptions::default()
    };
    Ok(store.get_opts(&object.location, options).await?.bytes().await?.to_vec())
}

impl Read for Body<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let bytes = self.piece.read(buffer)?;
            if bytes > 0 || buffer.is_empty() {
                return Ok(bytes);
            }
            let Some((bytes, pending)) = self.next.take() else { return Ok(0) };
            let piece = pending.wait()?;
            if piece.len() as u64 != bytes {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.piece = Cursor::new(piece);
            self.ask();
        }
    }
}
