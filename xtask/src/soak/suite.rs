//! The suites and their shares of the time.

/// A test suite with the number of seeds that it tries in a run, chosen so that a run takes a few
/// seconds, and its share of the time of all workers.
pub(super) struct Suite {
    pub(super) name: &'static str,
    pub(super) seeds: u64,
    pub(super) percent: u32,
}

pub(super) const SUITES: &[Suite] = &[
    Suite { name: "crash", seeds: 6, percent: 30 },
    Suite { name: "crash_creation", seeds: 1, percent: 3 },
    Suite { name: "crash_log_directory", seeds: 1, percent: 2 },
    Suite { name: "metamorphic", seeds: 40, percent: 25 },
    Suite { name: "threads", seeds: 4, percent: 15 },
    Suite { name: "faults", seeds: 3, percent: 3 },
    Suite { name: "memory_budget", seeds: 2, percent: 2 },
    Suite { name: "kill", seeds: 10, percent: 5 },
    Suite { name: "linearizability", seeds: 400, percent: 5 },
    Suite { name: "concurrency", seeds: 1, percent: 5 },
    Suite { name: "corruption", seeds: 1, percent: 5 },
];
