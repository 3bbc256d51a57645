//! Cuts a merge into key ranges of about equal size.
//!
//! This code does no I/O. It takes sampled keys, each with the number of bytes that follow it, and
//! returns ranges of keys.

/// A key of the input, and the approximate number of bytes up to the next sample of its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) key: Vec<u8>,
    pub(super) bytes: u64,
}

/// The key range of one subcompaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Subcompaction {
    /// The first key; `None` if the range is unbounded below.
    pub(super) start: Option<Vec<u8>>,
    /// The first key after the range; `None` if it is unbounded above.
    pub(super) end: Option<Vec<u8>>,
}

/// Cuts all keys into at most `count` ranges, each with about the same number of sampled bytes.
/// Returns fewer if the samples have too few distinct keys.
pub(super) fn subcompactions(mut samples: Vec<Sample>, count: usize) -> Vec<Subcompaction> {
    samples.sort_by(|a, b| a.key.cmp(&b.key));
    let total: u64 = samples.iter().map(|sample| sample.bytes).sum();
    let mut cuts: Vec<Vec<u8>> = Vec::new();
    let first = samples.first().map(|sample| sample.key.clone()).unwrap_or_default();
    let mut before = 0;
    for Sample { key, bytes } in samples {
        let due = total * (cuts.len() as u64 + 1) / count.max(1) as u64;
        // A range below the first key would be empty.
        let is_new = key > *cuts.last().unwrap_or(&first);
        if cuts.len() + 1 < count && before >= due && is_new {
            cuts.push(key);
        }
        before += bytes;
    }
    let starts = std::iter::once(None).chain(cuts.iter().cloned().map(Some));
    let ends = cuts.iter().cloned().map(Some).chain([None]);
    starts.zip(ends).map(|(start, end)| Subcompaction { start, end }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use terrane_testkit::{Rng, seed_from_env};

    fn sample(key: &str, bytes: u64) -> Sample {
        Sample { key: key.into(), bytes }
    }

    fn starts(ranges: &[Subcompaction]) -> Vec<String> {
        let starts = ranges.iter().filter_map(|part| part.start.clone());
        starts.map(|key| String::from_utf8(key).unwrap()).collect()
    }

    #[test]
    fn ranges_have_similar_sizes() {
        let samples = || ["a", "b", "c", "d", "e", "f"].map(|key| sample(key, 10)).to_vec();
        assert_eq!(starts(&subcompactions(samples(), 1)), [""; 0]);
        assert_eq!(starts(&subcompactions(samples(), 2)), ["d"]);
        assert_eq!(starts(&subcompactions(samples(), 3)), ["c", "e"]);
        assert_eq!(subcompactions(samples(), 9).len(), 6);
        let mut uneven = samples();
        uneven.push(sample("b", 60));
        assert_eq!(starts(&subcompactions(uneven, 2)), ["c"]);
    }

    #[test]
    fn few_keys_make_few_subcompactions() {
        assert_eq!(subcompactions(Vec::new(), 4), [Subcompaction::default()]);
        assert_eq!(subcompactions(vec![sample("a", 10); 5], 4), [Subcompaction::default()]);
        let two = [vec![sample("a", 10); 5], vec![sample("b", 10)]].concat();
        assert_eq!(starts(&subcompactions(two, 4)), ["b"]);
    }

    #[test]
    fn ranges_follow_each_other_without_gaps() {
        let seed = seed_from_env(61);
        for round in 0..500 {
            let mut rng = Rng::new(seed + round);
            let samples = (0..rng.index(40))
                .map(|_| Sample {
                    key: vec![rng.below(30) as u8; rng.index(3)],
                    bytes: rng.below(99),
                })
                .collect();
            let count = rng.index(8);
            let ranges = subcompactions(samples, count);
            assert!(ranges.len() <= count.max(1), "seed {}", seed + round);
            assert_eq!(ranges[0].start, None);
            assert_eq!(ranges[ranges.len() - 1].end, None);
            for pair in ranges.windows(2) {
                assert_eq!(pair[0].end, pair[1].start);
                assert!(
                    pair[0].start.as_ref().is_none_or(|start| Some(start) < pair[0].end.as_ref())
                );
            }
        }
    }
}
