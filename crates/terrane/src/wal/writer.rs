//! Appends records to the log, one writer at a time.

use std::path::PathBuf;
use std::sync::Arc;

use super::ahead::{Ahead, HeaderSync, Released, WantedClean, WantedPages, WantedSpare};
use super::format::{
    HEADER_BYTES, NOTE_OFFSET, RecordKind, SegmentHeader, TERMINATOR_BYTES, encode_note,
    record_bytes, record_header,
};
use super::{LogSync, Replayed, ReplayedFile};
use super::{segment_file_name, segment_file_number};
use crate::batch::Op;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::stats::{Counter, Counters};
use crate::storage::{Segment, Storage};
use crate::types::{KeyspaceId, Lsn, SeqNo};

/// How the log is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogConfig {
    /// The length of a segment, unless a record needs more.
    pub(crate) segment_bytes: u64,
}

/// The first segment of a log is this short: a small database should not take much room, and a
/// large one soon has others. Each further one is four times as long, up to the usual length.
const FIRST_SEGMENT_BYTES: u64 = 4 << 20;
const GROWTH: u64 = 4;

/// Segments that are kept to be written again.
const SPARES_MAX: usize = 2;

/// So much of a segment is ready to be written, at most, before it is: twice what a writer at full
/// speed fills while the next part is made ready.
const READY_BYTES: u64 = 4 << 20;

/// A segment that is written to up to here is worth being made ready.
const READY_FROM: u64 = 256 << 10;

/// Payloads up to this size are put together in memory, and written at once.
const COPIED_BYTES: usize = 16 << 10;

/// What a log is part of.
pub(crate) struct LogEnvironment {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) dir: PathBuf,
    pub(crate) database: u64,
}

/// A file of the log, and how much of it holds records.
#[derive(Debug, Clone)]
pub(crate) struct LogCopy {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// The end of the log, where records are added.
pub(crate) struct LogWriter {
    environment: LogEnvironment,
    config: LogConfig,
    sync: Arc<LogSync>,
    current: Current,
    /// Segments that are full, oldest first, with the positions at which they end.
    full: Vec<FullSegment>,
    spares: Vec<PathBuf>,
    /// Segments that will be spares when they are clean.
    being_cleaned: usize,
    /// What was noted of the manifest last.
    manifest_version: u64,
    /// Holders that need the files as they are.
    pins: usize,
    /// Someone is making a spare.
    spare_is_wanted: bool,
    next_file: u64,
    /// The newest number of a segment, also of one that was not begun after all.
    newest_segment: u64,
    scratch: Vec<u8>,
    encoded: Vec<u8>,
    /// A record that is written together with the next one.
    before: Vec<u8>,
    /// What the log last said is durable.
    said_synced: Lsn,
}

struct Current {
    header: SegmentHeader,
    header_sync: Arc<HeaderSync>,
    /// Someone was asked to make the header durable.
    is_header_given: bool,
    path: PathBuf,
    segment: Box<dyn Segment>,
    offset: u64,
    len: u64,
    /// Once it is written up to here, more is to be made ready.
    ready_at: u64,
    /// Up to where it is ready, or is being made so.
    ready: u64,
}

struct FullSegment {
    path: PathBuf,
    end: Lsn,
    /// Bytes of the file up to its end.
    bytes: u64,
}

impl LogWriter {
    /// Begins a new segment after what was replayed, and makes the chain durable up to it. All
    /// positions before `flushed` belong to records that are in tables, of some keyspace at least.
    pub(crate) fn begin(
        environment: LogEnvironment,
        config: LogConfig,
        sync: Arc<LogSync>,
        replayed: &Replayed,
        newest_segment: u64,
        flushed: Lsn,
    ) -> Result<Self> {
        let LogEnvironment { storage, dir, .. } = &environment;
        let names = storage.list(dir).map_err(|error| Error::io("list", dir, error))?;
        let next_file =
            names.iter().filter_map(|name| segment_file_number(name)).max().unwrap_or(0) + 1;
        let mut full = Vec::new();
        for ReplayedFile { path, end, bytes } in &replayed.files {
            // What was replayed is the past of everything that will be promised from now on. Where
            // nothing was, all of it is in tables; but the newest header may not be durable.
            if replayed.batches > 0 || !replayed.was_closed {
                let segment =
                    storage.open_segment(path).map_err(|error| Error::io("open", path, error))?;
                segment.syncer().sync().map_err(|error| Error::io("sync", path, error))?;
            }
            full.push(FullSegment { path: path.clone(), end: *end, bytes: *bytes });
        }
        let place = Place {
            segment: newest_segment + 1,
            previous: replayed.last_segment,
            previous_end: replayed.last_end,
            base: replayed.end.max(flushed),
        };
        let len = FIRST_SEGMENT_BYTES.min(config.segment_bytes);
        let (path, segment) = create_file(&environment, next_file, len)?;
        let current = begin(&environment, path, segment, place)?;
        sync.sync_header(&current.header_sync)?;
        sync.begin_segment(current.path.clone(), current.segment.syncer(), place.base);
        Ok(Self {
            environment,
            config,
            sync,
            current,
            full,
            spares: Vec::new(),
            being_cleaned: 0,
            manifest_version: 0,
            pins: 0,
            spare_is_wanted: false,
            next_file: next_file + 1,
            newest_segment: place.segment,
            scratch: Vec::new(),
            encoded: Vec::new(),
            before: Vec::new(),
            said_synced: place.base,
        })
    }

