//! Size ratios, beside the authors' numbers and the simulator's: Fig. 10.

use anyhow::Result;

use super::rows::{listed, said, seconds};
use super::setting::Setting;
use super::simulated;
use super::stage::{Id, Played, Stage};
use super::trial::Trial;
use crate::claims::report::Report;
use crate::human;

const RATIOS: [u32; 5] = [2, 4, 6, 8, 10];

/// Writes a second that came in the authors' running phases, at 95 % of the greatest rate
/// (Fig. 10a).
const AUTHORS: [[f64; 5]; 2] =
    [[8233.0, 6364.0, 5135.0, 4739.0, 3600.0], [8250.0, 13764.0, 17604.0, 18815.0, 20112.0]];

const NAMES: [&str; 2] = ["leveling", "tiering"];

/// Leveling and tiering with a ratio. Leveling has its last level nearly full: the ratio of level 1 to
/// level 0 is changed for it (§5.2.3).
fn designs(setting: &Setting, ratio: u32) -> [String; 2] {
    let mut base = setting.data_bytes() * 1.05;
    while base > setting.buffer_bytes() as f64 * f64::from(ratio) * 1.5 {
        base /= f64::from(ratio);
    }
    [format!("{}; base={}", setting.leveling(ratio), base as u64), setting.tiering(ratio)]
}

/// The testing phases, by policy and ratio.
pub(super) struct Testing([[Id; 5]; 2]);

pub(super) fn testing(setting: &Setting, stage: &mut Stage<'_>) -> Testing {
    Testing([0, 1].map(|policy| {
        RATIOS.map(|ratio| stage.add(Trial::testing(setting, &designs(setting, ratio)[policy])))
    }))
}

/// All phases; the running ones are fair and greedy.
pub(super) struct Phases {
    testing: [[Id; 5]; 2],
    running: [[[Id; 2]; 5]; 2],
}

impl Testing {
    pub(super) fn running(
        self,
        setting: &Setting,
        stage: &mut Stage<'_>,
        played: &Played,
    ) -> Phases {
        let Self(testing) = self;
        let running = [0, 1].map(|policy| {
            [0, 1, 2, 3, 4].map(|at| {
                let design = &designs(setting, RATIOS[at])[policy];
                let rate = 0.95 * played[testing[policy][at]].rate();
                ["fair", "greedy"].map(|scheduler| {
                    let design = format!("{design}; scheduler={scheduler}");
                    stage.add(Trial::open(setting, design, rate))
                })
            })
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
    ) -> Result<()> {
        let rates = self.testing.map(|ids| ids.map(|id| 0.95 * maxima[id].rate()));
        let mut rows = Vec::new();
        let mut off = [Vec::new(), Vec::new()];
        for (at, ratio) in RATIOS.into_iter().enumerate() {
            for policy in [0, 1] {
                let design = format!("{}; scheduler=fair", designs(setting, ratio)[policy]);
                let simulated = 0.95 * simulated::greatest_rate(setting, &design)?;
                let authors = setting.rate(AUTHORS[policy][at]);
                let [fair, greedy] = self.running[policy][at].map(|id| &played[id]);
                off[policy].push(rates[policy][at] / simulated);
                rows.push(vec![
                    format!("{}, {ratio}", NAMES[policy]),
                    human::number(rates[policy][at]),
                    human::number(authors),
                    format!("{:.2}×", rates[policy][at] / authors),
                    human::number(simulated),
                    format!("{:.2}×", rates[policy][at] / simulated),
                    seconds(fair.p99()),
                    seconds(greedy.p99()),
                ]);
            }
        }
        judge_rates(&rates, report);
        let near = |off: &[f64]| off.iter().all(|off| (0.8..=1.25).contains(off));
        let told =
            |off: &[f64]| off.iter().map(|off| format!("{off:.2}")).collect::<Vec<_>>().join(", ");
        said(
            report,
            "Fig. 10a",
            "the simulator has the same rates, within 25 %",
            (
                format!("leveling {}; tiering {}", told(&off[0]), told(&off[1])),
                near(&off[0]) && near(&off[1]),
            ),
            "",
        );
        self.judge_latencies(setting, played, report);
        let headers = [
            "policy, ratio",
            "writes/s",
            "authors, scaled",
            "over",
            "simulated",
            "over",
            "p99 fair",
            "p99 greedy",
        ];
        report.table("Fig. 10: size ratios, at 95 % of the greatest rate", &headers, rows);
        Ok(())
    }

    /// Fig. 10b.
    fn judge_latencies(&self, setting: &Setting, played: &Played, report: &mut Report) {
        let of = |policy: usize, scheduler: usize| {
            [0, 1, 2, 3, 4].map(|at| played[self.running[policy][at][scheduler]].p99())
        };
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let short = setting.short();
        let (fair, greedy) = (most(&of(1, 0)), most(&of(1, 1)));
        said(
            report,
            "Fig. 10b",
            "tiering: fair and greedy have short latencies at every ratio",
            (
                format!("p99 at most {} and {}", seconds(fair), seconds(greedy)),
                fair < short && greedy < short,
            ),
            "the table has the ratios at which they are not",
        );
        let greedy = most(&of(0, 1));
        said(
            report,
            "Fig. 10b",
            "leveling: greedy has short latencies at every ratio",
            (format!("p99 at most {}", seconds(greedy)), greedy < short),
            "the table has the ratios at which they are not",
        );
        let fair = of(0, 0);
        said(
            report,
            "Fig. 10b",
            "leveling: fair has long latencies at large ratios",
            (
                format!(
                    "p99 {} with a ratio of 2, {} with 8 or 10",
                    seconds(fair[0]),
                    seconds(most(&fair[3..]))
                ),
                most(&fair[3..]) > short && most(&fair[3..]) > fair[0],
            ),
            "",
        );
    }
}

/// Fig. 10a.
fn judge_rates(rates: &[[f64; 5]; 2], report: &mut Report) {
    let falls = rates[0].windows(2).all(|pair| pair[1] < pair[0] * 1.05);
    let rises = rates[1].windows(2).all(|pair| pair[1] > pair[0] * 0.95);
    let says = "a larger ratio makes leveling slower";
    let why = "with a ratio of 10 the last level is merged into about once in a phase, and the rate is \
               that of how far that came";
    said(report, "Fig. 10a", says, (listed(&rates[0]), falls), why);
    let says = "a larger ratio makes tiering faster";
    said(report, "Fig. 10a", says, (listed(&rates[1]), rises), "");
    for (policy, says) in [
        "leveling: rates over those of a ratio of 4 are the authors' within 25 %",
        "tiering: rates over those of a ratio of 4 are the authors' within 25 %",
    ]
    .into_iter()
    .enumerate()
    {
        let (ours, theirs) = (&rates[policy], &AUTHORS[policy]);
        let off: Vec<f64> =
            (0..5).map(|at| (ours[at] / ours[1]) / (theirs[at] / theirs[1])).collect();
        let told = off.iter().map(|off| format!("{off:.2}")).collect::<Vec<_>>().join(", ");
        let holds = off.iter().all(|off| (0.75..=1.25).contains(off));
        said(report, "Fig. 10a, authors", says, (told, holds), if policy == 0 { why } else { "" });
    }
}
