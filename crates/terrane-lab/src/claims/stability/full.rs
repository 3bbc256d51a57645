//! Full merges: Fig. 7 to 9, 11 and 12.

use terrane_workload::stability::Schedule;

use super::queries::Queries;
use super::rows::{HEADERS, listed, pair, row, said, seconds, spread};
use super::setting::Setting;
use super::stage::{Id, Played, Stage};
use super::trial::Trial;
use crate::claims::report::Report;
use crate::human;

const SCHEDULERS: [&str; 3] = ["single", "fair", "greedy"];
/// Tiering, leveling.
const POLICIES: usize = 2;

/// The paper's designs: tiering with a ratio of 3, leveling with one of 10 (§5.2.1).
fn designs(setting: &Setting) -> [String; POLICIES] {
    [setting.tiering(3), setting.leveling(10)]
}

fn with(design: &str, scheduler: &str) -> String {
    format!("{design}; scheduler={scheduler}")
}

/// The testing phases, by policy and scheduler.
pub(super) struct Testing([[Id; 3]; POLICIES]);

pub(super) fn testing(setting: &Setting, stage: &mut Stage<'_>) -> Testing {
    let of = |design: &String| {
        SCHEDULERS.map(|scheduler| stage.add(Trial::closed(setting, with(design, scheduler))))
    };
    Testing(designs(setting).each_ref().map(of))
}

/// All phases.
pub(super) struct Phases {
    testing: [[Id; 3]; POLICIES],
    running: [[Id; 3]; POLICIES],
    /// Fair and greedy.
    local: [[Id; 2]; POLICIES],
    /// Without a greatest rate, and with it.
    bursts: [Id; 2],
    /// The greatest rates by the testing phase, and that of the bursts.
    maxima: [f64; POLICIES],
    most: u32,
}

impl Testing {
    pub(super) fn running(
        self,
        setting: &Setting,
        stage: &mut Stage<'_>,
        played: &Played,
    ) -> Phases {
        let Self(testing) = self;
        let designs = designs(setting);
        let maxima = testing.map(|[_, fair, _]| played[fair].rate());
        let at = |policy: usize| 0.95 * maxima[policy];
        let running = [0, 1].map(|policy| {
            SCHEDULERS.map(|scheduler| {
                let design = with(&designs[policy], scheduler);
                stage.add(Trial::open(setting, design, at(policy)))
            })
        });
        let local = [0, 1].map(|policy| {
            ["fair", "greedy"].map(|scheduler| {
                let design = format!("{}; limit=local(2x)", with(&designs[policy], scheduler));
                stage.add(Trial::open(setting, design, at(policy)))
            })
        });
        // As far above and below what can be had as the paper's are above the authors' rate.
        let rate = |paper: f64| paper / (3600.0 / 0.95) * maxima[1];
        let most = rate(4000.0) as u32;
        let cycle = |seconds: f64| setting.share_of_phase(seconds);
        let schedule = Schedule::burst(rate(2000.0), cycle(1500.0), rate(8000.0), cycle(300.0));
        let greedy = with(&designs[1], "greedy");
        let limited = format!("{greedy}; max-rate={}", most.max(1));
        let bursts =
            [greedy, limited].map(|design| stage.add(Trial::scheduled(setting, design, schedule)));
        Phases { testing, running, local, bursts, maxima, most }
    }
}

impl Phases {
    /// Queries beside the running phases of fair and greedy.
    pub(super) fn queries(&self, setting: &Setting, stage: &mut Stage<'_>) -> Queries {
        let designs = designs(setting);
        let pairs = [0, 1].map(|policy| {
            let rate = 0.95 * self.maxima[policy];
            let design = &designs[policy];
            (with(design, "fair"), with(design, "greedy"), rate)
        });
        Queries::plan(setting, stage, &pairs)
    }

