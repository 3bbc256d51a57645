//! Where a merge is cut into parts of about equal size.
//!
//! Pure: keys with the bytes that follow them in, ranges of keys out.

/// A key of the input, and about how many bytes come from there to the next one of its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) key: Vec<u8>,
    pub(crate) bytes: u64,
}

/// A range of keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// The first key; `None` for all from the beginning.
    pub(crate) start: Option<Vec<u8>>,
    /// The first key after it; `None` for all to the end.
    pub(crate) end: Option<Vec<u8>>,
}

/// Cuts all keys into at most `count` parts, each with about as many bytes of the samples as the
/// others. There are fewer where the samples have too few keys for it.
pub(crate) fn parts(mut samples: Vec<Sample>, count: usize) -> Vec<Part> {
    samples.sort_by(|a, b| a.key.cmp(&b.key));
    let total: u64 = samples.iter().map(|sample| sample.bytes).sum();
    let mut cuts: Vec<Vec<u8>> = Vec::new();
    let first = samples.first().map(|sample| sample.key.clone()).unwrap_or_default();
    let mut before = 0;
    for Sample { key, bytes } in samples {
        let due = total * (cuts.len() as u64 + 1) / count.max(1) as u64;
        // Before the first key there is nothing.
        let is_new = key > *cuts.last().unwrap_or(&first);
        if cuts.len() + 1 < count && before >= due && is_new {
            cuts.push(key);
        }
        before += bytes;
    }
    let starts = std::iter::once(None).chain(cuts.iter().cloned().map(Some));
    let ends = cuts.iter().cloned().map(Some).chain([None]);
    starts.zip(ends).map(|(start, end)| Part { start, end }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use terrane_testkit::{Rng, seed_from_env};

    fn sample(key: &str, bytes: u64) -> Sample {
        Sample { key: key.into(), bytes }
    }

    fn starts(parts: &[Part]) -> Vec<String> {
        let starts = parts.iter().filter_map(|part| part.start.clone());
        starts.map(|key| String::from_utf8(key).unwrap()).collect()
    }

    #[test]
    fn parts_have_like_sizes() {
        let samples = || ["a", "b", "c", "d", "e", "f"].map(|key| sample(key, 10)).to_vec();
        assert_eq!(starts(&parts(samples(), 1)), [""; 0]);
        assert_eq!(starts(&parts(samples(), 2)), ["d"]);
        assert_eq!(starts(&parts(samples(), 3)), ["c", "e"]);
        assert_eq!(parts(samples(), 9).len(), 6);
        let mut uneven = samples();
        uneven.push(sample("b", 60));
        assert_eq!(starts(&parts(uneven, 2)), ["c"]);
    }

    #[test]
    fn few_keys_make_few_parts() {
        assert_eq!(parts(Vec::new(), 4), [Part::default()]);
        assert_eq!(parts(vec![sample("a", 10); 5], 4), [Part::default()]);
        let two = [vec![sample("a", 10); 5], vec![sample("b", 10)]].concat();
        assert_eq!(starts(&parts(two, 4)), ["b"]);
    }

    #[test]
    fn parts_follow_each_other_without_gaps() {
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
            let parts = parts(samples, count);
            assert!(parts.len() <= count.max(1), "seed {}", seed + round);
            assert_eq!(parts[0].start, None);
            assert_eq!(parts[parts.len() - 1].end, None);
            for pair in parts.windows(2) {
                assert_eq!(pair[0].end, pair[1].start);
                assert!(
                    pair[0].start.as_ref().is_none_or(|start| Some(start) < pair[0].end.as_ref())
                );
            }
        }
    }
}
