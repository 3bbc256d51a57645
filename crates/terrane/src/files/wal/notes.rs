//! The notes in a segment's header, byte by byte.
//!
//! ```text
//! at byte 256 of the header: | manifest version u64 | checksum u64 | durable lsn u64 | checksum u64 |
//! ```
//!
//! The first note states the version up to which the manifest has all edits, the second one the
//! position up to which the log is durable, in this segment and the earlier ones. From them recovery
//! detects a manifest that lost edits and a log that lost records. Both are overwritten in place and
//! without a sync: a note becomes durable with the next sync of the segment, or when the kernel
//! writes the page back. A lost note only weakens the detection.
//!
//! 1. A note is written after the fact that it states is durable. It is therefore true after every
//!    crash, whichever of the writes to the header survived.
//! 2. The checksums are seeded with the nonce of the segment and the offset of the note, so a note
//!    of an earlier use of the file is invalid.

use std::path::Path;

use super::format::{HEADER_BYTES, SegmentHeader};
use crate::base::checksum::{checksum, place_seed};
use crate::base::error::Result;
use crate::base::types::Lsn;

/// The offset of the notes in a segment.
pub(super) const NOTES_OFFSET: u64 = 256;

/// The length of one note: a number and its checksum.
const NOTE_BYTES: usize = 16;

/// The length of all notes.
const NOTES_BYTES: usize = 2 * NOTE_BYTES;

/// The statements in a segment's header about the manifest and the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// The manifest has all edits up to this version; 0 if there is no note.
    pub(crate) manifest_version: u64,
    /// All records before this position are durable; 0 if there is no note.
    pub(crate) durable: Lsn,
}

impl Notes {
    pub(super) fn encode(&self, nonce: u64) -> [u8; NOTES_BYTES] {
        let mut notes = [0; NOTES_BYTES];
        let (version, durable) = notes.split_at_mut(NOTE_BYTES);
        put_note(version, nonce, NOTES_OFFSET, self.manifest_version);
        put_note(durable, nonce, NOTES_OFFSET + NOTE_BYTES as u64, self.durable.0);
        notes
    }

    /// Reads the notes in the first bytes of a segment. A damaged note counts as missing.
    pub(super) fn decode(nonce: u64, header: &[u8]) -> Self {
        Self {
            manifest_version: note(header, nonce, NOTES_OFFSET),
            durable: Lsn(note(header, nonce, NOTES_OFFSET + NOTE_BYTES as u64)),
        }
    }
}

fn put_note(out: &mut [u8], nonce: u64, offset: u64, number: u64) {
    let number = number.to_le_bytes();
    let sum = checksum(&number, place_seed(nonce, offset));
    let (start, end) = out.split_at_mut(number.len());
    start.copy_from_slice(&number);
    end.copy_from_slice(&sum.to_le_bytes());
}

fn note(header: &[u8], nonce: u64, offset: u64) -> u64 {
    let bytes = header.get(offset as usize..).and_then(|rest| rest.first_chunk::<NOTE_BYTES>());
    let Some((number, sum)) = bytes.and_then(|note| note.split_first_chunk::<8>()) else {
        return 0;
    };
    let is_valid = *sum == checksum(number, place_seed(nonce, offset)).to_le_bytes();
    if is_valid { u64::from_le_bytes(*number) } else { 0 }
}

/// Replaces the notes in a copy of a segment's first `bytes` bytes, because the segment's own notes
/// may be newer than the copy. The copy becomes durable as a whole.
pub(crate) fn state_copy(segment: &mut [u8], bytes: u64, path: &Path) -> Result<()> {
    let notes = SegmentHeader::decode(segment, path)?.map_or([0; NOTES_BYTES], |header| {
        let durable = Lsn(header.base.0 + bytes.saturating_sub(HEADER_BYTES));
        Notes { manifest_version: 0, durable }.encode(header.nonce)
    });
    let start = NOTES_OFFSET as usize;
    if let Some(place) = segment.get_mut(start..start + NOTES_BYTES) {
        place.copy_from_slice(&notes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_hold_only_in_their_segment_and_place() {
        let notes = Notes { manifest_version: 99, durable: Lsn(1 << 40) };
        let mut header = vec![0; 512];
        assert_eq!(Notes::decode(3, &header), Notes::default());
        header[256..288].copy_from_slice(&notes.encode(3));
        assert_eq!(Notes::decode(3, &header), notes);
        assert_eq!(Notes::decode(4, &header), Notes::default());
        let only_version = Notes { durable: Lsn(0), ..notes };
        assert_eq!(Notes::decode(3, &header[..287]), only_version);
        for bit in 256 * 8..288 * 8 {
            let mut flipped = header.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let expected = match bit / 8 {
                ..272 => Notes { manifest_version: 0, ..notes },
                _ => only_version,
            };
            assert_eq!(Notes::decode(3, &flipped), expected, "bit {bit}");
        }
        header.copy_within(256..272, 272);
        assert_eq!(Notes::decode(3, &header), only_version);
    }

    #[test]
    fn a_copy_is_stated_as_durable_up_to_its_own_end() {
        let header = SegmentHeader {
            database: 1,
            segment: 2,
            nonce: 3,
            base: Lsn(4000),
            previous: 1,
            previous_end: Lsn(4000),
            boot: 0,
            created_micros: 7,
        };
        let newer = Notes { manifest_version: 9, durable: Lsn(5000) };
        let mut segment = header.encode();
        segment[256..288].copy_from_slice(&newer.encode(3));
        state_copy(&mut segment, 512 + 96, Path::new("1.log")).unwrap();
        let expected = Notes { manifest_version: 0, durable: Lsn(4096) };
        assert_eq!(Notes::decode(3, &segment), expected);
    }
}
