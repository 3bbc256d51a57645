//! Zstandard frames.
//!
//! The decoder in Rust (`ruzstd`) is part of every build, so every build can read every database.
//! The feature `zstd` adds the library in C, which compresses, and decompresses several times as
//! fast. Decoders and compressors are kept per thread, because setting one up costs more than a block.

#[cfg(feature = "zstd")]
pub(super) use with_c::{compress, decompress};
#[cfg(not(feature = "zstd"))]
pub(super) use with_rust::decompress;

/// Whether this build compresses.
pub(super) const CAN_COMPRESS: bool = cfg!(feature = "zstd");

/// Threads do not keep the buffers of blocks longer than this.
const KEPT_LEN_MAX: usize = 256 << 10;

/// Returns `None`, because the build has no compressor.
#[cfg(not(feature = "zstd"))]
pub(super) fn compress(_: &[u8]) -> Option<Vec<u8>> {
    None
}

#[cfg(any(test, not(feature = "zstd")))]
mod with_rust {
    use std::cell::RefCell;

    use ruzstd::decoding::FrameDecoder;

    use super::KEPT_LEN_MAX;

    thread_local! {
        static DECODER: RefCell<FrameDecoder> = RefCell::new(FrameDecoder::new());
    }

    /// The smallest window that the format can express.
    const WINDOW_BYTES_MIN: u64 = 1 << 10;

    /// Decompresses a frame, and returns its length.
    pub(in crate::files::table) fn decompress(
        frame: &[u8],
        block: &mut [u8],
    ) -> Result<usize, String> {
        if block.len() > KEPT_LEN_MAX {
            return decompress_with(&mut FrameDecoder::new(), frame, block);
        }
        // The destructor of another thread-local variable may read after this one is gone.
        DECODER
            .try_with(|kept| decompress_with(&mut kept.borrow_mut(), frame, block))
            .unwrap_or_else(|_| decompress_with(&mut FrameDecoder::new(), frame, block))
    }

    fn decompress_with(
        decoder: &mut FrameDecoder,
        frame: &[u8],
        block: &mut [u8],
    ) -> Result<usize, String> {
        // A window is never longer than the contents, but a damaged frame may claim one.
        decoder.set_max_window_size(WINDOW_BYTES_MIN.max(block.len() as u64));
        decoder.decode_all(frame, block).map_err(|error| error.to_string())
    }
}

#[cfg(feature = "zstd")]
mod with_c {
    use std::cell::Cell;

    use zstd_safe::{CCtx, DCtx, compress_bound, get_error_name};

    use super::KEPT_LEN_MAX;

    /// Higher levels compress blocks of a few KiB only slightly better, at several times the cost.
    const LEVEL: i32 = 1;

    thread_local! {
        static COMPRESSOR: Cell<Option<CCtx<'static>>> = const { Cell::new(None) };
        static DECOMPRESSOR: Cell<Option<DCtx<'static>>> = const { Cell::new(None) };
    }

    /// Compresses a block to a frame after its length. Returns `None` if the library cannot allocate
    /// memory.
    pub(in crate::files::table) fn compress(block: &[u8]) -> Option<Vec<u8>> {
        let len = u32::try_from(block.len()).ok()?;
        let mut packed = vec![0; 4 + compress_bound(block.len())];
        packed[..4].copy_from_slice(&len.to_le_bytes());
        // The destructor of another thread-local variable may run after this one is gone.
        let kept = COMPRESSOR.try_with(Cell::take).ok().flatten();
        let mut context = kept.or_else(CCtx::try_create)?;
        let written = context.compress(&mut packed[4..], block, LEVEL).ok();
        if block.len() <= KEPT_LEN_MAX {
            let _ = COMPRESSOR.try_with(|kept| kept.set(Some(context)));
        }
        packed.truncate(4 + written?);
        Some(packed)
    }

    /// Decompresses a frame, and returns its length.
    pub(in crate::files::table) fn decompress(
        frame: &[u8],
        block: &mut [u8],
    ) -> Result<usize, String> {
        let kept = DECOMPRESSOR.try_with(Cell::take).ok().flatten();
        let mut context = kept.or_else(DCtx::try_create).ok_or("no memory for a decoder")?;
        let written = context.decompress(block, frame);
        let _ = DECOMPRESSOR.try_with(|kept| kept.set(Some(context)));
        written.map_err(|code| get_error_name(code).to_owned())
    }
}

#[cfg(all(test, feature = "zstd"))]
mod tests {
    use terrane_testkit::Rng;

    use super::*;

    #[test]
    fn both_decoders_agree() {
        let mut rng = Rng::new(1);
        for round in 0..300 {
            let len = if round % 50 == 0 { 3 << 20 } else { rng.index(20_000) };
            let alphabet = rng.between(1, 256);
            let mut block: Vec<u8> = (0..len).map(|_| rng.below(alphabet) as u8).collect();
            if len > 100 && rng.percent(50) {
                let (from, to) = (rng.index(len / 2), len / 2);
                block.copy_within(from..to, to);
            }
            let packed = compress(&block).unwrap();
            let mut unpacked = vec![0; len];
            assert_eq!(decompress(&packed[4..], &mut unpacked), Ok(len));
            assert!(unpacked == block);
            unpacked.fill(0);
            assert_eq!(with_rust::decompress(&packed[4..], &mut unpacked), Ok(len));
            assert!(unpacked == block);
            if len < 2 {
                continue;
            }
            // Neither decoder writes beyond the block, whatever the frame claims.
            let mut damaged = packed[4..].to_vec();
            let at = rng.index(damaged.len());
            damaged[at] ^= 1 << rng.index(8);
            let (mut short, mut ours) = (vec![0; len - 1], vec![0; len]);
            assert!(decompress(&packed[4..], &mut short).is_err());
            assert!(with_rust::decompress(&packed[4..], &mut short).is_err());
            let _ = decompress(&damaged, &mut unpacked);
            let _ = with_rust::decompress(&damaged, &mut ours);
        }
    }
}
