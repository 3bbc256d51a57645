//! Decides whether a rate is sustainable, by stated criteria (paper §3.2, S3-41).
//!
//! The paper asks whether the write latencies of the running phase are large. Four bounds make this
//! question precise. A verdict covers only its own run: a run that is too short to include the
//! largest merges says nothing about them.

use std::fmt;
use std::time::Duration;

use super::report::PhaseReport;

/// The bounds that a run must meet for its rate to be sustainable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Criteria {
    /// The maximum 99th percentile of write latencies.
    pub p99: Duration,
    /// The maximum time for which a write may still be waiting at the end of the run.
    pub backlog: Duration,
    /// The maximum duration of a stall.
    pub stall: Duration,
    /// The minimum fraction of the arrivals of any second that must complete in that second.
    pub slowest_second: f64,
}

impl Default for Criteria {
    fn default() -> Self {
        let second = Duration::from_secs(1);
        Self { p99: second, backlog: second, stall: second, slowest_second: 0.5 }
    }
}

/// A criterion for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Criterion {
    /// 99 % of the writes complete in time.
    TailLatency,
    /// The engine keeps up with arrivals.
    Backlog,
    /// The engine has no long stall.
    Stall,
    /// The engine has no slow second.
    SlowestSecond,
}

impl Criterion {
    /// Returns a name for machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Self::TailLatency => "p99",
            Self::Backlog => "backlog",
            Self::Stall => "stall",
            Self::SlowestSecond => "slowest-second",
        }
    }
}

/// A criterion with its measured value and bound: seconds, or a fraction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finding {
    /// The criterion.
    pub criterion: Criterion,
    /// The measured value.
    pub measured: f64,
    /// The bound.
    pub bound: f64,
}

impl Finding {
    /// Returns true if the run meets the bound.
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
                "slowest second {:.0} % of its arrivals (bound {:.0} %)",
                measured * 100.0,
                bound * 100.0
            ),
        }
    }
}

/// The verdict on a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The criteria that apply to the run.
    pub findings: Vec<Finding>,
}

impl Verdict {
    /// Checks a running phase against the criteria.
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

    /// Returns true if the rate is sustainable.
    pub fn is_sustainable(&self) -> bool {
        self.findings.iter().all(Finding::is_met)
    }
}
