//! Scales the sizes of designs to the data.
//!
//! A million small entries fill only two buffers of the default size. A tree so shallow merges next to
//! nothing, and all designs look alike. Every measurement of a named design therefore scales its sizes
//! here: `bench`, `sweep` and `stability`.

use terrane::Design;
use terrane_workload::RunOptions;

/// The number of buffers that the data should fill, so that the tree has several levels.
const BUFFERS_WANTED: u64 = 24;

const SMALLEST_BUFFER: u64 = 256 << 10;

/// Returns the bytes of all keys and values that are loaded.
pub fn data_bytes(run: &RunOptions) -> u64 {
    let value_bytes = usize::midpoint(run.value_size.min_bytes(), run.value_size.max_bytes());
    run.num.saturating_mul((run.key_size_bytes + value_bytes) as u64)
}

/// Divides all sizes of a design by a power of two, so that `data_bytes` fill a tree with the levels of a
/// larger database, and returns the divisor. Many data leave the design unchanged: the divisor is 1.
pub fn fit(design: &mut Design, data_bytes: u64) -> u64 {
    let wanted = (data_bytes / BUFFERS_WANTED).max(SMALLEST_BUFFER);
    let mut divisor = 1;
    while design.buffer_bytes / divisor > wanted {
        divisor *= 2;
    }
    design.buffer_bytes /= divisor;
    design.table_bytes = (design.table_bytes / divisor).max(SMALLEST_BUFFER);
    design.strategy.base_bytes = design.strategy.base_bytes.map(|base| base / divisor);
    divisor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_data_fills_many_buffers_and_much_data_changes_nothing() {
        let design: Design = "leveling; buffer=64MiB; table=64MiB; base=256MiB".parse().unwrap();
        let mut small = design.clone();
        assert_eq!(fit(&mut small, 96 << 20), 16);
        assert_eq!((small.buffer_bytes, small.table_bytes), (4 << 20, 4 << 20));
        assert_eq!(small.strategy.base_bytes, Some(16 << 20));
        let mut least = design.clone();
        assert_eq!(fit(&mut least, 1), 256);
        assert_eq!((least.buffer_bytes, least.table_bytes), (256 << 10, 256 << 10));
        let mut large = design.clone();
        assert_eq!((fit(&mut large, 64 << 30), large), (1, design));
    }
}
