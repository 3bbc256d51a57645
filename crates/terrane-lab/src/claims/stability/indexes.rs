//! Secondary indexes, which the extended version of the paper adds: kept eagerly and lazily (S3-64).
//!
//! Records and two indexes are three trees, which share the budget and the scheduler.

use terrane_workload::Indexes;

use super::rows::{HEADERS, listed, pair, row, said};
use super::setting::Setting;
use super::stage::{Id, Played, Stage};
use super::trial::Trial;
use crate::claims::report::Report;

const KEPT: [Option<&str>; 3] = [None, Some("eager(2)"), Some("lazy(2)")];
const NAMES: [&str; 3] = ["no index", "two, eager", "two, lazy"];

fn indexes(at: usize) -> Option<Indexes> {
    KEPT[at].and_then(|text| text.parse().ok())
}

fn design(setting: &Setting, scheduler: &str) -> String {
    format!("{}; scheduler={scheduler}", setting.tiering(3))
}

/// The testing phases.
pub(super) struct Testing([Id; 3]);

pub(super) fn testing(setting: &Setting, stage: &mut Stage<'_>) -> Testing {
    Testing([0, 1, 2].map(|at| {
        let trial = Trial::closed(setting, design(setting, "fair"));
        stage.add(Trial { indexes: indexes(at), ..trial })
    }))
}

pub(super) struct Phases {
    testing: [Id; 3],
    running: [Id; 3],
}

impl Testing {
    pub(super) fn running(
        self,
        setting: &Setting,
        stage: &mut Stage<'_>,
        played: &Played,
    ) -> Phases {
        let Self(testing) = self;
        let running = [0, 1, 2].map(|at| {
            let rate = 0.95 * played[testing[at]].rate();
            let trial = Trial::open(setting, design(setting, "greedy"), rate);
            stage.add(Trial { indexes: indexes(at), ..trial })
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
        let [none, eager, lazy] = self.testing.map(|id| maxima[id].rate());
        said(
            report,
            "extended, S3-64",
            "secondary indexes make the greatest rate lower; eager ones, which also write what removes \
             entries, more than lazy ones",
            (
                format!("{} writes/s without, eager, lazy", listed(&[none, eager, lazy])),
                eager < lazy && lazy < none,
            ),
            "entries are a fortieth of a record, so that they are little of what is written",
        );
        let causes = self.running.map(|id| played[id].main_cause());
        let [_, eager, lazy] = self.running.map(|id| played[id].p99());
        said(
            report,
            "extended, S3-64",
            "95 % of it can be sustained with either, under greedy",
            (
                format!(
                    "p99 {}; writers waited most for {} and {}",
                    pair(eager, lazy),
                    causes[1],
                    causes[2]
                ),
                eager < setting.short() && lazy < setting.short(),
            ),
            "",
        );
        let mut rows = Vec::new();
        for (at, name) in NAMES.into_iter().enumerate() {
            rows.push(row(format!("{name}, testing"), &maxima[self.testing[at]]));
            rows.push(row(format!("{name}, running"), &played[self.running[at]]));
        }
        let title = "S3-64: secondary indexes, tiering, runs and merges of all trees together";
        report.table(title, &HEADERS, rows);
    }
}
