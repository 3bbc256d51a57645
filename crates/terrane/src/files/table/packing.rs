//! Compression of blocks.
//!
//! A compressed block is its uncompressed length as a `u32` and the bytes of the codec: an LZ4 block
//! or a Zstandard frame. The length of a block is known before it is decompressed, and no codec
//! writes more than that. That length is at most 255 times the compressed length: LZ4 cannot do
//! better, and a block for which Zstandard could is compressed by LZ4. A damaged block therefore
//! cannot claim much memory.

use std::path::Path;

use terrane_policy::{Compression, Design};

use super::zstd;
use crate::base::error::{Error, Result};
use crate::base::types::MAX_VALUE_LEN;

/// How the bytes of a block are packed; the number is stored in its trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain = 0,
    Lz4 = 1,
    Zstd = 2,
}

impl Packing {
    /// Returns the packing with this number.
    pub(super) fn of_tag(tag: u8) -> Option<Self> {
        [Self::Plain, Self::Lz4, Self::Zstd].into_iter().find(|packing| *packing as u8 == tag)
    }
}

/// The largest ratio between the lengths of a block before and after compression.
const RATIO_MAX: usize = 255;

/// The length of the longest block before compression: a block has at most one large value.
const UNPACKED_LEN_MAX: usize = 2 * MAX_VALUE_LEN;

/// Refuses a new design that this build cannot write. An existing database's design is never
/// refused; its blocks are compressed by LZ4 instead.
///
/// # Errors
/// The design names Zstandard, and the build has no compressor for it.
pub(crate) fn check_compression(design: &Design) -> Result<()> {
    if zstd::CAN_COMPRESS || !design.compression.values().contains(&Compression::Zstd) {
        return Ok(());
    }
    let accepted = "none or lz4; to write zstd, build with the feature `zstd` \
                    (`cargo build --features zstd`), which needs a C compiler";
    Err(Error::invalid("compression", "zstd", accepted))
}

/// Compresses a block if the design requests it and it saves enough.
pub(super) fn compress(block: &[u8], compression: Compression) -> Option<(Vec<u8>, Packing)> {
    let compressed = match compression {
        Compression::None => return None,
        Compression::Lz4 => lz4(block),
        Compression::Zstd => zstd::compress(block)
            .filter(|packed| packed.len().saturating_mul(RATIO_MAX) >= block.len())
            .map_or_else(|| lz4(block), |packed| (packed, Packing::Zstd)),
    };
    // If compression saves less than an eighth, decompression costs more than the smaller read
    // saves.
    (compressed.0.len() <= block.len() - block.len() / 8).then_some(compressed)
}

fn lz4(block: &[u8]) -> (Vec<u8>, Packing) {
    (lz4_flex::block::compress_prepend_size(block), Packing::Lz4)
}

/// Returns the length of a block before it was compressed.
///
/// # Errors
/// The block claims a length that is impossible for its compressed length.
pub(crate) fn unpacked_len(
    stored: &[u8],
    packing: Packing,
    path: &Path,
    offset: u64,
    what: &'static str,
) -> Result<usize> {
    if packing == Packing::Plain {
        return Ok(stored.len());
    }
    let corrupt = |detail: &str| Error::corruption(path, Some(offset), what, detail);
    let head = stored.first_chunk::<4>().ok_or_else(|| corrupt("it is too short"))?;
    let len = u32::from_le_bytes(*head) as usize;
    if len > stored.len().saturating_mul(RATIO_MAX) || len > UNPACKED_LEN_MAX {
        return Err(corrupt("its uncompressed length is not possible"));
    }
    Ok(len)
}

