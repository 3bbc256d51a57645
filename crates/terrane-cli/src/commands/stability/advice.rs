//! What would help a design whose rate is not sustainable.
//!
//! From what writers waited for, as the engine counts it: a run that fails its criteria while
//! writers waited for nothing was slowed by something else, and the advice says what to look at.

use terrane_workload::stability::{Load, TwoPhaseReport, Verdict};

/// A cause that took less of the running phase than this is not what it failed for.
const SHARE_MIN: f64 = 0.002;

/// One thing that would help, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Advice {
    /// What was found.
    pub(super) reason: &'static str,
    /// What to do about it.
    pub(super) remedy: &'static str,
}

const MERGES_BEHIND: Advice = Advice {
    reason: "merges fall behind, so runs pile up until writers wait",
    remedy: "scheduler=greedy, where whole levels are merged; a lower --utilization; a larger --budget, if there is one; a design that merges less (a smaller T with leveling, tiering, \
             a larger buffer); --compaction-threads where cores are idle; a higher limit of runs, \
             if reads can bear it",
};
const FLUSHES_BEHIND: Advice = Advice {
    reason: "flushes fall behind, so full write buffers pile up until writers wait",
    remedy: "more buffers (buffers=4) for short bursts; a lower --utilization or a faster device \
             if it lasts",
};
const SHAPE: Advice = Advice {
    reason: "the design has writers wait for every compaction that is due",
    remedy: "stall=runs, which has them wait only for what reads cannot bear",
};
const DELAYS: Advice = Advice {
    reason: "writers are slowed down, as merges fall behind or by the design's max-rate",
    remedy: "the same as for merges that fall behind; a higher delay, limit or max-rate",
};
const ELSEWHERE: Advice = Advice {
    reason: "writers waited for nothing that the engine counts",
    remedy: "--calibrate tells whether the machine itself is to blame; a processing latency as \
             long as the write latency points at the device or the log (--durability)",
};
const BURSTS: Advice = Advice {
    reason: "bursts bring more than the engine did at its best, so they queue however even it is",
    remedy: "smaller or shorter bursts; or a --p99 as long as a burst may be waited for",
};
const NEVER_AT_REST: Advice = Advice {
    reason: "more arrives than the engine did in the testing phase",
    remedy: "a lower --utilization, or bursts with a lower mean",
};

/// What would help, the most important first; nothing if the rate is sustainable.
pub(super) fn of(
    report: &TwoPhaseReport,
    verdict: &Verdict,
    stalls: &[(String, u64)],
) -> Vec<Advice> {
    if verdict.is_sustainable() {
        return Vec::new();
    }
    let running = &report.running;
    let mut advice = Vec::new();
    if running.offered_per_second() > report.testing.per_second() {
        advice.push(NEVER_AT_REST);
    } else if let Load::Open(schedule) = running.load
        && schedule.highest_per_second() > report.testing.per_second()
    {
        advice.push(BURSTS);
    }
    let long =
        stalls.iter().filter(|(_, micros)| *micros as f64 / 1e6 > running.seconds * SHARE_MIN);
    for (cause, _) in long {
        let known = match cause.as_str() {
            "immutable-memtables" => FLUSHES_BEHIND,
            "compactions-due" => SHAPE,
            "delay" => DELAYS,
            _ => MERGES_BEHIND,
        };
        if !advice.contains(&known) {
            advice.push(known);
        }
    }
    if advice.is_empty() {
        advice.push(ELSEWHERE);
    }
    advice
}
