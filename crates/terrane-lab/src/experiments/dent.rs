//! Compares Dent's tree with ours: Table 1, Fig. 2 and Fig. 3 of his report (CS 265).
//!
//! Our program is `terrane cs265`, run as a user runs it. The program of the report takes part if
//! the option `--beside` names its binary. Both receive the same commands through the same kind of
//! pipe, in alternation, and every answer is compared with a map. The tables include the published
//! numbers, read off the plots to within one percent.
//!
//! | module | one line |
//! |---|---|
//! | [`workload`] | commands and their answers |
//! | [`talk`] | a program, timed |
//! | [`tables`] | metrics and tables |

mod tables;
mod talk;
mod workload;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use self::talk::{Program, ProgramRun};
use self::workload::{CommandWorkload, KeyDistribution};
use crate::experiment::{Experiment, ExperimentCost, ExperimentOptions};
use crate::machine::Machine;
use crate::process;
use crate::progress;
use crate::results::{Metric, Results};
use crate::scratch::Scratch;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "dent",
    paper: "Dent's report on his tree (CS 265)",
    about: "the tree of CS 265: our program and the report's",
    cost: ExperimentCost { minutes: 4, disk_mib: 200 },
    figures: &["Table 1", "Fig. 2", "Fig. 3"],
    metrics: &[METRICS],
    claims: include_str!("../../claims/dent.toml"),
    run,
};

const METRICS: &[Metric] = &[
    Metric { name: "machine", about: "the machine and its load, as text" },
    Metric { name: "beside_option", about: "the option that named Dent's program, as text" },
    Metric { name: "scale", about: "the factor by which workloads are scaled" },
    Metric { name: "rounds", about: "rounds of Table 1" },
    Metric { name: "gets_again", about: "how often our program repeats the gets" },
    Metric { name: "put_ratio", about: "our puts a second over Dent's, by distribution" },
    Metric { name: "get_ratio", about: "our gets a second over Dent's, by distribution" },
    Metric { name: "put_rate", about: "our puts a second, by distribution" },
    Metric {
        name: "put_cpu",
        about: "our processor time for a put, microseconds, by distribution",
    },
    Metric {
        name: "get_cpu",
        about: "our processor time for a get, microseconds, by distribution",
    },
    Metric {
        name: "fanout_put_cpu",
        about: "our processor time for a put with a buffer of one page, by fanout",
    },
    Metric { name: "bits_get_cpu", about: "our processor time for a get, by filter bits" },
    Metric { name: "wrong_answers", about: "wrong answers of our program" },
];

/// "A minimum workload size of 10,000,000 queries" (§4).
const PUTS: f64 = 10_000_000.0;
const GETS: f64 = 500_000.0;
/// The number of puts for each point of figures with many points.
const POINT_PUTS: f64 = 2_500_000.0;
const POINT_GETS: f64 = 300_000.0;

/// Table 1: for each key distribution, puts and gets per second.
const TABLE1: [(KeyDistribution, f64, f64); 2] =
    [(KeyDistribution::Uniform, 305e3, 28e3), (KeyDistribution::Gaussian, 314e3, 43e3)];

/// Fig. 2: fanout and puts per second, with a buffer of one page.
const FIG2: [(u32, f64); 13] = [
    (2, 83e3),
    (4, 92e3),
    (6, 98e3),
    (8, 103e3),
    (10, 106e3),
    (12, 110e3),
    (14, 112e3),
    (16, 114e3),
    (18, 115e3),
    (20, 117e3),
    (30, 125e3),
    (40, 128e3),
    (50, 128e3),
];

/// Fig. 3: filter bits per entry and gets per second.
const FIG3: [(f64, f64); 10] = [
    (1.0 / 32.0, 10.7e3),
    (1.0 / 16.0, 11.3e3),
    (0.125, 11.5e3),
    (0.25, 11.7e3),
    (0.5, 12.2e3),
    (1.0, 12.8e3),
    (2.0, 16.0e3),
    (4.0, 21.7e3),
    (8.0, 25.6e3),
    (16.0, 27.1e3),
];

/// Entries of a page of Dent's buffer.
const PAGE_ENTRIES: f64 = 512.0;

/// The parameters of the report, by the letters of both programs.
#[derive(Debug, Clone, Copy)]
struct TreeParameters {
    pages: u32,
    fanout: u32,
    bits: f64,
}

/// The defaults of Dent's program, and of Table 1.
const DEFAULT: TreeParameters = TreeParameters { pages: 1000, fanout: 10, bits: 0.5 };

impl TreeParameters {
    fn arguments(self, puts: u64) -> Vec<String> {
        let flags = [
            ("-b", self.pages.to_string()),
            ("-f", self.fanout.to_string()),
            ("-d", self.depth(puts).to_string()),
            ("-t", "4".to_owned()),
            ("-r", self.bits.to_string()),
        ];
        flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
    }

    /// Returns the default depth, or the smallest depth that holds all puts: Dent's tree has a
    /// fixed capacity.
    fn depth(self, puts: u64) -> u32 {
        let room = |depth| {
            let fanout = f64::from(self.fanout);
            let runs: f64 = (1..=depth).map(|level| fanout.powi(level)).sum();
            runs * f64::from(self.pages) * PAGE_ENTRIES
        };
        let enough = (5..60).find(|depth| room(*depth) >= 2.0 * puts as f64);
        enough.unwrap_or(60).unsigned_abs()
    }
}

/// Both programs on one workload, each operation at its best.
#[derive(Debug, Clone, Copy)]
struct ProgramPair {
    ours: ProgramRun,
    /// `None` without Dent's program.
    dent: Option<ProgramRun>,
    /// The ratio of our rate to Dent's: the median over the rounds, because other load on the
    /// machine affects both programs in a round.
    puts_over_dent: Option<f64>,
    gets_over_dent: Option<f64>,
}

