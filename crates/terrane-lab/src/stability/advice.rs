//! Remedies for a rate that is not sustainable.
//!
//! They follow from the stalls that the engine counts. If a run fails its criteria without stalls, the
//! cause lies elsewhere, and the suggestion says where to look.

use terrane_workload::stability::{Load, TwoPhaseReport, Verdict};

/// A cause with a smaller share of the running phase did not fail the run.
const SHARE_MIN: f64 = 0.002;

/// A remedy and its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suggestion {
    /// The cause.
    pub reason: &'static str,
    /// The remedy.
    pub remedy: &'static str,
}

const MERGES_BEHIND: Suggestion = Suggestion {
    reason: "merges fall behind, so runs accumulate until writers stall",
    remedy: "scheduler=greedy, where whole levels are merged; a lower --utilization; a larger --budget, if there is one; a design that merges less (a smaller T with leveling, tiering, \
             a larger buffer); --compaction-threads where cores are idle; a higher limit of runs, \
             if reads tolerate it",
};
const FLUSHES_BEHIND: Suggestion = Suggestion {
    reason: "flushes fall behind, so immutable memtables accumulate until writers stall",
    remedy: "more buffers (buffers=4) for short bursts; a lower --utilization or a faster device \
             if it lasts",
};
const SHAPE: Suggestion = Suggestion {
    reason: "the design stalls writers for every due compaction",
    remedy: "stall=runs, which stalls writers only when reads would suffer",
};
const DELAYS: Suggestion = Suggestion {
    reason: "writers are delayed because merges fall behind or by the design's max-rate",
    remedy: "the remedies for merges that fall behind; a higher delay, limit or max-rate",
};
const ELSEWHERE: Suggestion = Suggestion {
    reason: "the engine counted no stalls",
    remedy: "--calibrate shows whether the machine is the cause; a processing latency as long \
             as the write latency points at the device or the log (--durability)",
};
const BURSTS: Suggestion = Suggestion {
    reason: "bursts exceed the maximum rate of the engine, so writes queue in any case",
    remedy: "smaller or shorter bursts, or a --p99 that allows for them",
};
const NEVER_AT_REST: Suggestion = Suggestion {
    reason: "more writes arrive than the maximum of the testing phase",
    remedy: "a lower --utilization, or bursts with a lower mean",
};

/// Returns remedies, the most important first; none if the rate is sustainable.
pub(super) fn of(
    report: &TwoPhaseReport,
    verdict: &Verdict,
    stalls: &[(String, u64)],
) -> Vec<Suggestion> {
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

#[cfg(test)]
mod tests {
    use terrane_workload::stability::{Arrival, Criteria};

    use super::super::testing::report;
    use super::*;

    fn advice(arrival: Arrival, stalls: &[(&str, u64)], p99: f64) -> Vec<Suggestion> {
        let report = report(arrival);
        let mut verdict = Verdict::of(&report.running, &Criteria::default());
        verdict.findings.truncate(1);
        verdict.findings[0].measured = p99;
        let stalls: Vec<_> =
            stalls.iter().map(|(cause, micros)| ((*cause).to_owned(), *micros)).collect();
        of(&report, &verdict, &stalls)
    }

    #[test]
    fn what_writers_waited_for_is_what_would_help() {
        let stalls =
            [("level-0-runs", 90_000), ("level-runs", 80_000), ("delay", 70_000), ("x", 1)];
        assert_eq!(advice(Arrival::Constant, &stalls, 9.0), [MERGES_BEHIND, DELAYS]);
        let stalls = [("immutable-memtables", 90_000)];
        assert_eq!(advice(Arrival::Constant, &stalls, 9.0), [FLUSHES_BEHIND]);
        assert_eq!(advice(Arrival::Constant, &stalls, 0.5), [], "nothing has to help");
        assert_eq!(advice(Arrival::Constant, &[], 9.0), [ELSEWHERE]);
    }

    #[test]
    fn arrivals_that_no_engine_could_keep_up_with_are_told_apart() {
        let bursts = "burst(10%,0.2,150%,0.05)".parse().unwrap();
        assert_eq!(advice(bursts, &[], 9.0), [BURSTS]);
        let flood = "burst(150%,0.2,150%,0.05)".parse().unwrap();
        assert_eq!(advice(flood, &[], 9.0), [NEVER_AT_REST]);
    }
}