    /// The number of the segment that is being written.
    pub(crate) fn segment(&self) -> u64 {
        self.current.header.segment
    }

    /// The position after the last record.
    #[inline]
    pub(crate) fn end(&self) -> Lsn {
        Lsn(self.current.header.base.0 + (self.current.offset - HEADER_BYTES))
    }

    /// The files that hold records, oldest first.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let full = self.full.iter().map(|segment| segment.path.clone());
        full.chain([self.current.path.clone()]).collect()
    }

    /// The files that hold records, with what of them does.
    pub(crate) fn copies(&self) -> Vec<LogCopy> {
        let full =
            self.full.iter().map(|full| LogCopy { path: full.path.clone(), bytes: full.bytes });
        let current = LogCopy { path: self.current.path.clone(), bytes: self.current.offset };
        full.chain([current]).collect()
    }

    /// While the log is pinned, by any number of holders, no file of it is freed.
    pub(crate) fn pin(&mut self, is_pinned: bool) {
        self.pins = if is_pinned { self.pins + 1 } else { self.pins.saturating_sub(1) };
    }

    /// Adds the operations of a write, of which the first has sequence number `seq`; `is_synced`
    /// if the writer will have it synced at once. Returns the position after it. Nothing is written
    /// if it fails.
    ///
    /// # Errors
    /// There is no room for another segment.
    pub(crate) fn append(
        &mut self,
        seq: SeqNo,
        operations: &[&[u8]],
        is_synced: bool,
    ) -> Result<Lsn> {
        let synced = self.sync.synced();
        // Once something new is durable the log says so, for the next recovery to know.
        if synced > self.said_synced {
            let note = synced.0.to_le_bytes();
            let needed = record_bytes(note.len())
                + record_bytes(operations.iter().map(|part| part.len()).sum());
            if is_synced && self.has_room(needed) {
                self.put_before(RecordKind::Synced, seq, &note);
            } else {
                self.write_record(RecordKind::Synced, seq, &[&note], is_synced)?;
            }
        }
        let end = self.write_record(RecordKind::Batch, seq, operations, is_synced)?;
        self.said_synced = self.said_synced.max(synced);
        Ok(end)
    }

    /// Whether the segment has room for so many bytes of records, and for its end.
    fn has_room(&self, bytes: usize) -> bool {
        self.current.offset + (bytes + record_bytes(0)) as u64 <= self.current.len
    }