    pub(super) fn judge(
        &self,
        setting: &Setting,
        maxima: &Played,
        played: &Played,
        report: &mut Report,
    ) {
        for (policy, name) in ["tiering", "leveling"].into_iter().enumerate() {
            self.judge_testing(policy, maxima, report);
            let testing = SCHEDULERS.iter().zip(self.testing[policy]);
            let rows = testing.map(|(name, id)| row(*name, &maxima[id])).collect();
            report.table(format!("Fig. 7: testing phase, {name}"), &HEADERS, rows);
            let figure = if policy == 0 { 8 } else { 9 };
            let running = SCHEDULERS.iter().zip(self.running[policy]);
            let rows = running.map(|(name, id)| row(*name, &played[id])).collect();
            let title = format!("Fig. {figure}: running phase at 95 %, {name}");
            report.table(title, &HEADERS, rows);
        }
        self.judge_tiering(setting, played, report);
        self.judge_runs(0, played, report);
        self.judge_leveling(setting, played, report);
        self.judge_runs(1, played, report);
        self.judge_limits(setting, played, report);
        self.judge_bursts(played, report);
    }

    /// Fig. 7.
    fn judge_testing(&self, policy: usize, maxima: &Played, report: &mut Report) {
        let [single, fair, greedy] = self.testing[policy].map(|id| &maxima[id]);
        let pauses = (single.longest_stall(), fair.longest_stall());
        let says = [
            "tiering: one merge at a time pauses for far longer than fair does",
            "leveling: one merge at a time pauses for far longer than fair does",
        ];
        said(
            report,
            ["Fig. 7a, S3-52", "Fig. 7b, S3-52"][policy],
            says[policy],
            (pair(pauses.0, pauses.1), pauses.0 > 2.0 * pauses.1),
            "",
        );
        let rates = [single.rate(), fair.rate(), greedy.rate()];
        let says = [
            "tiering: the scheduler hardly changes the greatest rate",
            "leveling: the scheduler hardly changes the greatest rate",
        ];
        let measured = format!("{} writes/s", listed(&rates));
        let why = "at this size a phase has room for the largest merge once or twice, and the rate is \
                   that of how far it came";
        said(report, "§5.2.2, S3-65", says[policy], (measured, spread(&rates) < 1.25), why);
        let says = [
            "tiering: greedy shows a higher rate than fair, as large merges starve",
            "leveling: greedy shows a higher rate than fair, as large merges starve",
        ];
        let measured = format!("{} and {}", human::number(rates[2]), human::number(rates[1]));
        let why = "what greedy gains by starving the largest merge it loses in one long pause for it, \
                   which the paper has as well";
        said(report, "§5.2.2, S3-65", says[policy], (measured, rates[2] > 1.01 * rates[1]), why);
    }

    /// Fig. 8.
    fn judge_tiering(&self, setting: &Setting, played: &Played, report: &mut Report) {
        let short = setting.short();
        let [single, fair, greedy] = self.running[0].map(|id| &played[id]);
        said(
            report,
            "Fig. 8, S3-66",
            "tiering at 95 %: fair and greedy are stable",
            (
                format!("p99 {}", pair(fair.p99(), greedy.p99())),
                fair.p99() < short && greedy.p99() < short,
            ),
            "",
        );
        said(
            report,
            "Fig. 8, S3-66",
            "tiering at 95 %: one merge at a time stalls",
            (format!("p99 {}", seconds(single.p99())), single.p99() > short),
            "",
        );
        let stopped = (fair.stopped(), greedy.stopped());
        said(
            report,
            "Fig. 8b",
            "tiering: the runs never reach their limit under fair and greedy",
            (
                format!(
                    "{} and {} at most; stopped {}",
                    fair.most_runs(),
                    greedy.most_runs(),
                    pair(stopped.0, stopped.1)
                ),
                stopped.0.max(stopped.1) < 0.01 * setting.seconds(),
            ),
            "",
        );
    }

    /// Fig. 9.
    fn judge_leveling(&self, setting: &Setting, played: &Played, report: &mut Report) {
        let short = setting.short();
        let [single, fair, greedy] = self.running[1].map(|id| &played[id]);
        said(
            report,
            "Fig. 9, S3-66",
            "leveling at 95 %: one merge at a time stalls",
            (format!("p99 {}", seconds(single.p99())), single.p99() > short),
            "",
        );
        said(
            report,
            "Fig. 9, S3-66",
            "leveling at 95 %: greedy is stable",
            (format!("p99 {}", seconds(greedy.p99())), greedy.p99() < short),
            "",
        );
        said(
            report,
            "Fig. 9, S3-66",
            "leveling at 95 %: fair is not; its latencies are far above those of greedy",
            (
                format!(
                    "p99 {}, stopped {}",
                    pair(fair.p99(), greedy.p99()),
                    pair(fair.stopped(), greedy.stopped())
                ),
                fair.p99() > short && fair.p99() > 3.0 * greedy.p99(),
            ),
            "",
        );
    }

