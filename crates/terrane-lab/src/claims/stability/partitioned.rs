//! Partitioned merges: Fig. 1 and 15 to 18.

use anyhow::Result;
use terrane_workload::stability::Window;

use super::rows::{HEADERS, listed, pair, row, said, seconds, spread};
use super::setting::Setting;
use super::simulated;
use super::stage::{Id, Played, Stage};
use super::trial::{Phase, Trial};
use crate::claims::report::Report;
use crate::human;

/// Sizes of tables in MiB of the paper, and the authors' greatest rates and p99 latencies, the latter
/// in microseconds (Fig. 18): round-robin, then choose-best. The paper's smallest size, 8 MiB, is left
/// out: 12 KiB here would be a dozen records, and ten thousand files.
const TABLES: [f64; 4] = [64.0, 512.0, 4096.0, 32768.0];
const AUTHORS_RATES: [[f64; 4]; 2] =
    [[4478.0, 4076.0, 4056.0, 4177.0], [4352.0, 4014.0, 4056.0, 4182.0]];
const AUTHORS_P99: [[f64; 4]; 2] = [
    [35_967.0, 39_023.0, 17_524_671.0, 1_087_373_311.0],
    [34_207.0, 39_375.0, 15_138_495.0, 1_017_373_311.0],
];

const MOVEMENTS: [(&str, &str); 2] =
    [("round-robin", "round-robin"), ("choose-best", "least-overlap")];

/// `RocksDB`'s tree (Fig. 1).
fn production(setting: &Setting) -> String {
    let bytes = |mebibytes: f64| setting.mebibytes(mebibytes);
    format!(
        "1-leveling T=10; granularity=level,file; L0=4; base={}; buffer={}; buffers=1; table={}; \
         delay=20; stop=36",
        bytes(256.0),
        bytes(64.0),
        bytes(64.0)
    )
}

fn elastic(setting: &Setting, movement: usize, table: usize) -> String {
    setting.partitioned(TABLES[table], MOVEMENTS[movement].1)
}

fn exact(setting: &Setting, movement: usize, table: usize) -> String {
    format!("{}; intake=exact", elastic(setting, movement, table))
}

/// The testing phases, by movement and then by size of tables.
pub(super) struct Testing {
    production: Id,
    elastic: [Id; 2],
    exact: [[Id; 4]; 2],
}

pub(super) fn testing(setting: &Setting, stage: &mut Stage<'_>) -> Testing {
    Testing {
        production: stage.add(Trial::closed(setting, production(setting))),
        elastic: [0, 1].map(|at| stage.add(Trial::closed(setting, elastic(setting, at, 0)))),
        exact: [0, 1].map(|at| {
            [0, 1, 2, 3].map(|table| stage.add(Trial::closed(setting, exact(setting, at, table))))
        }),
    }
}

pub(super) struct Phases {
    testing: Testing,
    /// At 95 % of what elastic merges give.
    elastic: [Id; 2],
    /// At 95 % of what exact merges give.
    exact: [[Id; 4]; 2],
}

impl Testing {
    pub(super) fn running(
        self,
        setting: &Setting,
        stage: &mut Stage<'_>,
        played: &Played,
    ) -> Phases {
        // Merges of the running phase are elastic in either case.
        let mut open = |at: usize, table: usize, maximum: Id| {
            let rate = 0.95 * played[maximum].rate();
            stage.add(Trial::open(setting, elastic(setting, at, table), rate))
        };
        let elastic = [0, 1].map(|at| open(at, 0, self.elastic[at]));
        let exact =
            [0, 1].map(|at| [0, 1, 2, 3].map(|table| open(at, table, self.exact[at][table])));
        Phases { testing: self, elastic, exact }
    }
}

impl Phases {
    pub(super) fn judge(
        &self,
        setting: &Setting,
        maxima: &Played,
        played: &Played,
        report: &mut Report,
    ) -> Result<()> {
        judge_production(setting, &maxima[self.testing.production], report);
        self.judge_elastic(setting, maxima, played, report);
        self.judge_shape(maxima, report);
        self.judge_sizes(setting, maxima, played, report)
    }

