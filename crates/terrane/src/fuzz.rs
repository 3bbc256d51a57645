//! Fuzz targets for every decoder.
//!
//! A target is a function of bytes. It panics if a decoder panics, returns an inconsistent result
//! or an error of the wrong kind, or does not terminate; the runner detects excessive memory use.
//! Fuzzers generate the bytes (`cargo xtask fuzz`). The tests here damage valid inputs at random
//! and replay `fuzz/corpus`.

use crate::Design;
use crate::base::types::KeyspaceId;
use crate::files::batch::{Op, Ops};
use crate::files::{manifest, table, value_file, wal};
use terrane_policy::TreeShape;

/// A decoder to fuzz.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name of the target, and of its file in `fuzz/targets`.
    pub name: &'static str,
    /// Runs the target on one input.
    pub run: fn(&[u8]),
    /// Valid inputs.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "batch", run: batch, seeds: batch_seeds },
    Target { name: "design", run: design, seeds: design_seeds },
    Target {
        name: "log_segment",
        run: wal::fuzz::segment,
        seeds: || vec![wal::fuzz::good_segment()],
    },
    Target { name: "log_sealed", run: wal::fuzz::sealed_log, seeds: log_seeds },
    Target { name: "manifest_edit", run: manifest::fuzz::edit, seeds: manifest::fuzz::good_edits },
    Target {
        name: "manifest_file",
        run: manifest::fuzz::file,
        seeds: || vec![manifest::fuzz::good_file()],
    },
    Target { name: "manifest_sealed", run: manifest::fuzz::sealed_file, seeds: manifest_seeds },
    Target { name: "shape", run: shape, seeds: shape_seeds },
    Target {
        name: "table_block",
        run: table::fuzz::block,
        seeds: || [part(3), vec![table::fuzz::block_with_separated_values()]].concat(),
    },
    Target {
        name: "table_compressed",
        run: table::fuzz::compressed_block,
        seeds: || [part(6), part(7)].concat(),
    },
    Target { name: "table_file", run: table::fuzz::file, seeds: || vec![table::fuzz::good_file()] },
    Target { name: "table_filter", run: table::fuzz::filter, seeds: || part(4) },
    Target { name: "table_footer", run: table::fuzz::footer, seeds: || part(0) },
    Target { name: "table_index", run: table::fuzz::index, seeds: || part(2) },
    Target { name: "table_properties", run: table::fuzz::properties, seeds: || part(1) },
    Target { name: "table_ranges", run: table::fuzz::range_tombstones, seeds: || part(5) },
    Target {
        name: "table_sealed",
        run: table::fuzz::sealed_file,
        seeds: || vec![vec![0; 4], vec![200, 1, 1, 9]],
    },
    Target {
        name: "value_file",
        run: value_file::fuzz::file,
        seeds: || vec![value_file::fuzz::good_file()],
    },
    Target {
        name: "value_pointer",
        run: value_file::fuzz::pointer,
        seeds: value_file::fuzz::good_pointers,
    },
    Target {
        name: "value_sealed",
        run: value_file::fuzz::sealed_file,
        seeds: value_file::fuzz::sealed_seeds,
    },
];

/// Runs the target called `name`.
///
/// # Panics
/// If there is no such target, or it found a bug.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    assert!(target.is_some(), "no fuzz target is called '{name}'");
    target.iter().for_each(|target| (target.run)(bytes));
}

