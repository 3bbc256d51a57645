//! How a run is divided among threads.

use std::ops::Range;

/// Returns part number `thread` when `0..total` is divided into `threads` parts, whose lengths
/// differ by at most one.
pub(super) fn part(total: u64, thread: u32, threads: u32) -> Range<u64> {
    let bound = |thread: u32| {
        // The product of two large counts needs 128 bits.
        (u128::from(total) * u128::from(thread) / u128::from(threads)) as u64
    };
    bound(thread)..bound(thread + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_and_cover_everything() {
        for (total, threads) in [(0, 1), (7, 1), (7, 3), (3, 8), (1_000_003, 7), (u64::MAX, 3)] {
            let mut end = 0;
            for thread in 0..threads {
                let part = part(total, thread, threads);
                assert_eq!(part.start, end);
                assert!((part.end - part.start).abs_diff(total / u64::from(threads)) <= 1);
                end = part.end;
            }
            assert_eq!(end, total);
        }
    }
}
