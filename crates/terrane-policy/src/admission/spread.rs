//! Writers that spread the room before a stop over the time until a job makes more
//! ([`Violation::Spread`]).
//!
//! A stop is as long as the job that ends it, which is seconds for a merge of level 0. As long as the job
//! runs, its end can be expected, and the bytes that writers may write before the stop are known. Writers
//! that would use them up too early get them at a rate at which they last. The total that is written until
//! the job ends is the same, so that later writes wait as long as after a stop (performance-stability,
//! Theorem 1), but no write waits for the whole job.

use super::pressure::{Pressure, StallCause, count, run_pressure};
use crate::design::{Design, Violation};
use crate::shape::TreeShape;

/// The rate of writers as a multiple of the rate that would use up the room by the end of the job. The rate
/// is decided again as the room shrinks, so it falls, and the room lasts. Most of the room is used early,
/// because writes may end before the job does.
const AT_FIRST: f64 = 2.0;

/// A single delay is at most the expected time until the job ends, divided by this number.
const DELAYS_MIN: f64 = 8.0;

/// Writers are not limited to rates above this one, which they hardly reach.
const FASTEST_NANOS_PER_BYTE: f64 = 0.5;

/// When the jobs that make room are expected to end.
pub trait Relief {
    /// Returns the expected time, in nanoseconds, until the running flush ends, or one that begins now;
    /// `None` if it is unknown.
    fn flush_nanos(&self) -> Option<u64>;

    /// Returns the expected time, in nanoseconds, until a merge out of a level ends; if none runs, but one
    /// `is_due`, until one ends that begins now. `None` if it is unknown. Without a level, it is the merge of
    /// any level that ends first.
    fn merge_nanos(&self, level: Option<usize>, is_due: bool) -> Option<u64>;
}

/// How far the memtables of a tree are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filling {
    /// The number of immutable memtables.
    pub immutable_memtables: usize,
    /// The bytes for which the active memtable has space.
    pub left_bytes: u64,
    /// The size of a memtable.
    pub memtable_bytes: u64,
}

/// The rate at which writers may fill the memtables of a tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The time per byte of memtable, in nanoseconds.
    pub nanos_per_byte: f64,
    /// The expected time until a job makes room, in nanoseconds.
    pub nanos_left: f64,
    /// What would stop writers.
    pub pressure: Pressure,
}

impl Spread {
    fn new(nanos_left: u64, room_bytes: u64, pressure: Pressure) -> Self {
        let nanos_left = nanos_left as f64;
        let nanos_per_byte = nanos_left / (AT_FIRST * room_bytes.max(1) as f64);
        Self { nanos_per_byte, nanos_left, pressure }
    }

    /// Returns the delay for `bytes`, in nanoseconds.
    pub fn nanos_of(&self, bytes: u64) -> f64 {
        (bytes as f64 * self.nanos_per_byte).min(self.nanos_left / DELAYS_MIN)
    }
}