    /// Fig. 15 and 17.
    fn judge_elastic(
        &self,
        setting: &Setting,
        maxima: &Played,
        played: &Played,
        report: &mut Report,
    ) {
        let (unsustained, sustained) = (&played[self.elastic[0]], &played[self.exact[0][0]]);
        said(
            report,
            "Fig. 15, S3-60",
            "partitioned: the rate that is measured with elastic merges cannot be sustained",
            (
                format!(
                    "p99 {}, stopped {}",
                    seconds(unsustained.p99()),
                    seconds(unsustained.stopped())
                ),
                unsustained.p99() > setting.short(),
            ),
            "",
        );
        said(
            report,
            "Fig. 17, S3-62",
            "partitioned: 95 % of the rate that is measured with exact merges can be sustained",
            (format!("p99 {}", seconds(sustained.p99())), sustained.p99() < setting.short()),
            "",
        );
        let rate = |id: Id| maxima[id].rate();
        let (elastic, exact) = (rate(self.testing.elastic[0]), rate(self.testing.exact[0][0]));
        said(
            report,
            "Fig. 17, S3-62",
            "partitioned: that rate is about a third lower",
            (
                format!("{} instead of {}", human::number(exact), human::number(elastic)),
                (0.5..0.9).contains(&(exact / elastic)),
            ),
            "",
        );
        let best = rate(self.testing.exact[1][0]);
        said(
            report,
            "§6.1",
            "partitioned: which table moves has little effect under uniform updates",
            (
                format!("{} and {}", human::number(exact), human::number(best)),
                (best / exact - 1.0).abs() < 0.2,
            ),
            "",
        );
        let mut rows = Vec::new();
        for (at, (name, _)) in MOVEMENTS.into_iter().enumerate() {
            rows.push(row(format!("{name}, elastic, testing"), &maxima[self.testing.elastic[at]]));
            rows.push(row(format!("{name}, elastic, running"), &played[self.elastic[at]]));
            rows.push(row(format!("{name}, exact, testing"), &maxima[self.testing.exact[at][0]]));
            rows.push(row(format!("{name}, running at 95 % of it"), &played[self.exact[at][0]]));
        }
        let table = human::bytes(setting.mebibytes(TABLES[0]));
        let title = format!("Fig. 15, 17: partitioned leveling, tables of {table}");
        report.table(title, &HEADERS, rows);
    }

    /// Fig. 16.
    fn judge_shape(&self, maxima: &Played, report: &mut Report) {
        let elastic = &maxima[self.testing.elastic[0]].level_bytes;
        let exact = &maxima[self.testing.exact[0][0]].level_bytes;
        let waste = |levels: &[f64]| {
            let last = levels.iter().rev().find(|bytes| **bytes > 0.0).copied().unwrap_or(1.0);
            levels.iter().sum::<f64>() / last - 1.0
        };
        let level = |levels: &[f64], at: usize| levels.get(at).copied().unwrap_or(0.0);
        let told = |bytes: f64| human::bytes(bytes as u64);
        said(
            report,
            "Fig. 16, S3-70",
            "elastic merges change the shape: upper levels are larger than they should be, and space is wasted",
            (
                format!(
                    "level 1 {} instead of {}; levels above the last {:.0} % and {:.0} % of it",
                    told(level(elastic, 1)),
                    told(level(exact, 1)),
                    waste(elastic) * 100.0,
                    waste(exact) * 100.0
                ),
                level(elastic, 1) > level(exact, 1) && waste(elastic) > waste(exact),
            ),
            "",
        );
        let row = |name: &str, levels: &[f64]| {
            let sizes = (0..5).map(|at| told(level(levels, at)));
            std::iter::once(name.to_owned()).chain(sizes).collect::<Vec<_>>()
        };
        report.table(
            "Fig. 16: sizes of levels in the second half of the testing phase, round-robin",
            &["", "level 0", "level 1", "level 2", "level 3", "level 4"],
            vec![row("elastic", elastic), row("exact", exact)],
        );
    }