    /// Encodes a record that is written together with the next one, for which the segment has room.
    fn put_before(&mut self, kind: RecordKind, seq: SeqNo, payload: &[u8]) {
        let Current { header, offset, .. } = &self.current;
        let head = record_header(header.nonce, *offset, kind, seq, &[payload]);
        self.before.extend_from_slice(&head);
        self.before.extend_from_slice(payload);
        self.before.resize(record_bytes(payload.len()), 0);
    }

    /// Adds a write of one operation, encoded on the way.
    pub(crate) fn append_one(
        &mut self,
        seq: SeqNo,
        keyspace: KeyspaceId,
        op: &Op<'_>,
        is_synced: bool,
    ) -> Result<Lsn> {
        let mut encoded = std::mem::take(&mut self.encoded);
        encoded.clear();
        let appended = match *op {
            // A large value is not copied into the operation.
            Op::Put { key, value } if value.len() > COPIED_BYTES => {
                Op::encode_put_head(keyspace, key, value.len(), &mut encoded);
                self.append(seq, &[&encoded, value], is_synced)
            }
            _ => {
                op.encode(keyspace, &mut encoded);
                self.append(seq, &[&encoded], is_synced)
            }
        };
        self.encoded = encoded;
        appended
    }

    fn write_record(
        &mut self,
        kind: RecordKind,
        seq: SeqNo,
        payload: &[&[u8]],
        is_synced: bool,
    ) -> Result<Lsn> {
        let payload_bytes: usize = payload.iter().map(|part| part.len()).sum();
        let total = record_bytes(payload_bytes);
        // Room for the record that says that another segment follows is always left.
        let reserved = if kind == RecordKind::Continued { 0 } else { record_bytes(0) };
        if self.current.offset + (total + reserved) as u64 > self.current.len {
            self.next_segment((total + reserved) as u64)?;
        }
        let Current { header, segment, offset, len, path, .. } = &mut self.current;
        self.scratch.clear();
        self.scratch.append(&mut self.before);
        let before = self.scratch.len();
        let own = *offset + before as u64;
        let head = record_header(header.nonce, own, kind, seq, payload);
        self.scratch.extend_from_slice(&head);
        let mut write = |offset, bytes: &[u8]| {
            let written = match is_synced {
                true => segment.write_through(offset, bytes),
                false => segment.write(offset, bytes),
            };
            written.map_err(|error| Error::io("write", path, error))
        };
        // A large payload is not copied twice; it is written first, so that the record does not
        // hold before all of it is there.
        if payload_bytes <= COPIED_BYTES {
            payload.iter().for_each(|part| self.scratch.extend_from_slice(part));
        } else {
            let mut at = own + head.len() as u64;
            for part in payload {
                write(at, part)?;
                at += part.len() as u64;
            }
        }
        let copied = self.scratch.len();
        let room = (*len - own - total as u64).min(TERMINATOR_BYTES as u64) as usize;
        if payload_bytes <= COPIED_BYTES {
            self.scratch.resize(before + total + room, 0);
        } else {
            let tail = vec![0; total - head.len() - payload_bytes + room];
            write(own + (total + room - tail.len()) as u64, &tail)?;
            self.scratch.truncate(copied);
        }
        write(*offset, &self.scratch)?;
        *offset = own + total as u64;
        self.sync.set_written(Lsn(header.base.0 + (*offset - HEADER_BYTES)));
        self.environment.counters.add(Counter::LogBytesWritten, (before + total) as u64);
        Ok(self.end())
    }

