//! Queries beside the writers: Fig. 13 and 14.
//!
//! All pairs run at the same time with a reader each, who reads as fast as it can: readers have equal
//! shares of the processors, and the ratio within a pair is that of what queries cost.

use terrane_workload::stability::Query;

use super::rows::{said, seconds};
use super::setting::Setting;
use super::stage::{Id, Played, Stage};
use super::trial::{Phase, Trial};
use crate::claims::report::{Report, times};
use crate::human;

/// The paper's long scans read a hundredth of the records.
const LONG_SHARE: u64 = 100;
/// Phases are shorter than the others, as all that is counted is many.
const PHASE_SHARE: f64 = 0.375;
const KINDS: [&str; 3] = ["point", "short scan", "long scan"];

/// Fair and greedy, by policy and kind of query.
pub(super) struct Queries([[[Id; 2]; 3]; 2]);

impl Queries {
    /// Phases of pairs of designs, with the rate at which writes come.
    pub(super) fn plan(
        setting: &Setting,
        stage: &mut Stage<'_>,
        pairs: &[(String, String, f64); 2],
    ) -> Self {
        let long = u32::try_from(setting.records() / LONG_SHARE).unwrap_or(u32::MAX).max(1);
        let kinds = [Query::Point, Query::Scan { entries: 100 }, Query::Scan { entries: long }];
        Self([0, 1].map(|policy| {
            let (fair, greedy, rate) = &pairs[policy];
            kinds.map(|query| {
                [fair, greedy].map(|design| {
                    let trial = Trial::open(setting, design.clone(), *rate);
                    let seconds = setting.seconds() * PHASE_SHARE;
                    stage.add(Trial { query: Some(query), seconds, ..trial })
                })
            })
        }))
    }

    pub(super) fn judge(&self, played: &Played, report: &mut Report) {
        let mut rows = Vec::new();
        let mut gains = [[0.0; 3]; 2];
        for (policy, name) in ["tiering", "leveling"].into_iter().enumerate() {
            for (kind, what) in KINDS.into_iter().enumerate() {
                let [fair, greedy] = self.0[policy][kind].map(|id| &played[id]);
                let gain = per_second(greedy) / per_second(fair).max(1e-9);
                gains[policy][kind] = gain;
                let median = |phase: &Phase| {
                    let readers = phase.report.readers.as_ref();
                    let micros = readers.map_or(0.0, |one| one.latency.percentile_micros(50.0));
                    seconds(micros / 1e6)
                };
                rows.push(vec![
                    format!("{name}, {what}"),
                    human::number(per_second(fair)),
                    human::number(per_second(greedy)),
                    times(gain),
                    median(fair),
                    median(greedy),
                    format!("{:.1}", fair.runs()),
                    format!("{:.1}", greedy.runs()),
                ]);
            }
        }
        let [tiering, leveling] = gains;
        let two = |first: f64, second: f64| format!("{} and {}", times(first), times(second));
        said(
            report,
            "Fig. 13, 14, S3-69",
            "greedy makes short scans faster than fair, with tiering and with leveling",
            (two(tiering[1], leveling[1]), tiering[1] > 1.0 && leveling[1] > 1.0),
            "the runs of the two are nearly as many, and the rest is noise",
        );
        said(
            report,
            "Fig. 13, 14, S3-69",
            "more with tiering than with leveling",
            (two(tiering[1], leveling[1]), tiering[1] > leveling[1]),
            "",
        );
        said(
            report,
            "Fig. 13, 14, S3-69",
            "more for short scans than for long ones",
            (format!("tiering {}", two(tiering[1], tiering[2])), tiering[1] > tiering[2]),
            "",
        );
        let headers = [
            "",
            "fair, a second",
            "greedy",
            "ratio",
            "median, fair",
            "greedy",
            "runs, fair",
            "greedy",
        ];
        report.table("Fig. 13, 14: queries of one reader beside the writers", &headers, rows);
    }
}

fn per_second(phase: &Phase) -> f64 {
    phase.report.readers.as_ref().map_or(0.0, terrane_workload::stability::ReaderReport::per_second)
}
