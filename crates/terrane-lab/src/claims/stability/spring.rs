//! bLSM: Fig. 6.

use super::rows::{HEADERS, row, said, seconds, variation};
use super::setting::Setting;
use super::stage::{Id, Played, Stage};
use super::trial::Trial;
use crate::claims::report::Report;
use crate::human;

/// Eight writers (§4.2).
const WRITERS: u32 = 8;
const NAMES: [&str; 2] = ["uniform", "zipf"];

/// A memtable of 1 GB, a ratio of ten, two runs in a level at most (§4.2).
fn design(setting: &Setting) -> String {
    format!(
        "leveling T=10; granularity=level; intake=exact; buffer={}; buffers=1; limit=local(2x); \
         scheduler=gear",
        setting.mebibytes(1024.0)
    )
}

/// The testing phases, uniform and skewed.
pub(super) struct Testing([Id; 2]);

pub(super) fn testing(setting: &Setting, stage: &mut Stage<'_>) -> Testing {
    Testing([false, true].map(|is_skewed| {
        let trial = Trial::closed(setting, design(setting));
        stage.add(Trial { writers: WRITERS, is_skewed, ..trial })
    }))
}

pub(super) struct Phases {
    testing: [Id; 2],
    running: [Id; 2],
}

impl Testing {
    pub(super) fn running(
        self,
        setting: &Setting,
        stage: &mut Stage<'_>,
        played: &Played,
    ) -> Phases {
        let Self(testing) = self;
        let running = [0, 1].map(|at| {
            let rate = 0.95 * played[testing[at]].rate();
            let trial = Trial::open(setting, design(setting), rate);
            stage.add(Trial { writers: WRITERS, is_skewed: at == 1, ..trial })
        });
        Phases { testing, running }
    }
}

impl Phases {
    pub(super) fn judge(
        &self,
        setting: &Setting,
        maxima: &Played,
        played: &Played,
        report: &mut Report,
    ) {
        let testing = self.testing.map(|id| &maxima[id]);
        let running = self.running.map(|id| &played[id]);
        let varies = variation(testing[0]);
        said(
            report,
            "Fig. 6a",
            "as fast as it takes writes, bLSM's rate varies much, with regular peaks",
            (format!("standard deviation {:.0} % of the mean", varies * 100.0), varies > 0.3),
            "",
        );
        let processing = running[0].report.processing.percentile_micros(99.0) / 1e6;
        let all = running[0].p99();
        said(
            report,
            "Fig. 6c, S3-72",
            "processing a write takes a bounded time, but with its time in the queue a write takes far longer",
            (
                format!("p99 {} with the queue, {} without it", seconds(all), seconds(processing)),
                all > 10.0 * processing && all > setting.short(),
            ),
            "memtables of 1 GB are few in a phase of this size, so that the last level is merged into \
             once, if at all (the table)",
        );
        let rates = testing.map(super::trial::Phase::rate);
        said(
            report,
            "Fig. 6a",
            "skewed updates make it faster, as entries that were overwritten go earlier",
            (
                format!("{} and {} writes/s", human::number(rates[0]), human::number(rates[1])),
                rates[1] > rates[0],
            ),
            "",
        );
        let mut rows = Vec::new();
        for (at, name) in NAMES.into_iter().enumerate() {
            rows.push(row(format!("{name}, testing"), testing[at]));
            rows.push(row(format!("{name}, running"), running[at]));
        }
        report.table("Fig. 6: bLSM, two levels on disk, eight writers", &HEADERS, rows);
    }
}
