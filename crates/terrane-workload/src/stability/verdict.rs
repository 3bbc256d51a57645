//! Whether a rate is sustainable, by stated criteria (paper §3.2, S3-41).
//!
//! The paper asks whether the write latencies of the running phase are large. That is made precise
//! here by four bounds, each of which a run meets or does not. Verdicts are no more than the run
//! was: one that is too short to see the largest merges says nothing of them.

use std::fmt;
use std::time::Duration;

use super::report::PhaseReport;

/// What a run must keep to for its rate to be sustainable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Criteria {
    /// 99 % of the writes end within this of their arrival.
    pub p99: Duration,
    /// No write is left waiting for longer than this when the run ends.
    pub backlog: Duration,
    /// There is no longer time in which no write ends although some wait.
    pub stall: Duration,
    /// In every second at least this share of what arrives is done.
    pub slowest_second: f64,
}

impl Default for Criteria {
    fn default() -> Self {
        let second = Duration::from_secs(1);
        Self { p99: second, backlog: second, stall: second, slowest_second: 0.5 }
    }
}

/// What is asked of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Criterion {
    /// 99 % of the writes are done in time.
    TailLatency,
    /// The engine keeps up with what arrives.
    Backlog,
    /// The engine never stands still for long.
    Stall,
    /// The engine is never slow for long.
    SlowestSecond,
}

impl Criterion {
    /// A word for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::TailLatency => "p99",
            Self::Backlog => "backlog",
            Self::Stall => "stall",
            Self::SlowestSecond => "slowest-second",
        }
    }
}

/// A criterion with what was found and its bound: seconds, or a share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finding {
    /// What is asked.
    pub criterion: Criterion,
    /// What was found.
    pub measured: f64,
    /// The bound for it.
    pub bound: f64,
}

impl Finding {
    /// Whether the run keeps to the bound.
    pub fn is_met(&self) -> bool {
        match self.criterion {
            Criterion::SlowestSecond => self.measured >= self.bound,
            _ => self.measured <= self.bound,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { measured, bound, .. } = *self;
        let time = |seconds: f64| {
            if seconds <= 0.0 {
                "0 s".to_owned()
            } else if seconds >= 0.9995 {
                format!("{seconds:.2} s")
            } else if seconds >= 0.000_999_5 {
                format!("{:.1} ms", seconds * 1e3)
            } else {
                format!("{:.1} µs", seconds * 1e6)
            }
        };
        match self.criterion {
            Criterion::TailLatency => {
                write!(f, "99 % of writes within {} (bound {})", time(measured), time(bound))
            }
            Criterion::Backlog => {
                write!(
                    f,
                    "oldest write waiting at the end {} (bound {})",
                    time(measured),
                    time(bound)
                )
            }
            Criterion::Stall => {
                write!(f, "longest stall {} (bound {})", time(measured), time(bound))
            }
            Criterion::SlowestSecond => write!(
                f,
                "slowest second {:.0} % of what arrived (bound {:.0} %)",
                measured * 100.0,
                bound * 100.0
            ),
        }
    }
}

/// What a run shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Every criterion that the run could be held to.
    pub findings: Vec<Finding>,
}

impl Verdict {
    /// Holds the running phase to the criteria.
    pub fn of(running: &PhaseReport, criteria: &Criteria) -> Self {
        let finding = |criterion, measured, bound| Finding { criterion, measured, bound };
        let p99_seconds = running.write.percentile_micros(99.0) / 1e6;
        let mut findings = vec![
            finding(Criterion::TailLatency, p99_seconds, criteria.p99.as_secs_f64()),
            finding(
                Criterion::Backlog,
                running.longest_wait_left_seconds,
                criteria.backlog.as_secs_f64(),
            ),
            finding(
                Criterion::Stall,
                running.longest_stall_seconds(),
                criteria.stall.as_secs_f64(),
            ),
        ];
        findings.extend(
            running
                .slowest_second_share()
                .map(|share| finding(Criterion::SlowestSecond, share, criteria.slowest_second)),
        );
        Self { findings }
    }

    /// Whether the rate is sustainable.
    pub fn is_sustainable(&self) -> bool {
        self.findings.iter().all(Finding::is_met)
    }
}
