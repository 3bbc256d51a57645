//! The note in a segment's header, byte by byte.
//!
//! ```text
//! at byte 256 of the header: | manifest version u64 | checksum u64 |
//! ```
//!
//! The note states the version up to which the manifest has all edits. It is overwritten in place
//! with each new version, so that recovery detects a manifest that lost edits.
//!
//! The checksum is seeded with the nonce of the segment, so a note of an earlier use of the file is
//! invalid.

use crate::checksum::{checksum, place_seed};

/// The offset of the note in a segment.
pub(super) const NOTE_OFFSET: u64 = 256;

const NOTE_BYTES: usize = 16;

/// Encodes the note that the manifest has all edits up to `version`.
pub(super) fn encode_note(nonce: u64, version: u64) -> [u8; NOTE_BYTES] {
    let mut note = [0; NOTE_BYTES];
    note[..8].copy_from_slice(&version.to_le_bytes());
    let sum = checksum(&note[..8], place_seed(nonce, NOTE_OFFSET));
    note[8..].copy_from_slice(&sum.to_le_bytes());
    note
}

/// Returns the manifest version that the note states; 0 if there is no valid note. The note is in
/// the first bytes of a segment.
pub(super) fn decode_note(nonce: u64, header: &[u8]) -> u64 {
    let start = NOTE_OFFSET as usize;
    let version = header.get(start..).and_then(|note| note.first_chunk::<8>());
    let version = version.map_or(0, |version| u64::from_le_bytes(*version));
    let is_whole = header.get(start..start + NOTE_BYTES) == Some(&encode_note(nonce, version)[..]);
    if is_whole { version } else { 0 }
}

/// Removes the note from the first bytes of a segment.
pub(crate) fn clear_note(header: &mut [u8]) {
    let start = NOTE_OFFSET as usize;
    if let Some(note) = header.get_mut(start..start + NOTE_BYTES) {
        note.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_hold_only_in_their_segment() {
        let mut header = vec![0; 512];
        assert_eq!(decode_note(3, &header), 0);
        header[256..272].copy_from_slice(&encode_note(3, 99));
        assert_eq!(decode_note(3, &header), 99);
        assert_eq!(decode_note(4, &header), 0);
        header[260] ^= 1;
        assert_eq!(decode_note(3, &header), 0);
        assert_eq!(decode_note(3, &header[..260]), 0);
    }
}