    /// Fig. 8b and 9b.
    fn judge_runs(&self, policy: usize, played: &Played, report: &mut Report) {
        let [single, fair, greedy] = self.running[policy].map(|id| played[id].runs());
        let says = ["tiering: greedy has the fewest runs", "leveling: greedy has the fewest runs"];
        said(
            report,
            ["Fig. 8b", "Fig. 9b"][policy],
            says[policy],
            (
                format!("{greedy:.1} on average, fair {fair:.1}, single {single:.1}"),
                greedy < fair && greedy < single,
            ),
            "",
        );
    }

    /// Fig. 11.
    fn judge_limits(&self, setting: &Setting, played: &Played, report: &mut Report) {
        let of = |policy: usize, scheduler: usize| {
            let global = &played[self.running[policy][scheduler + 1]];
            let local = &played[self.local[policy][scheduler]];
            (global, local)
        };
        let mut rows = Vec::new();
        for (policy, name) in ["tiering", "leveling"].into_iter().enumerate() {
            for (scheduler, word) in ["fair", "greedy"].into_iter().enumerate() {
                let (global, local) = of(policy, scheduler);
                rows.push(vec![
                    format!("{name}, {word}"),
                    seconds(global.p99()),
                    seconds(local.p99()),
                    seconds(global.stopped()),
                    seconds(local.stopped()),
                ]);
            }
        }
        let both = |policy: usize, scheduler: usize| {
            let (global, local) = of(policy, scheduler);
            (global.p99(), local.p99())
        };
        let (fair, greedy) = (both(1, 0), both(1, 1));
        said(
            report,
            "Fig. 11, S3-67",
            "leveling: a global limit has shorter latencies than a local one, above all under greedy",
            (
                format!("p99 fair {}, greedy {}", pair(fair.0, fair.1), pair(greedy.0, greedy.1)),
                greedy.1 > 3.0 * greedy.0 && fair.1 > 0.8 * fair.0,
            ),
            "what comes into a level while its run is on the way out becomes its next run, so that a \
             small merge seldom has to wait for the level below",
        );
        let (fair, greedy) = (both(0, 0), both(0, 1));
        let short = setting.short();
        said(
            report,
            "Fig. 11, S3-67",
            "tiering: which limit there is has little effect",
            (
                format!("p99 fair {}, greedy {}", pair(fair.0, fair.1), pair(greedy.0, greedy.1)),
                [fair.0, fair.1, greedy.0, greedy.1].iter().all(|p99| *p99 < short),
            ),
            "",
        );
        let headers = ["", "p99 global", "p99 local", "stopped global", "stopped local"];
        report.table("Fig. 11: limits of all runs and of each level's", &headers, rows);
    }

    /// Fig. 12.
    fn judge_bursts(&self, played: &Played, report: &mut Report) {
        let [free, limited] = self.bursts.map(|id| &played[id]);
        // Writers of the second are slowed down by its rate: only runs count.
        let by_runs = |phase: &super::trial::Phase| {
            let causes = phase.report.counters.stalls.iter();
            let runs = causes.filter(|stall| stall.cause != "delay");
            runs.map(|stall| stall.micros).sum::<u64>() as f64 / 1e6
        };
        let stopped = (by_runs(free), by_runs(limited));
        said(
            report,
            "Fig. 12a, S3-68",
            "bursts: writers that may go as fast as they can are stopped at times, limited ones are not",
            (
                format!("stopped {}", pair(stopped.0, stopped.1)),
                stopped.0 > 0.0 && stopped.1 < 0.2 * stopped.0,
            ),
            "",
        );
        said(
            report,
            "Fig. 12b, S3-68",
            "bursts: yet their latencies are shorter",
            (format!("p99 {}", pair(free.p99(), limited.p99())), free.p99() < limited.p99()),
            "",
        );
        let rows = vec![row("no limit", free), row(format!("limit {}", self.most), limited)];
        report.table("Fig. 12: bursts under leveling and greedy", &HEADERS, rows);
    }
}
