use super::*;
use terrane_testkit::Rng;

fn text(tombstones: &RangeTombstones) -> String {
    let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fragments = tombstones.fragments();
    let words = fragments.iter().map(|fragment| {
        let end = fragment.end.as_deref().map_or("∞".into(), show);
        format!("[{},{end})@{:?}", show(&fragment.start), fragment.seqs)
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn overlapping_ranges_become_fragments() {
    let tombstones = RangeTombstones::new();
    tombstones.insert(b"a", Some(b"m"), 3, 3);
    tombstones.insert(b"f", Some(b"z"), 7, 7);
    assert_eq!(text(&tombstones), "[a,f)@[3] [f,m)@[7, 3] [m,z)@[7]");
    tombstones.insert(b"y", None, 9, 9);
    tombstones.insert(b"b", Some(b"b"), 10, 10);
    tombstones.insert(b"c", Some(b"b"), 11, 11);
    assert_eq!(text(&tombstones), "[a,f)@[3] [f,m)@[7, 3] [m,y)@[7] [y,z)@[9, 7] [z,∞)@[9]");
    assert_eq!(tombstones.newest_covering(b"g", 8), Some(7));
    assert_eq!(tombstones.newest_covering(b"g", 6), Some(3));
    assert_eq!(tombstones.newest_covering(b"g", 2), None);
    assert_eq!(tombstones.newest_covering(b"0", 99), None);
    assert_eq!(tombstones.newest_covering(b"zzz", 99), Some(9));
}

#[test]
fn random_ranges_answer_as_a_list_of_ranges() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let tombstones = RangeTombstones::new();
        let mut oracle: Vec<(u8, Option<u8>, u64)> = Vec::new();
        // A third of the seeds write no batches, and a third one batch.
        let (mut first, mut readers) = (1, vec![0, 20, 21]);
        for seq in 1..20 {
            if seed % 3 == 0 || seed % 3 == 1 && rng.percent(30) {
                first = seq;
                readers.push(seq - 1);
            }
            let start = rng.below(20) as u8;
            let end = (!rng.percent(10)).then(|| rng.below(24) as u8);
            tombstones.insert(&[start], end.as_ref().map(std::slice::from_ref), seq, first);
            let counted: usize =
                tombstones.read().iter().map(|(start, covered)| covered.bytes(start)).sum();
            assert_eq!(tombstones.bytes(), counted, "seed {seed}");
            oracle.push((start, end, seq));
        }
        for key in 0..24u8 {
            for &seq in &readers {
                let covers = |&&(start, end, at): &&(u8, Option<u8>, u64)| {
                    start <= key && end.is_none_or(|end| key < end) && at <= seq
                };
                let expected = oracle.iter().filter(covers).map(|range| range.2).max();
                assert_eq!(tombstones.newest_covering(&[key], seq), expected, "seed {seed}");
                // A tombstone at least as new deletes every key up to the returned end.
                if let (Some(deleted), Some(end)) = (expected, tombstones.end_of(&[key])) {
                    let end = end.map_or(24, |end| end[0]);
                    assert!(end > key, "seed {seed}");
                    for other in key..end.min(24) {
                        let newest = tombstones.newest_covering(&[other], seq);
                        assert!(newest.is_some_and(|newest| newest >= deleted), "seed {seed}");
                    }
                }
            }
        }
        let fragments = tombstones.fragments();
        for pair in fragments.windows(2) {
            assert!(pair[0].end.as_ref().is_some_and(|end| *end <= pair[1].start));
        }
    }
}

/// Ranges of one batch: each lies within the previous one, encloses it, or crosses many.
#[test]
fn a_batch_takes_memory_by_its_ranges_however_they_lie() {
    const COUNT: u64 = 6000;
    let key = |number: u64| number.to_be_bytes();
    type Shape = fn(u64) -> (u64, u64);
    let inward: Shape = |number| (number, 2 * COUNT - number);
    let outward: Shape = |number| (COUNT - number, COUNT + 1 + number);
    let across: Shape = |number| match number {
        0..3000 => (number * 2, number * 2 + 1),
        _ => (number - 3000, 6000 + number),
    };
    let random: Shape = |number| {
        let mut rng = Rng::new(number);
        (rng.below(COUNT), rng.below(2 * COUNT))
    };
    for shape in [inward, outward, across, random] {
        let tombstones = RangeTombstones::new();
        for number in 0..COUNT {
            let (start, end) = shape(number);
            tombstones.insert(&key(start), Some(&key(end)), 1 + number, 1);
        }
        assert!(tombstones.len() as u64 <= 2 * COUNT + 1, "{}", tombstones.len());
        assert!(tombstones.bytes() < 3 << 20, "{} bytes", tombstones.bytes());
        assert!(tombstones.fragments().iter().all(|fragment| fragment.seqs.len() == 1));
    }
}

#[test]
fn the_newest_tombstone_of_a_range_is_found_however_they_overlap() {
    let key = |number: u64| [number as u8];
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let tombstones = RangeTombstones::new();
        let mut all = Vec::new();
        for seq in 1..=rng.below(12) {
            let (start, len) = (rng.below(20), 1 + rng.below(6));
            let end = (!rng.percent(10)).then_some(start + len);
            tombstones.insert(&key(start), end.map(key).as_ref().map(|end| &end[..]), seq, seq);
            all.push((start, end, seq));
        }
        for start in 0..22 {
            for end in (start..24).map(Some).chain([None]) {
                let overlaps = |(first, after, _): &&(u64, Option<u64>, u64)| {
                    end.is_none_or(|end| *first < end && start < end)
                        && after.is_none_or(|after| start < after)
                };
                let expected = all.iter().filter(overlaps).map(|(.., seq)| *seq).max();
                let end = end.map(key);
                let end = end.as_ref().map(|end| &end[..]);
                assert_eq!(
                    tombstones.newest_overlapping(&key(start), end),
                    expected,
                    "seed {seed}"
                );
            }
        }
    }
}
