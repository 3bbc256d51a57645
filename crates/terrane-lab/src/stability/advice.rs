//! Remedies for a rate that is not sustainable.
//!
//! They follow from the stalls that the engine counts. If a run fails its criteria without stalls,
//! the suggestion names other places to look.

use terrane_workload::stability::{Load, TwoPhaseReport, Verdict};

/// Causes with a smaller share of the running phase are ignored.
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
    remedy: "use scheduler=greedy if the design merges whole levels; lower --utilization; raise \
             --budget if it is set; choose a design that merges less (a smaller T with leveling, tiering, \
             a larger buffer); raise --compaction-threads if cores are idle; raise the limit on runs \
             if slower reads are acceptable",
};
const FLUSHES_BEHIND: Suggestion = Suggestion {
    reason: "flushes fall behind, so immutable memtables accumulate until writers stall",
    remedy: "for short bursts, set buffers=4 or more; otherwise lower --utilization or use a faster \
             device",
};
const SHAPE: Suggestion = Suggestion {
    reason: "the design stalls writers for every due compaction",
    remedy: "set stall=runs, which stalls writers only if reads would slow down",
};
const DELAYS: Suggestion = Suggestion {
    reason: "writers are delayed because merges fall behind or by the design's max-rate",
    remedy: "raise delay, limit or max-rate, or make merges keep up: scheduler=greedy, a lower \
             --utilization, a design that merges less",
};
const ELSEWHERE: Suggestion = Suggestion {
    reason: "the engine counted no stalls",
    remedy: "run with --calibrate to see whether the machine is the cause; if the processing \
             latency equals the write latency, check the device and the log (--durability)",
};
const BURSTS: Suggestion = Suggestion {
    reason: "bursts exceed the maximum rate of the engine, so writes queue in any design",
    remedy: "use smaller or shorter bursts, or raise --p99",
};
const ARRIVALS_ABOVE_MAXIMUM: Suggestion = Suggestion {
    reason: "writes arrive faster than the maximum of the testing phase",
    remedy: "lower --utilization or the mean rate of the bursts",
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
        advice.push(ARRIVALS_ABOVE_MAXIMUM);
    } else if let Load::Open(schedule) = running.load
        && schedule.highest_per_second() > report.testing.per_second()
    {
        advice.push(BURSTS);
    }
    let long =
        stalls.iter().filter(|(_, micros)| *micros as f64 / 1e6 > running.seconds * SHARE_MIN);
    for (cause, _) in long {
        let known = match cause.as_str() {
            "immutable-memtables" | "memory-budget" => FLUSHES_BEHIND,
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
    fn remedies_match_the_causes_of_the_stalls() {
        let stalls =
            [("level-0-runs", 90_000), ("level-runs", 80_000), ("delay", 70_000), ("x", 1)];
        assert_eq!(advice(Arrival::Constant, &stalls, 9.0), [MERGES_BEHIND, DELAYS]);
        let stalls = [("immutable-memtables", 90_000)];
        assert_eq!(advice(Arrival::Constant, &stalls, 9.0), [FLUSHES_BEHIND]);
        assert_eq!(
            advice(Arrival::Constant, &stalls, 0.5),
            [],
            "a sustainable rate needs no remedy"
        );
        assert_eq!(advice(Arrival::Constant, &[], 9.0), [ELSEWHERE]);
    }

    #[test]
    fn arrivals_above_the_maximum_rate_are_distinguished() {
        let bursts = "burst(10%,0.2,150%,0.05)".parse().unwrap();
        assert_eq!(advice(bursts, &[], 9.0), [BURSTS]);
        let flood = "burst(150%,0.2,150%,0.05)".parse().unwrap();
        assert_eq!(advice(flood, &[], 9.0), [ARRIVALS_ABOVE_MAXIMUM]);
    }
}