    /// Ends the current segment and begins another with `room` bytes for records.
    #[cold]
    fn next_segment(&mut self, room: u64) -> Result<()> {
        let needed = HEADER_BYTES + room;
        self.sync_header()?;
        // The file is made first: if there is no room for it, nothing has changed.
        let (path, segment) = match self.take_spare(needed) {
            Some(spare) => spare,
            None => {
                let usual = self.current.len.saturating_mul(GROWTH);
                let len = usual.min(self.config.segment_bytes).max(needed);
                let number = self.next_file;
                self.next_file += 1;
                create_file(&self.environment, number, len)?
            }
        };
        // The next segment is there before this one says so: a segment that is announced and
        // missing is damage.
        let header = self.current.header;
        let base = Lsn(self.end().0 + record_bytes(0) as u64);
        // A number is never given twice: the header of a segment that failed to begin may be on
        // disk, and must not be taken for that of the one that is begun in its place.
        self.newest_segment += 1;
        let place = Place {
            segment: self.newest_segment,
            previous: header.segment,
            previous_end: base,
            base,
        };
        let end = self.current.offset + record_bytes(0) as u64;
        let begun = begin(&self.environment, path, segment, place).and_then(|next| {
            self.write_record(RecordKind::Continued, 0, &[], false)?;
            Ok(next)
        });
        let mut next = match begun {
            Ok(next) => next,
            Err(error) => {
                // Its header may be there, and say that this segment ends here. So it does: what
                // is written next begins a segment that comes after both.
                self.current.len = end;
                return Err(error);
            }
        };
        // Who has filled a segment will not stop at the beginning of the next one.
        next.ready_at = 0;
        self.sync.begin_segment(next.path.clone(), next.segment.syncer(), base);
        let before = std::mem::replace(&mut self.current, next);
        // Before anything else can fail: a file that is not among them is never freed.
        let Current { path, offset: bytes, .. } = before;
        self.full.push(FullSegment { path, end: base, bytes });
        self.note_manifest(self.manifest_version)
    }

    /// The header of this segment is durable before there is another one. As a rule it is so long
    /// since.
    fn sync_header(&self) -> Result<()> {
        if self.is_header_durable() {
            Ok(())
        } else {
            self.sync.sync_header(&self.current.header_sync)
        }
    }

    fn is_header_durable(&self) -> bool {
        // A sync of any record has synced the header.
        let Current { header, header_sync, .. } = &self.current;
        header_sync.is_durable() || self.sync.synced() > header.base
    }

    fn take_spare(&mut self, needed: u64) -> Option<(PathBuf, Box<dyn Segment>)> {
        while let Some(path) = self.spares.pop() {
            let segment = self.environment.storage.open_segment(&path);
            match segment {
                Ok(segment) if segment.len() >= needed => return Some((path, segment)),
                // Too short, or gone: a new one will do.
                _ => drop(self.environment.storage.remove(&path)),
            }
        }
        None
    }

    /// What is needed to make a spare segment, if one should be made: so that the next writer to
    /// need one does not wait for the disk.
    pub(crate) fn wanted_spare(&mut self) -> Option<WantedSpare> {
        let is_half_full = self.current.offset > self.current.len / 2;
        let is_usual = self.current.len.saturating_mul(GROWTH) >= self.config.segment_bytes;
        let is_coming = self.spare_is_wanted || self.being_cleaned > 0;
        if !self.spares.is_empty() || is_coming || !is_half_full || !is_usual {
            return None;
        }
        self.spare_is_wanted = true;
        let path = self.environment.dir.join(segment_file_name(self.next_file));
        self.next_file += 1;
        Some(WantedSpare { path, len: self.config.segment_bytes })
    }

    /// What is to be done for the segment before it is written further, if it is time to.
    #[inline]
    pub(crate) fn wanted_ahead(&mut self) -> Option<Ahead> {
        if self.current.offset < self.current.ready_at { None } else { Some(self.ahead()) }
    }

    #[cold]
    fn ahead(&mut self) -> Ahead {
        let Current { segment, offset, len, ready_at, ready, .. } = &mut self.current;
        let from = (*ready).max(*offset);
        *ready = (*offset + READY_BYTES).min(*len);
        *ready_at = if *ready < *len { *offset + READY_BYTES / 2 } else { u64::MAX };
        let len = ready.saturating_sub(from);
        let pages = segment.preparer().map(|preparer| WantedPages { preparer, offset: from, len });
        let is_given = std::mem::replace(&mut self.current.is_header_given, true);
        let header = (!is_given).then(|| Arc::clone(&self.current.header_sync));
        Ahead { pages, header }
    }

    /// Takes the file that was made for [`LogWriter::wanted_spare`], or learns that none was.
    pub(crate) fn give_spare(&mut self, made: Option<PathBuf>) {
        self.spare_is_wanted = false;
        self.spares.extend(made);
    }