/// Copies or decompresses a verified block to `block`, which has the length that [`unpacked_len`]
/// returns.
///
/// # Errors
/// The bytes are damaged.
pub(crate) fn unpack(
    stored: &[u8],
    packing: Packing,
    block: &mut [u8],
    path: &Path,
    offset: u64,
    what: &'static str,
) -> Result<()> {
    let corrupt = |detail: &str| Error::corruption(path, Some(offset), what, detail);
    if packing == Packing::Plain {
        block.copy_from_slice(stored);
        return Ok(());
    }
    let body = stored.get(4..).ok_or_else(|| corrupt("it is too short"))?;
    let len = match packing {
        Packing::Zstd => zstd::decompress(body, block),
        _ => lz4_flex::block::decompress_into(body, block).map_err(|error| error.to_string()),
    }
    .map_err(|error| corrupt(&format!("it cannot be decompressed: {error}")))?;
    if len == block.len() { Ok(()) } else { Err(corrupt("its uncompressed length is wrong")) }
}

/// A block of 40 records, compressed by the C library.
#[cfg(any(test, fuzzing))]
pub(super) const ZSTD_SAMPLE: &[u8] = include_bytes!("../../../testdata/zstd/block.bin");

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(packed: &[u8], packing: Packing) -> Result<Vec<u8>> {
        let mut block = vec![0; unpacked_len(packed, packing, Path::new("t"), 0, "x")?];
        unpack(packed, packing, &mut block, Path::new("t"), 0, "x").map(|()| block)
    }

    #[test]
    fn compression_round_trips_and_lies_about_length_are_refused() {
        let bytes = b"abc".repeat(300);
        for compression in [Compression::Lz4, Compression::Zstd] {
            let (packed, packing) = compress(&bytes, compression).unwrap();
            let has_zstd = compression == Compression::Zstd && zstd::CAN_COMPRESS;
            assert_eq!(packing, if has_zstd { Packing::Zstd } else { Packing::Lz4 });
            assert!(packed.len() < bytes.len() / 4);
            assert_eq!(unpacked(&packed, packing).unwrap(), bytes);
            for lie in [u32::MAX, 901, 899] {
                let mut packed = packed.clone();
                packed[..4].copy_from_slice(&lie.to_le_bytes());
                assert!(unpacked(&packed, packing).is_err());
            }
            assert!(unpacked(&[1], packing).is_err());
            assert!(compress(b"\x01\x02\x03", compression).is_none());
            // Blocks cannot be this long.
            let long = [&[0xff; 4][..], &vec![0; 17 << 20]].concat();
            assert!(unpacked_len(&long, packing, Path::new("t"), 0, "x").is_err());
        }
    }

    #[test]
    fn every_build_reads_zstd() {
        let mut random = 1u64;
        let records = (0..40).map(|_| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            format!("user{:04}=score{};", (random >> 40) % 1000, (random >> 50) % 100)
        });
        let expected = records.collect::<String>().into_bytes();
        assert_eq!(unpacked(ZSTD_SAMPLE, Packing::Zstd).unwrap(), expected);
        for len in 0..ZSTD_SAMPLE.len() {
            assert!(unpacked(&ZSTD_SAMPLE[..len], Packing::Zstd).is_err(), "{len} bytes");
            for bit in 0..8 {
                let mut damaged = ZSTD_SAMPLE.to_vec();
                damaged[len] ^= 1 << bit;
                // The result is an error or wrong bytes, which the block's checksum would detect.
                let _ = unpacked(&damaged, Packing::Zstd);
            }
        }
    }

    #[test]
    fn no_block_is_compressed_further_than_a_reader_accepts() {
        let zeros = vec![0; 4 << 20];
        for compression in [Compression::Lz4, Compression::Zstd] {
            let (packed, packing) = compress(&zeros, compression).unwrap();
            assert_eq!(packing, Packing::Lz4);
            assert!(packed.len() * RATIO_MAX >= zeros.len());
            assert_eq!(unpacked(&packed, packing).unwrap(), zeros);
        }
    }

    #[test]
    fn new_designs_need_a_build_that_writes_them() {
        let design: Design = "leveling; compression=none,zstd".parse().unwrap();
        let refused = check_compression(&design).err().map(|error| error.to_string());
        assert_eq!(refused.is_none(), zstd::CAN_COMPRESS);
        assert!(refused.is_none_or(|message| message.contains("--features zstd")));
        assert!(check_compression(&"leveling; compression=lz4".parse().unwrap()).is_ok());
    }
}
