//! The compared trees: every eagerness, whole levels and single tables, merging flushes, separated values,
//! skewed keys, small and large records, inserts and deletes.

use terrane_policy::Scheduler;
use terrane_sim::{Skew, WriteMix};

/// The usual bytes of a key and its value.
pub(super) const RECORD_BYTES: usize = 200;

/// Designs whose trees are compared without time.
const DESIGNS: [&str; 12] = [
    "leveling T=4; granularity=level; intake=exact",
    "leveling T=10; granularity=level",
    "leveling T=4; movement=round-robin",
    "leveling T=10",
    "leveling T=8; L0=4",
    "1-leveling T=4; granularity=level; L0=4",
    "1-leveling T=4; granularity=level; L0=4; flush=merge",
    "balanced; base=4MiB",
    "tiering T=3; intake=exact",
    "tiering T=4",
    "lazy-leveling T=4",
    "hybrid T=4; runs=3,last:1",
];

/// Designs with separated values.
const SEPARATED: [&str; 2] = [
    "balanced; base=4MiB; values=separate(64,file=512KiB)",
    "tiering T=4; values=separate(64,garbage=100%,space=1.6,file=512KiB)",
];

/// Designs compared for other keys, sizes and kinds of writes.
const VARIED: [&str; 3] = ["leveling T=8; L0=4", "tiering T=4", "lazy-leveling T=4"];

/// A compared tree.
pub(super) struct TreeCase {
    pub(super) design: &'static str,
    pub(super) skew: Skew,
    pub(super) record_bytes: usize,
    pub(super) mix: WriteMix,
}

impl TreeCase {
    fn new(design: &'static str) -> Self {
        let mix = WriteMix::default();
        Self { design, skew: Skew::Uniform, record_bytes: RECORD_BYTES, mix }
    }

    /// Describes the writes.
    pub(super) fn writes(&self) -> String {
        let WriteMix { inserts, deletes, range_deletes, range_width, deleted_return, .. } =
            self.mix;
        let percent = |share: f64| format!("{} %", (share * 1e4).round() / 1e2);
        let mut parts = vec![self.skew.to_string()];
        if inserts > 0.0 {
            parts.push(format!("{} inserts", percent(inserts)));
        }
        if deletes > 0.0 {
            let returning = if deleted_return { "of keys that return" } else { "for good" };
            parts.push(format!("{} deletes {returning}", percent(deletes)));
        }
        if range_deletes > 0.0 {
            let (share, width) = (percent(range_deletes), percent(range_width));
            parts.push(format!("{share} range deletes of {width} of the keys"));
        }
        if self.mix.expiring > 0.0 {
            parts.push(format!("{} of the values expire", percent(self.mix.expiring)));
        }
        parts.join(", ")
    }
}

/// Returns all trees that are compared without time.
pub(super) fn trees() -> Vec<TreeCase> {
    let mut cases: Vec<TreeCase> =
        DESIGNS.iter().chain(&SEPARATED).copied().map(TreeCase::new).collect();
    let updates = WriteMix::default();
    for design in VARIED {
        let mut add = |skew, record_bytes, mix| {
            cases.push(TreeCase { design, skew, record_bytes, mix });
        };
        add(Skew::Zipf(0.99), RECORD_BYTES, updates);
        add(Skew::Zipf(1.2), RECORD_BYTES, updates);
        add(Skew::Uniform, 40, updates);
        add(Skew::Uniform, 1000, updates);
        add(Skew::Uniform, RECORD_BYTES, WriteMix { deletes: 0.3, ..updates });
        add(Skew::Uniform, RECORD_BYTES, WriteMix { deletes: 0.5, ..updates });
        let for_good = WriteMix { deleted_return: false, ..updates };
        let turnover = WriteMix { inserts: 0.2, deletes: 0.2, ..for_good };
        add(Skew::Uniform, RECORD_BYTES, turnover);
        add(Skew::Uniform, RECORD_BYTES, WriteMix { inserts: 0.5, ..for_good });
        let ranges = WriteMix { range_deletes: 0.001, range_width: 0.001, ..updates };
        add(Skew::Uniform, RECORD_BYTES, ranges);
        let expiring = WriteMix { expiring: 1.0, ..updates };
        add(Skew::Uniform, RECORD_BYTES, expiring);
        add(Skew::Zipf(0.99), RECORD_BYTES, WriteMix { expiring: 0.5, ..updates });
        add(Skew::Uniform, RECORD_BYTES, WriteMix { inserts: 1.0, expiring: 1.0, ..for_good });
    }
    cases
}

/// Designs whose rates are compared, with every scheduler: one of each eagerness, with whole levels and
/// with single tables.
const TIMED: [&str; 6] = [
    "leveling T=4; granularity=level",
    "leveling T=8; L0=2",
    "1-leveling T=4; L0=4",
    "tiering T=3",
    "lazy-leveling T=4",
    "hybrid T=4; runs=3,last:1",
];

/// Designs whose rates are compared for other keys and sizes.
const TIMED_VARIED: [&str; 3] = [
    "1-leveling T=4; L0=4; scheduler=fair",
    "tiering T=3; scheduler=greedy",
    "lazy-leveling T=4; scheduler=gear",
];

/// The usual record size in comparisons of rates: large records take little processor time.
const TIMED_RECORD_BYTES: usize = 1000;

/// A tree whose rates are compared.
#[derive(Debug, Clone)]
pub(super) struct TimedCase {
    pub(super) design: String,
    pub(super) skew: Skew,
    pub(super) record_bytes: usize,
}

/// Returns all trees whose rates are compared.
pub(super) fn timed() -> Vec<TimedCase> {
    let mut cases = Vec::new();
    let mut add = |design: String, skew, record_bytes| {
        cases.push(TimedCase { design, skew, record_bytes });
    };
    for design in TIMED {
        for scheduler in Scheduler::ALL.iter().copied().chain([Scheduler::Greedy { merges: 2 }]) {
            let design = format!("{design}; scheduler={scheduler}");
            add(design, Skew::Uniform, TIMED_RECORD_BYTES);
        }
    }
    for design in TIMED_VARIED {
        add(design.to_owned(), Skew::Zipf(0.99), TIMED_RECORD_BYTES);
        add(design.to_owned(), Skew::Zipf(1.2), TIMED_RECORD_BYTES);
        add(design.to_owned(), Skew::Uniform, 250);
        add(design.to_owned(), Skew::Uniform, 4000);
    }
    cases
}