    /// Fig. 18.
    fn judge_sizes(
        &self,
        setting: &Setting,
        maxima: &Played,
        played: &Played,
        report: &mut Report,
    ) -> Result<()> {
        let mut rows = Vec::new();
        for (at, (name, _)) in MOVEMENTS.into_iter().enumerate() {
            for (table, mebibytes) in TABLES.into_iter().enumerate() {
                let rate = maxima[self.testing.exact[at][table]].rate();
                let simulated = simulated::greatest_rate(setting, &exact(setting, at, table))?;
                rows.push(vec![
                    format!("{name}, {}", human::bytes((mebibytes * 1048576.0) as u64)),
                    human::bytes(setting.mebibytes(mebibytes)),
                    human::number(rate),
                    human::number(setting.rate(AUTHORS_RATES[at][table])),
                    human::number(simulated),
                    seconds(played[self.exact[at][table]].p99()),
                    seconds(AUTHORS_P99[at][table] / 1e6 / setting.quicker()),
                ]);
            }
        }
        let rates = self.testing.exact.map(|ids| ids.map(|id| maxima[id].rate()));
        said(
            report,
            "Fig. 18a",
            "the size of tables has little effect on the rate",
            (
                format!(
                    "the fastest over the slowest is {:.2} with round-robin, {:.2} with choose-best; \
                     the authors' {:.2} and {:.2}",
                    spread(&rates[0]),
                    spread(&rates[1]),
                    spread(&AUTHORS_RATES[0]),
                    spread(&AUTHORS_RATES[1])
                ),
                spread(&rates[0]) < 1.3 && spread(&rates[1]) < 1.3,
            ),
            "",
        );
        let latencies = self.exact.map(|ids| ids.map(|id| played[id].p99()));
        let short = latencies.iter().flat_map(|list| &list[..2]).copied().fold(0.0, f64::max);
        said(
            report,
            "Fig. 18b, S3-71",
            "one merge at a time is enough for tables of up to 512 MB",
            (format!("p99 at most {}", seconds(short)), short < setting.short()),
            "",
        );
        let long = latencies.iter().map(|list| list[3]).fold(f64::INFINITY, f64::min);
        said(
            report,
            "Fig. 18b, S3-71",
            "with tables that are all of a level latencies explode",
            (
                format!("p99 {} at 32 GB", pair(latencies[0][3], latencies[1][3])),
                long > setting.short() && long > 10.0 * short,
            ),
            "",
        );
        report.table(
            "Fig. 18: sizes of tables; the authors' numbers are scaled as rates and times are",
            &["tables", "here", "writes/s", "authors", "simulated", "p99", "authors"],
            rows,
        );
        Ok(())
    }
}

/// Fig. 1.
fn judge_production(setting: &Setting, phase: &Phase, report: &mut Report) {
    let windows = phase.report.timeline.windows(setting.seconds() / 60.0);
    let until = setting.share_of_phase(300.0);
    let early = windows.iter().filter(|window| window.begin_seconds < until);
    let early: Vec<f64> = early.map(Window::per_second).collect();
    let first = early.iter().sum::<f64>() / early.len().max(1) as f64;
    let late: Vec<f64> = windows.iter().skip(early.len()).map(Window::per_second).collect();
    let slow = late.iter().filter(|rate| **rate < 0.5 * first).count();
    let share = slow as f64 / late.len().max(1) as f64;
    said(
        report,
        "Fig. 1, S3-50",
        "RocksDB's tree: after some minutes the rate falls again and again, as merges lag behind",
        (
            format!(
                "{} writes/s at first; below half of it for {:.0} % of the time afterwards",
                listed(&[first]),
                share * 100.0
            ),
            slow > 0,
        ),
        "",
    );
    report.table(
        "Fig. 1: RocksDB's tree, as fast as it takes writes",
        &HEADERS,
        vec![row("RocksDB", phase)],
    );
}