/// Returns the rate at which writers may fill a tree; `None` if its design does not spread their room, or if
/// they need no limit.
pub fn spread(
    shape: &TreeShape,
    filling: Filling,
    design: &Design,
    relief: &impl Relief,
) -> Option<Spread> {
    let limits = &design.constraint;
    if limits.violation != Violation::Spread {
        return None;
    }
    let Filling { immutable_memtables, left_bytes, memtable_bytes } = filling;
    let buffers = count(immutable_memtables);
    let bytes = |memtables: u32| {
        u64::from(memtables).saturating_mul(memtable_bytes).saturating_add(left_bytes)
    };
    let flush_nanos = if buffers > 0 { relief.flush_nanos() } else { None };
    let by_flush = flush_nanos.map(|nanos| {
        let (cause, stop_at) = (StallCause::ImmutableMemtables, limits.stop_buffers);
        let pressure = Pressure::new(cause, None, buffers, stop_at, stop_at);
        Spread::new(nanos, bytes(stop_at.saturating_sub(buffers)), pressure)
    });
    let pressure = run_pressure(shape, design);
    // Writers add runs to level 0 only, so a deeper level says little about how much they may write.
    let is_limited = pressure.stop_at < u32::MAX && pressure.level.is_none_or(|level| level == 0);
    let is_due = pressure.measured >= pressure.threshold;
    let merge_nanos = if is_limited { relief.merge_nanos(pressure.level, is_due) } else { None };
    let by_merge = merge_nanos.map(|nanos| {
        // Memtables that wait to be flushed become runs.
        let runs = pressure.measured.saturating_add(buffers);
        Spread::new(nanos, bytes(pressure.stop_at.saturating_sub(runs)), pressure)
    });
    let both = by_flush.into_iter().chain(by_merge);
    let slower = both.max_by(|one, other| one.nanos_per_byte.total_cmp(&other.nanos_per_byte));
    slower.filter(|spread| spread.nanos_per_byte >= FASTEST_NANOS_PER_BYTE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const MIB: u64 = 1 << 20;

    /// The expected ends of a flush and of merges.
    #[derive(Clone, Copy)]
    struct Expected(Option<u64>, Option<u64>);

    impl Relief for Expected {
        fn flush_nanos(&self) -> Option<u64> {
            self.0
        }

        fn merge_nanos(&self, _: Option<usize>, _: bool) -> Option<u64> {
            self.1
        }
    }

    fn shape(runs: u64) -> TreeShape {
        let runs = (1..=runs).map(|run| format!("L0 r{run}: {run}=a..=z:1\n"));
        runs.collect::<String>().parse().unwrap()
    }

    fn at(
        runs: u64,
        (immutable_memtables, left): (usize, u64),
        expected: Expected,
    ) -> Option<Spread> {
        let design = "1-leveling; delay=4; stop=8; buffers=3; violation=spread".parse().unwrap();
        let (left_bytes, memtable_bytes) = (left * MIB, 10 * MIB);
        let filling = Filling { immutable_memtables, left_bytes, memtable_bytes };
        spread(&shape(runs), filling, &design, &expected)
    }

    fn seconds_per_mib(spread: Option<Spread>) -> f64 {
        spread.unwrap().nanos_per_byte * MIB as f64 / SECOND as f64 * AT_FIRST
    }

    fn near(one: f64, other: f64) {
        assert!((one - other).abs() < 1e-6, "{one} {other}");
    }

    #[test]
    fn the_room_is_divided_by_the_time_until_a_job_ends() {
        // One memtable may become immutable before writers stop, after the rest of the active one.
        near(seconds_per_mib(at(0, (2, 5), Expected(Some(3 * SECOND), None))), 3.0 / 15.0);
        near(seconds_per_mib(at(0, (3, 5), Expected(Some(3 * SECOND), None))), 3.0 / 5.0);
        // Five of eight runs exist, and one memtable becomes the sixth.
        near(seconds_per_mib(at(5, (1, 5), Expected(None, Some(10 * SECOND)))), 10.0 / 25.0);
        // The slower rate counts.
        let spread = at(5, (1, 5), Expected(Some(SECOND), Some(10 * SECOND)));
        near(seconds_per_mib(spread), 10.0 / 25.0);
        assert_eq!(spread.unwrap().pressure.cause, StallCause::Level0Runs);
        let spread = at(5, (1, 5), Expected(Some(100 * SECOND), Some(SECOND)));
        assert_eq!(spread.unwrap().pressure.cause, StallCause::ImmutableMemtables);
    }

    #[test]
    fn writers_need_no_limit_without_a_job_or_with_much_room() {
        assert_eq!(at(0, (0, 5), Expected(Some(100 * SECOND), None)), None);
        assert_eq!(at(7, (3, 5), Expected(None, None)), None);
        assert_eq!(at(0, (1, 5), Expected(Some(SECOND / 1000), None)), None);
        let design: Design = "1-leveling; delay=4; stop=8; violation=stop".parse().unwrap();
        let filling = Filling { immutable_memtables: 3, left_bytes: 1, memtable_bytes: MIB };
        assert_eq!(
            spread(&shape(7), filling, &design, &Expected(Some(SECOND), Some(SECOND))),
            None
        );
    }

    /// Merges that do not run, and end a second after they begin.
    struct Idle;

    impl Relief for Idle {
        fn flush_nanos(&self) -> Option<u64> {
            None
        }

        fn merge_nanos(&self, _: Option<usize>, is_due: bool) -> Option<u64> {
            is_due.then_some(SECOND)
        }
    }

    #[test]
    fn a_merge_that_does_not_run_counts_from_the_delay_threshold_on() {
        let design = "1-leveling; delay=4; stop=8; violation=spread".parse().unwrap();
        let filling = Filling { immutable_memtables: 0, left_bytes: MIB, memtable_bytes: MIB };
        let limited = |runs| spread(&shape(runs), filling, &design, &Idle).is_some();
        assert_eq!([0, 3, 4, 7].map(limited), [false, false, true, true]);
    }

    #[test]
    fn runs_of_deeper_levels_do_not_limit_writers() {
        let limited = |limit: &str, shape: &str| {
            let design = format!("leveling L0=1 T=4; limit={limit}; violation=spread");
            let filling = Filling { immutable_memtables: 0, left_bytes: MIB, memtable_bytes: MIB };
            let (shape, design) = (shape.parse().unwrap(), design.parse().unwrap());
            spread(&shape, filling, &design, &Expected(None, Some(SECOND))).is_some()
        };
        let deep = "L1 r2: 2=a..=z:1\nL1 r1: 1=a..=z:1\n";
        assert!(!limited("local(2x)", deep));
        assert!(limited("local(2x)", "L0 r2: 2=a..=z:1\nL0 r1: 1=a..=z:1\n"));
        assert!(limited("global(4)", deep));
    }

    #[test]
    fn full_trees_do_not_divide_by_zero_and_single_delays_are_short() {
        let spread = at(12, (5, 0), Expected(None, Some(8 * SECOND))).unwrap();
        assert!(spread.nanos_per_byte.is_finite());
        near(spread.nanos_of(MIB), SECOND as f64);
    }

    #[test]
    fn the_room_lasts_until_the_job_ends_and_is_used() {
        let end = 10 * SECOND;
        let (mut now, mut left) = (0, 10 * MIB);
        let mut longest = 0.0_f64;
        while now < end {
            let design = "1-leveling; stop=never; buffers=1; violation=spread".parse().unwrap();
            let filling = Filling { immutable_memtables: 1, left_bytes: left, memtable_bytes: MIB };
            let expected = Expected(Some(end - now), None);
            let nanos = spread(&shape(0), filling, &design, &expected).unwrap().nanos_of(1000);
            longest = longest.max(nanos);
            if left < 1000 {
                assert!(now > end / 100 * 98, "writers stop at {now}");
                break;
            }
            left -= 1000;
            now += nanos as u64;
        }
        assert!(left < MIB / 100, "{left} bytes were not used");
        assert!(longest < 0.1 * SECOND as f64, "{longest}");
    }
}
