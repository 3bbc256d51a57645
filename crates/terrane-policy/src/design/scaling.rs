//! Cassandra's notation for the eagerness of levels: a word such as `L10`, `T4` or `N` for each.
//!
//! | word | fanout f | the level holds |
//! |---|---|---|
//! | `L10` | 10 | one run |
//! | `T4` | 4 | up to 3 runs; the fourth triggers a merge |
//! | `N` | 2 | one run: where leveling and tiering meet |
//!
//! This is another notation for runs and growth, from Cassandra's unified compaction strategy. That
//! strategy assigns tables to levels by density and splits them into shards; here levels are fixed,
//! and compactions are split by key as usual.

use crate::error::ParseError;
use crate::strategy::{Eagerness, Growth, RunLimit, Runs, Strategy};

#[derive(Debug, Clone, Copy)]
struct ScalingWord {
    fanout: u32,
    /// The number of runs at which a level is merged.
    threshold: u32,
}

/// Sets the runs, the growth and level 0 of a strategy from `text`, which has a word for each
/// level, beginning with level 0.
pub(super) fn apply(strategy: &mut Strategy, text: &str) -> Result<(), ParseError> {
    let words = text.split(',').map(|word| parse(word.trim()));
    let words = words.collect::<Result<Vec<ScalingWord>, ParseError>>()?;
    let (Some(first), Some(last)) = (words.first(), words.last()) else { return Ok(()) };
    let runs_of = |word: &ScalingWord| RunLimit::Fixed(word.threshold.saturating_sub(1).max(1));
    let deeper = words.get(1).unwrap_or(last);
    strategy.eagerness =
        Eagerness::Hybrid(Runs::new(runs_of(deeper), words.iter().skip(2).map(runs_of), None));
    strategy.level0_runs = first.threshold;
    strategy.size_ratio = last.fanout;
    strategy.growth = Growth::Ratios(words.iter().map(|word| word.fanout).collect());
    Ok(())
}

fn parse(word: &str) -> Result<ScalingWord, ParseError> {
    if word == "N" {
        return Ok(ScalingWord { fanout: 2, threshold: 2 });
    }
    let bad = || ParseError::new("scaling", word, "words such as T4, L10 and N, of 2 to 1000");
    let kind = word.chars().next().ok_or_else(bad)?;
    let fanout = word.get(kind.len_utf8()..).and_then(|digits| digits.parse().ok());
    let fanout = fanout.filter(|fanout| (2..=1000).contains(fanout)).ok_or_else(bad)?;
    match kind {
        'L' => Ok(ScalingWord { fanout, threshold: 2 }),
        'T' => Ok(ScalingWord { fanout, threshold: fanout }),
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use crate::design::Design;

    #[test]
    fn words_set_runs_and_ratios() {
        let design: Design = "tiering; scaling=T8,T4,L10".parse().unwrap();
        let strategy = &design.strategy;
        let runs: Vec<u32> = (0..5).map(|level| strategy.runs_allowed(level, 4)).collect();
        assert_eq!(runs, [7, 3, 1, 1, 1]);
        assert_eq!((1..4).map(|level| strategy.ratio(level, 4)).collect::<Vec<_>>(), [8, 4, 10]);
        assert_eq!(design.to_string().parse(), Ok(design));
    }

    #[test]
    fn one_word_holds_for_all_levels() {
        for (text, runs, ratio) in [("L10", 1, 10), ("T4", 3, 4), ("N", 1, 2)] {
            let design: Design = format!("hybrid scaling={text}").parse().unwrap();
            assert_eq!(design.strategy.runs_allowed(2, 3), runs, "{text}");
            assert_eq!(design.strategy.ratio(2, 3), ratio, "{text}");
        }
        for text in ["", "X4", "L", "L1", "T4,"] {
            assert!(format!("hybrid scaling={text}").parse::<Design>().is_err(), "{text}");
        }
    }
}