/// The measurements of the table and the figures.
struct DentMeasurements {
    /// The measurements for each row of [`TABLE1`].
    table1: Vec<ProgramPair>,
    /// The measurements for each point of [`FIG2`], with buffers of one page and of a thousand
    /// pages.
    fig2: Vec<[ProgramPair; 2]>,
    /// The measurements for each point of [`FIG3`].
    fig3: Vec<ProgramPair>,
}

/// Our program repeats the gets this many times, because processor time has a resolution of a
/// hundredth of a second.
const GETS_AGAIN: usize = 20;

/// The sizes of a run, and the program of the report.
struct DentSizes {
    scale: f64,
    rounds: usize,
    seed: u64,
    program: Option<PathBuf>,
}

impl DentSizes {
    fn count(&self, whole: f64) -> u64 {
        ((whole * self.scale) as u64).max(1)
    }

    /// Runs both programs on a workload in turns; for each program, the best of the rounds counts.
    fn point(
        &self,
        parameters: TreeParameters,
        workload: &CommandWorkload,
        rounds: usize,
        dir: &Path,
    ) -> Result<ProgramPair> {
        let ours = std::env::current_exe().context("cannot find the path of this program")?;
        let run = |path: &Path, first: Option<&str>, workload: &CommandWorkload| {
            let mut arguments: Vec<String> = first.map(str::to_owned).into_iter().collect();
            arguments.extend(parameters.arguments(workload.put_count));
            talk::run(&Program { path, arguments, dir }, workload)
        };
        let mut of_ours = Vec::new();
        let mut of_dent = Vec::new();
        let longer = workload.with_gets_again(GETS_AGAIN);
        for _ in 0..rounds {
            of_ours.push(run(&ours, Some("cs265"), &longer)?);
            let of_dent_now = self.program.as_deref().map(|path| run(path, None, workload));
            of_dent.extend(of_dent_now.transpose()?);
        }
        let pairs = || of_ours.iter().zip(&of_dent);
        let puts = pairs().map(|(ours, dent)| ours.puts_per_second / dent.puts_per_second);
        let gets = pairs().filter_map(|(ours, dent)| {
            ours.gets_per_second.zip(dent.gets_per_second).map(|(ours, dent)| ours / dent)
        });
        Ok(ProgramPair {
            puts_over_dent: median(puts.collect()),
            gets_over_dent: median(gets.collect()),
            ours: of_ours.into_iter().reduce(ProgramRun::best).context("no rounds")?,
            dent: of_dent.into_iter().reduce(ProgramRun::best),
        })
    }

    fn measure(&self, dir: &Path) -> Result<DentMeasurements> {
        let spinner = progress::spinner("Table 1");
        let mut table1 = Vec::new();
        for (keys, ..) in TABLE1 {
            let (puts, gets) = (self.count(PUTS), self.count(GETS));
            let workload = CommandWorkload::new(keys, puts, gets, self.seed);
            table1.push(self.point(DEFAULT, &workload, self.rounds, dir)?);
        }
        let puts = self.count(POINT_PUTS);
        let workload = CommandWorkload::new(KeyDistribution::Uniform, puts, 0, self.seed);
        let mut fig2 = Vec::new();
        for (fanout, _) in FIG2 {
            spinner.set_message(format!("Fig. 2, fanout {fanout}"));
            let point =
                |pages| self.point(TreeParameters { pages, fanout, ..DEFAULT }, &workload, 1, dir);
            fig2.push([point(1)?, point(1000)?]);
        }
        let workload =
            CommandWorkload::new(KeyDistribution::Uniform, puts, self.count(POINT_GETS), self.seed);
        let mut fig3 = Vec::new();
        for (bits, _) in FIG3 {
            spinner.set_message(format!("Fig. 3, {bits} bits"));
            let parameters = TreeParameters { pages: 100, fanout: 1000, bits };
            fig3.push(self.point(parameters, &workload, 1, dir)?);
        }
        spinner.finish_and_clear();
        Ok(DentMeasurements { table1, fig2, fig3 })
    }
}

/// Returns the median; for an even number of values, the upper of the two middle values.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn run(options: &ExperimentOptions, results: &mut Results) -> Result<()> {
    let scratch = Scratch::temporary("terrane-claims-")?;
    let ExperimentOptions { scale, rounds, seed, ref dent_program, .. } = *options;
    let sizes = DentSizes { scale, rounds, seed, program: dent_program.clone() };
    let measured = sizes.measure(scratch.path())?;
    let mut machine = Machine::here(scratch.path()).to_string();
    // Other load slows our program, which has several threads, more than Dent's program; the load
    // average shows such load.
    if let Some(load) = process::load_average() {
        let _ = write!(machine, " · load average {load:.1}");
    }
    let option = if sizes.program.is_some() { " --beside bin/lsm" } else { "" };
    results.record_text("machine", machine);
    results.record_text("beside_option", option);
    results.record("scale", &[], scale);
    results.record("rounds", &[], rounds as f64);
    results.record("gets_again", &[], GETS_AGAIN as f64);
    tables::record(&sizes, &measured, results);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_hold_all_puts() {
        assert_eq!(DEFAULT.depth(10_000_000), 5);
        let small = TreeParameters { pages: 1, fanout: 2, ..DEFAULT };
        assert_eq!(small.depth(1_000_000), 11);
        let arguments = small.arguments(1_000_000).join(" ");
        assert_eq!(arguments, "-b 1 -f 2 -d 11 -t 4 -r 0.5");
    }
}
