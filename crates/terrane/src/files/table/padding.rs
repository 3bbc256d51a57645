//! Zeros after a block, so that the next block begins at a page boundary of the file.
//!
//! A block of 4 KiB that begins anywhere spans two pages. Reading it reads both from the device, and
//! takes room for both in the page cache. The writer therefore appends zeros to a block if only a few
//! are needed to fill a page. With [`PAGE_BYTES`] or a multiple of it as block size, a block and
//! its trailer fit into whole pages, so blocks of many small entries are padded. Blocks of a few
//! large entries are not, because that would waste too much space.
//!
//! ```text
//! +-------+--------------+-------+-----------------------+----------+
//! | bytes | count - 1    | count | compression | PADDED  | checksum |
//! |       | zeros        | u8    | u8                    | u64      |
//! +-------+--------------+-------+-----------------------+----------+
//! ```

use super::stored::TRAILER_BYTES;

/// The size of a page.
const PAGE_BYTES: u64 = 4096;

/// The bit of the compression byte that states that the block is padded.
pub(super) const PADDED: u8 = 0x80;

/// Returns true if blocks of this size are padded.
pub(super) fn is_worthwhile(block_bytes: usize) -> bool {
    block_bytes > 0 && (block_bytes as u64).is_multiple_of(PAGE_BYTES)
}

/// Pads a block at `offset` before its trailer is appended. Returns false if the block needs no
/// padding, or too much.
pub(super) fn pad(block: &mut Vec<u8>, offset: u64) -> bool {
    let end = offset + (block.len() + TRAILER_BYTES) as u64;
    match u8::try_from(end.next_multiple_of(PAGE_BYTES) - end) {
        Ok(count @ 1..) => {
            block.resize(block.len() + usize::from(count) - 1, 0);
            block.push(count);
            true
        }
        _ => false,
    }
}

/// Removes the padding of a block; `None` if the padding is longer than the block.
pub(super) fn strip(padded: &[u8]) -> Option<&[u8]> {
    let count = usize::from(*padded.last()?);
    let len = padded.len().checked_sub(count).filter(|_| count > 0)?;
    padded.get(..len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_ends_with_the_page_and_can_be_removed() {
        for len in 1..9000 {
            for offset in [0, 4096, 4095, 77] {
                let block = vec![7u8; len];
                let mut padded = block.clone();
                let end = |block: &[u8]| offset + (block.len() + TRAILER_BYTES) as u64;
                let missing = end(&block).next_multiple_of(PAGE_BYTES) - end(&block);
                assert_eq!(pad(&mut padded, offset), (1..256).contains(&missing));
                if padded != block {
                    assert!(end(&padded).is_multiple_of(PAGE_BYTES));
                    assert_eq!(strip(&padded), Some(&block[..]));
                }
            }
        }
    }

    #[test]
    fn bad_padding_is_refused() {
        for bad in [&[][..], &[0], &[1, 2, 0], &[2], &[0, 0, 4]] {
            assert_eq!(strip(bad), None);
        }
        assert_eq!(strip(&[9, 1]), Some(&[9][..]));
    }
}
