//! The loads. Each is a function of its seed, so that a recording can be made again.

use std::fmt;

use terrane_policy::random::SplitMix64;

/// A load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Load {
    /// Writes of uniformly random keys.
    Uniform,
    /// Writes of ascending keys.
    Sequential,
    /// Writes of keys whose frequency falls with their rank (Zipf's law with exponent 1), spread over
    /// the key range.
    Zipf,
    /// Uniformly random keys, of which 65 % are deleted.
    Deletes,
    /// Uniformly random writes, and after half of them two lookups for each write.
    Lookups,
    /// Uniformly random writes; compactions are held back for up to 12 flushes at a time.
    Bursts,
}

/// An operation on the key of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Put(u64),
    Delete(u64),
    Get(u64),
}

/// The share of deletes in [`Load::Deletes`].
const DELETED_PERCENT: u64 = 65;
const SEED: u64 = 0x5eed_0001;
/// Spreads ranks over the keys; it shares no factor with the numbers of keys in use.
const SPREAD: u64 = 7_919;

impl Load {
    /// The operations for `writes` writes of `keys` keys.
    pub(super) fn operations(self, keys: u64, writes: u64) -> impl Iterator<Item = Operation> {
        let mut random = SplitMix64::new(SEED);
        (0..writes).flat_map(move |at| {
            let write = self.write(&mut random, keys, at, writes);
            let looks = self == Self::Lookups && at * 2 > writes;
            let gets: Vec<Operation> = (0..if looks { 2 } else { 0 })
                .map(|_| Operation::Get(random.below(keys)))
                .collect();
            std::iter::once(write).chain(gets)
        })
    }

    fn write(self, random: &mut SplitMix64, keys: u64, at: u64, writes: u64) -> Operation {
        match self {
            Self::Uniform | Self::Lookups | Self::Bursts => Operation::Put(random.below(keys)),
            Self::Sequential => Operation::Put(at * keys / writes),
            Self::Zipf => {
                let exponent = random.below(1 << 32) as f64 / (1u64 << 32) as f64;
                let rank = (keys as f64).powf(exponent) as u64;
                Operation::Put(rank.wrapping_mul(SPREAD) % keys)
            }
            Self::Deletes if at * 3 > writes && random.below(100) < DELETED_PERCENT => {
                Operation::Delete(random.below(keys))
            }
            Self::Deletes => Operation::Put(random.below(keys)),
        }
    }

    /// The number of flushes before the system may compact, for the `batch`-th time.
    pub(super) fn flushes(self, batch: u64) -> u64 {
        if self == Self::Bursts { batch * 7 % 12 + 1 } else { 1 }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Uniform => "uniform",
            Self::Sequential => "sequential",
            Self::Zipf => "zipf",
            Self::Deletes => "deletes",
            Self::Lookups => "lookups",
            Self::Bursts => "bursts",
        })
    }
}

/// The key of a number: five digits in the order of numbers.
pub(super) fn key(number: u64) -> Vec<u8> {
    format!("{number:05}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_the_same_every_time_and_stay_within_the_keys() {
        let all = [Load::Uniform, Load::Sequential, Load::Zipf, Load::Deletes, Load::Lookups];
        for load in all {
            let once: Vec<Operation> = load.operations(1000, 3000).collect();
            assert_eq!(once, load.operations(1000, 3000).collect::<Vec<_>>());
            let writes = once.iter().filter(|one| !matches!(one, Operation::Get(_)));
            assert_eq!(writes.count(), 3000);
            assert!(once.iter().all(|one| match one {
                Operation::Put(key) | Operation::Delete(key) | Operation::Get(key) => *key < 1000,
            }));
        }
    }
}
