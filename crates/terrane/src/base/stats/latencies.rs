//! How long work takes, by kind, each kind declared once.
//!
//! Each line of the declaration defines a field of [`Latencies`], its documentation, the kind that the
//! code records, and its entry in text, JSON, OpenMetrics and `docs/metrics.md`.
//!
//! Reading the clock twice takes as long as a tenth of a lookup in memory. Operations of callers are
//! therefore sampled: each thread measures one in [`SAMPLE_PERIOD`] on average, at random intervals,
//! because a fixed interval could coincide with a pattern of the operations. Slower work - syncs, stalls
//! and jobs - is always measured.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::stripe::stripe_of_thread;
use super::times::{Times, TimesCounter};

/// One in this many operations is measured on average, and at least one in twice as many.
const SAMPLE_PERIOD: u32 = 32;

/// Whether all work of a kind is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measured {
    All,
    Sampled,
}

/// A distribution of [`Latencies`], with its name.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct LatencyMetric<'a> {
    /// The name, as in JSON.
    pub name: &'static str,
    /// The meaning, in a sentence.
    pub help: &'static str,
    /// Whether only a sample is measured, so that the count is smaller than the number of operations.
    pub is_sampled: bool,
    /// The durations.
    pub times: &'a Times,
}

macro_rules! latencies {
    ($(
        $(#[doc = $help:literal])*
        $field:ident: $timed:ident $measured:ident;
    )*) => {
        /// A kind of work whose duration is recorded.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub(crate) enum Timed {
            $($timed,)*
        }

        impl Timed {
            /// The number of kinds.
            pub(super) const COUNT: usize = [$(Self::$timed,)*].len();

            /// All kinds.
            #[cfg(test)]
            pub(super) const ALL: [Self; Self::COUNT] = [$(Self::$timed,)*];
        }

        /// Distributions of durations by kind of work, since the database was opened.
        ///
        /// Only work that succeeded is measured. Of `get`, `multi_get`, `write`, `commit` and `seek`,
        /// only one in 32 is measured, chosen at random, because reading the clock would add a noticeable
        /// cost; percentiles therefore represent all operations, but counts do not.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(default))]
        #[non_exhaustive]
        pub struct Latencies {
            $(
                $(#[doc = $help])*
                pub $field: Times,
            )*
        }

        impl Latencies {
            /// Returns the distributions so far.
            pub(crate) fn counted(counters: &DurationCounters) -> Self {
                Self { $($field: counters.all[Timed::$timed as usize].times(),)* }
            }

            /// Returns each distribution with its name and meaning.
            pub fn all(&self) -> Vec<LatencyMetric<'_>> {
                vec![$(LatencyMetric {
                    name: stringify!($field),
                    help: concat!($($help),*).trim_ascii(),
                    is_sampled: Measured::$measured == Measured::Sampled,
                    times: &self.$field,
                },)*]
            }

            /// Returns the durations recorded since `earlier`.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($field: self.$field.since(&earlier.$field),)* }
            }

            /// Adds the durations of `other`, for example of another database.
            pub fn merge(&mut self, other: &Self) {
                $(self.$field.merge(&other.$field);)*
            }
        }
    };
}

latencies! {
    /// Lookups of one key.
    get: Get Sampled;
    /// Lookups of several keys at once, each as a whole.
    multi_get: MultiGet Sampled;
    /// Writes and batches outside transactions, until they are visible and as durable as requested.
    /// Stalls are included.
    write: Write Sampled;
    /// Commits of transactions with writes that did not conflict.
    commit: Commit Sampled;
    /// Positioning of an iterator at its first entry, from either end, or at a key. Steps from an entry
    /// to the next are too short to be measured.
    seek: Seek Sampled;
    /// Syncs of a segment of the log.
    log_sync: LogSync All;
    /// Stops and delays of writes, each from start to end.
    stall: Stall All;
    /// Flushes of memtables.
    flush: Flush All;
    /// Compactions that rewrote data, each from its first read to its manifest edit; collections of
    /// value files as well.
    compaction: Compaction All;
    /// Collections of value files.
    collection: Collection All;
}

thread_local! {
    /// The number of operations of this thread until the next measured one, and the state of its random
    /// number generator; initially zeros.
    static NEXT_SAMPLE: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// The start of an operation, if it is measured.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub(crate) struct Sample(Option<Instant>);

impl Sample {
    /// Begins an operation.
    #[inline]
    pub(crate) fn begin() -> Self {
        NEXT_SAMPLE.with(|next| match next.get() {
            (left @ 2.., random) => {
                next.set((left - 1, random));
                Self(None)
            }
            (left, random) => Self::begin_measured(next, left, random),
        })
    }

    #[cold]
    fn begin_measured(next: &Cell<(u32, u32)>, left: u32, random: u32) -> Self {
        let random = if random == 0 { seed() } else { scrambled(random) };
        next.set((1 + random % (2 * SAMPLE_PERIOD - 1), random));
        // The first operation of a thread is slower than others, and threads may be short-lived.
        Self((left == 1).then(Instant::now))
    }

    /// Ends the operation.
    #[inline]
    pub(crate) fn end(self, counters: &DurationCounters, timed: Timed) {
        if let Some(begun) = self.0 {
            counters.note(timed, begun.elapsed());
        }
    }
}

/// Returns a number other than zero that differs between threads.
fn seed() -> u32 {
    scrambled(0x9e37_79b9 ^ stripe_of_thread() as u32)
}

/// Xorshift (Marsaglia, Journal of Statistical Software 2003), which never returns zero.
fn scrambled(mut bits: u32) -> u32 {
    bits ^= bits << 13;
    bits ^= bits >> 17;
    bits ^ bits << 5
}

/// Durations of all kinds of work, as recorded by threads.
#[derive(Debug, Default)]
pub(crate) struct DurationCounters {
    all: [TimesCounter; Timed::COUNT],
}

impl DurationCounters {
    /// Records how long some work took.
    #[inline]
    pub(crate) fn note(&self, timed: Timed, took: Duration) {
        self.all[timed as usize].add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_32_operations_is_measured_at_random_distances() {
        let measured: Vec<u32> = (0..320_000).filter(|_| Sample::begin().0.is_some()).collect();
        assert!((9_800..10_200).contains(&measured.len()), "{}", measured.len());
        let distances = measured.windows(2).map(|pair| pair[1] - pair[0]);
        let mut counts = [0; 2 * SAMPLE_PERIOD as usize];
        distances.for_each(|distance| counts[distance as usize] += 1);
        assert!(counts[1..].iter().all(|count| (80..250).contains(count)), "{counts:?}");
    }

    #[test]
    fn each_kind_has_its_own_distribution() {
        let counters = DurationCounters::default();
        for (number, timed) in (1..).zip(Timed::ALL) {
            counters.note(timed, Duration::from_micros(number));
        }
        let (mut all, earlier) = (Latencies::counted(&counters), Latencies::default());
        assert_eq!(all.since(&earlier), all);
        all.merge(&all.clone());
        for (number, latency) in (1..).zip(all.all()) {
            assert_eq!((latency.times.count(), latency.times.sum_micros()), (2, 2 * number));
        }
    }
}