    /// Takes a file that is clean, or learns that there is one less to come.
    pub(crate) fn give_cleaned(&mut self, cleaned: Option<PathBuf>) {
        self.being_cleaned = self.being_cleaned.saturating_sub(1);
        self.spares.extend(cleaned);
    }

    /// Frees the segments that hold only records before `lsn`, which are in durable tables. Some
    /// files of the usual length are to be written again, the others to be removed.
    pub(crate) fn release(&mut self, lsn: Lsn) -> Released {
        let mut released = Released::default();
        let mut count = self.full.iter().take_while(|segment| segment.end <= lsn).count();
        // Without the last one the log would be missing if the header of the next one is lost.
        if count == self.full.len() && !self.is_header_durable() {
            count = count.saturating_sub(1);
        }
        if count == 0 || self.pins > 0 {
            return released;
        }
        self.sync.forget(lsn);
        for segment in self.full.drain(..count) {
            let len = self.environment.storage.len(&segment.path);
            let is_usual = len.is_ok_and(|len| len == self.config.segment_bytes);
            if is_usual && self.spares.len() + self.being_cleaned < SPARES_MAX {
                self.being_cleaned += 1;
                released.reused.push(WantedClean { path: segment.path });
            } else {
                released.removed.push(segment.path);
            }
        }
        released
    }

    /// Notes that the manifest holds all edits up to `version`.
    pub(crate) fn note_manifest(&mut self, version: u64) -> Result<()> {
        self.manifest_version = self.manifest_version.max(version);
        let version = self.manifest_version;
        let Current { header, segment, path, .. } = &mut self.current;
        let note = encode_note(header.nonce, version);
        segment.write(NOTE_OFFSET, &note).map_err(|error| Error::io("write", path, error))
    }

    /// Ends the log in order: everything in it is durable, and says so.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.sync.sync(self.end())?;
        let end = self.end();
        self.write_record(RecordKind::Closed, 0, &[&end.0.to_le_bytes()], true)?;
        self.sync.sync(self.end())
    }
}

/// Where a segment stands in the chain.
#[derive(Debug, Clone, Copy)]
struct Place {
    segment: u64,
    previous: u64,
    previous_end: Lsn,
    base: Lsn,
}

/// A new file, whose name is durable: no record in it could be promised before.
fn create_file(
    environment: &LogEnvironment,
    number: u64,
    len: u64,
) -> Result<(PathBuf, Box<dyn Segment>)> {
    let LogEnvironment { storage, dir, .. } = environment;
    let path = dir.join(segment_file_name(number));
    let segment = storage.create_segment(&path, len);
    let segment = segment.map_err(|error| Error::io("create", &path, error))?;
    storage.sync_dir(dir).map_err(|error| Error::io("sync", dir, error))?;
    Ok((path, segment))
}

/// Writes the header that makes a file, new or used, the next segment.
fn begin(
    environment: &LogEnvironment,
    path: PathBuf,
    mut segment: Box<dyn Segment>,
    place: Place,
) -> Result<Current> {
    let LogEnvironment { storage, clock, database, .. } = environment;
    let header = SegmentHeader {
        database: *database,
        segment: place.segment,
        nonce: storage.entropy(),
        base: place.base,
        previous: place.previous,
        previous_end: place.previous_end,
        boot: storage.boot_id().unwrap_or(0),
        created_micros: clock.now_micros(),
    };
    let mut bytes = header.encode();
    bytes.extend_from_slice(&[0; TERMINATOR_BYTES]);
    segment.write(0, &bytes).map_err(|error| Error::io("write", &path, error))?;
    let header_sync = Arc::new(HeaderSync::new(path.clone(), segment.syncer()));
    Ok(Current {
        header,
        header_sync,
        is_header_given: false,
        path,
        len: segment.len(),
        segment,
        offset: HEADER_BYTES,
        ready_at: READY_FROM,
        ready: 0,
    })
}

impl std::fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LogWriter(segment {}, position {})", self.segment(), self.end())
    }
}