fn batch(bytes: &[u8]) {
    let decoded: Vec<_> = Ops::new(bytes).collect();
    assert!(decoded.len() <= bytes.len());
    let good: Vec<(KeyspaceId, Op<'_>)> = decoded.into_iter().flatten().collect();
    let mut encoded = Vec::new();
    good.iter().for_each(|(keyspace, op)| op.encode(*keyspace, &mut encoded));
    let lens: usize = good.iter().map(|(keyspace, op)| op.encoded_len(*keyspace)).sum();
    assert_eq!(encoded.len(), lens);
    assert!(Ops::new(&encoded).flatten().eq(good));
}

fn design(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(design) = text.parse::<Design>() {
        let printed = design.to_string();
        let again = printed.parse::<Design>();
        assert!(again.as_ref() == Ok(&design), "{text:?} is {printed:?}, which is {again:?}");
    }
}

fn shape(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(shape) = text.parse::<TreeShape>() {
        assert!(shape.check().is_ok(), "{text:?}");
        let printed = shape.to_string();
        let again = printed.parse::<TreeShape>();
        assert!(again.as_ref() == Ok(&shape), "{text:?} is {printed:?}, which is {again:?}");
    }
}

fn part(number: usize) -> Vec<Vec<u8>> {
    table::fuzz::parts().into_iter().skip(number).take(1).collect()
}

fn batch_seeds() -> Vec<Vec<u8>> {
    let mut encoded = Vec::new();
    let ops = [
        Op::Put { key: b"key", value: b"value" },
        Op::PutExpiring { key: b"key", stored: b"\xff\0\0\0\0\0\0\0value" },
        Op::Merge { key: b"key", operand: b"operand" },
        Op::Delete { key: b"key" },
        Op::DeleteRange { start: b"a", end: Some(b"b") },
        Op::DeleteRange { start: b"z", end: None },
    ];
    for (number, op) in ops.iter().enumerate() {
        op.encode(KeyspaceId(number as u32 * 100), &mut encoded);
    }
    vec![encoded]
}

fn design_seeds() -> Vec<Vec<u8>> {
    let all = crate::policy::catalogue::ALL.iter();
    all.map(|named| (named.design)().to_string().into_bytes()).collect()
}

fn shape_seeds() -> Vec<Vec<u8>> {
    let text = "L0 r3: 1=a..=c:1MiB 2=p..=q:1,tombstones=1,seq=3-9\nL0 r2: 3=b..=d:1\n\
                L1 r1: 4=..a\\x00:4KiB 5=e..:7,entries=5,created=3,oldest-tombstone=1";
    vec![text.as_bytes().to_vec()]
}

fn log_seeds() -> Vec<Vec<u8>> {
    let three = b"\x02\x00\x01\x03abc\x05\x02\x08\0\0\0\0\0\0\0\0\xff\0\0\x01\x02\x02de\x07\x03\x00\xff\0\0\x00\x03\x01f";
    vec![three.to_vec(), b"\x00\x00\x01\x02xy\x0e\x02\x01z\x06\x03\x00".to_vec()]
}

fn manifest_seeds() -> Vec<Vec<u8>> {
    let frame = |edit: &[u8], damage: u8| {
        [&(edit.len() as u16).to_le_bytes()[..], &[damage], edit].concat()
    };
    let [good, values, ..] = &manifest::fuzz::good_edits()[..] else { return Vec::new() };
    vec![frame(good, 0), frame(good, 0x91), [frame(values, 0), frame(values, 2)].concat()]
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test reads its corpus and its settings")]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::PathBuf;

    use terrane_testkit::{Rng, seed_from_env};

    use super::*;

    fn corpus(name: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name)
    }

    /// Damages `bytes` as storage does, or in a way that decoders tend to mishandle.
    fn damage(rng: &mut Rng, bytes: &mut Vec<u8>) {
        const NUMBERS: [u64; 8] = [0, 1, 0x7f, 0x80, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];
        let at = rng.index(bytes.len() + 1);
        match rng.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            1 if at < bytes.len() => bytes[at] = rng.bits() as u8,
            2 => bytes.truncate(at),
            3 => bytes.insert(at, rng.bits() as u8),
            4 => {
                let number = rng.pick(&NUMBERS).to_le_bytes();
                let len = *rng.pick(&[1, 2, 4, 8]);
                for (place, byte) in bytes.iter_mut().skip(at).zip(&number[..len]) {
                    *place = *byte;
                }
            }
            5 => {
                let end = (at + rng.index(40)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = rng.index(bytes.len() + 1);
                bytes.splice(to..to, piece);
            }
            _ => {
                let end = (at + rng.index(10)).min(bytes.len());
                bytes.drain(at..end);
            }
        }
    }

    fn feed(target: &Target, bytes: &[u8], what: &str) {
        let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(bytes)));
        assert!(outcome.is_ok(), "{} with {what}: \"{}\"", target.name, bytes.escape_ascii());
    }

    #[test]
    fn damaged_input_is_refused_or_rightly_understood() {
        let seed = seed_from_env(1);
        let rounds = std::env::var("TERRANE_ROUNDS").ok().and_then(|text| text.parse().ok());
        for target in TARGETS {
            let seeds = (target.seeds)();
            assert!(!seeds.is_empty());
            for round in 0..rounds.unwrap_or(1500u64) {
                let mut rng = Rng::new(seed + round);
                let mut bytes = rng.pick(&seeds).clone();
                for _ in 0..rng.below(6) {
                    damage(&mut rng, &mut bytes);
                }
                feed(target, &bytes, &format!("seed {}", seed + round));
            }
        }
    }

    #[test]
    fn the_kept_corpus_is_understood() {
        for target in TARGETS {
            let files: Vec<_> = std::fs::read_dir(corpus(target.name)).unwrap().collect();
            assert!(!files.is_empty(), "{} has no corpus", target.name);
            for file in files {
                let path = file.unwrap().path();
                feed(target, &std::fs::read(&path).unwrap(), &path.display().to_string());
            }
        }
    }

    /// With `TERRANE_REWRITE=1` in the environment the seeds are written as the corpus.
    #[test]
    fn every_target_has_a_file_and_a_corpus() {
        for target in TARGETS {
            let dir = corpus(target.name);
            if std::env::var_os("TERRANE_REWRITE").is_some() {
                std::fs::create_dir_all(&dir).unwrap();
                for (number, seed) in (target.seeds)().iter().enumerate() {
                    std::fs::write(dir.join(format!("seed-{number}")), seed).unwrap();
                }
            }
            let file = dir.join("../../targets").join(target.name).with_extension("rs");
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.contains(&format!("\"{}\"", target.name)), "{}", file.display());
            assert!(dir.is_dir(), "{} has no corpus", target.name);
        }
    }
}
