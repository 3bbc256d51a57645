//! Compares Dent's tree with ours: Table 1, Fig. 2 and Fig. 3 of his report (CS 265).
//!
//! Our program is `terrane-papers cs265`, which runs the code of `terrane cs265`, with commands on a pipe. The report's
//! program takes part if the option `--beside` names its binary. Both receive the same commands through the same kind
//! of pipe, in alternation, and every answer is compared with a map. The tables include the published numbers, read off
//! the plots to within one percent.
//!
//! | module | one line |
//! |---|---|
//! | [`workload`] | commands and their answers |
//! | [`talk`] | a program, timed |
//! | [`threads`] | gets by the number of threads, from a disk and from memory |
//! | [`pair`] | the rounds of both programs on one workload |
//! | [`models`] | the report's formulas against counted pages |
//! | [`tables`] | metrics and tables |

mod models;
mod pair;
mod tables;
mod talk;
mod threads;
mod workload;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use terrane_lab::host::progress;
use terrane_lab::host::scratch::Scratch;

use self::pair::ProgramPair;
use self::talk::{Program, ProgramRun};
use self::workload::{CommandWorkload, KeyDistribution};
use crate::experiment::{Experiment, ExperimentCost, ExperimentOptions};
use crate::results::{Metric, Results};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "dent",
    paper: "Dent's report on his tree (CS 265)",
    about: "the tree of CS 265: our program and the report's",
    cost: ExperimentCost { minutes: 50, disk_mib: 2500 },
    default_scale: 1.0,
    scale_of: "the report's least workload, 10 million puts",
    figures: &["Table 1", "Fig. 2", "Fig. 3"],
    metrics: &[METRICS],
    timed: &[
        "put_ratio",
        "get_ratio",
        "put_rate",
        "put_cpu",
        "get_cpu",
        "put_cpu_ratio",
        "get_cpu_ratio",
        "buffer_put_rate",
        "fanout_put_cpu",
        "bits_get_cpu",
        "bits_get_cpu_dent",
        "threads_get_micros",
        "threads_get_cpu",
    ],
    claims: include_str!("../../claims/dent.toml"),
    run,
};

const METRICS: &[Metric] = &[
    Metric { name: "scale", about: "the puts of each point as a share of ten million" },
    Metric {
        name: "rounds",
        about: "rounds of our program, and in the smaller half of Table 1 of Dent's",
    },
    Metric {
        name: "put_ratio",
        about: "our puts a second over Dent's, by multiple of the puts of a point and distribution",
    },
    Metric { name: "get_ratio", about: "our gets a second over Dent's, likewise" },
    Metric { name: "put_rate", about: "our puts a second, likewise" },
    Metric { name: "put_cpu", about: "our processor time for a put in microseconds, likewise" },
    Metric { name: "get_cpu", about: "our processor time for a get in microseconds, likewise" },
    Metric { name: "put_cpu_ratio", about: "Dent's processor time for a put over ours, likewise" },
    Metric { name: "get_cpu_ratio", about: "Dent's processor time for a get over ours, likewise" },
    Metric {
        name: "buffer_put_rate",
        about: "puts a second by buffer: `set` of Dent's program, and kinds of ours",
    },
    Metric {
        name: "fanout_put_cpu",
        about: "our processor time for a put, by pages of the buffer and fanout",
    },
    Metric { name: "bits_get_cpu", about: "our processor time for a get, by filter bits" },
    Metric {
        name: "bits_get_cpu_dent",
        about: "the processor time of Dent's program for a get, by filter bits",
    },
    Metric {
        name: "threads_get_micros",
        about: "the time of one of our gets, by place of the data (disk, memory) and threads",
    },
    Metric { name: "threads_get_cpu", about: "its processor time, likewise" },
    Metric {
        name: "model_update",
        about: "pages moved for a put over Dent's formula, by fanout and n/b",
    },
    Metric {
        name: "model_lookup",
        about: "pages read for a missing key over Dent's formula, by fanout and n/b",
    },
    Metric {
        name: "model_range",
        about: "pages read for a range over Dent's formula, by fanout and entries of the range",
    },
    Metric {
        name: "model_extreme",
        about: "pages written for a page, or runs read by a lookup, with the fanout n/b, by tree",
    },
    Metric { name: "wrong_answers", about: "wrong answers of our program, by figure" },
];

/// "A minimum workload size of 10,000,000 queries" (§4): the puts of each point at scale 1.
const PUTS: f64 = 10_000_000.0;

/// Table 1 is measured with the puts of a point, and with ten times as many: the report's
/// 100,000,000 at scale 1.
const TABLE1_MULTIPLES: [u32; 2] = [1, 10];

const GETS: f64 = 100_000.0;

/// The gets of a point of Fig. 3. In Dent's program, each reads 200 runs and takes 2 milliseconds.
const POINT_GETS: f64 = 30_000.0;

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

/// The report's parameters, which have the same letters in both programs.
#[derive(Debug, Clone, Copy)]
struct TreeParameters {
    pages: u32,
    fanout: u32,
    bits: f64,
    threads: u32,
}

/// The defaults of Dent's program, which Table 1 uses.
const DEFAULT: TreeParameters = TreeParameters { pages: 1000, fanout: 10, bits: 0.5, threads: 4 };

/// The tree of Fig. 3: no run is merged, so a get may have to search all of them.
const MANY_RUNS: TreeParameters = TreeParameters { pages: 100, fanout: 1000, ..DEFAULT };

impl TreeParameters {
    fn arguments(self, puts: u64) -> Vec<String> {
        let flags = [
            ("-b", self.pages.to_string()),
            ("-f", self.fanout.to_string()),
            ("-d", self.depth(puts).to_string()),
            ("-t", self.threads.to_string()),
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

/// A row of Table 1.
struct Table1Row {
    multiple: u32,
    keys: KeyDistribution,
    pair: ProgramPair,
}

/// The buffer sizes of Fig. 2 in pages: the caption's, and the text's.
const FIG2_PAGES: [u32; 2] = [1, 1000];

/// Kinds of buffer other than the default of the design `dent` (§2.1, §4.1).
const OTHER_BUFFERS: [&str; 2] = ["skiplist", "vector(query=scan)"];

/// The sizes of a run, and the report's program.
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

    /// Runs our program on a workload.
    fn ours(
        &self,
        parameters: TreeParameters,
        more: &[&str],
        workload: &CommandWorkload,
        dir: &Path,
    ) -> Result<ProgramRun> {
        let path = std::env::current_exe().context("cannot find the path of this program")?;
        let mut arguments = vec!["cs265".to_owned()];
        arguments.extend(parameters.arguments(workload.put_count));
        arguments.extend(more.iter().map(|&argument| argument.to_owned()));
        talk::run(&Program { path: &path, arguments, dir }, workload)
    }

    /// Runs both programs on a workload in alternation: ours in `rounds` rounds, Dent's in the
    /// first `dent_rounds` of them.
    fn point(
        &self,
        parameters: TreeParameters,
        workload: &CommandWorkload,
        (rounds, dent_rounds): (usize, usize),
        dir: &Path,
    ) -> Result<ProgramPair> {
        let mut of_ours = Vec::new();
        let mut of_dent = Vec::new();
        for round in 0..rounds.max(1) {
            of_ours.push(self.ours(parameters, &[], workload, dir)?);
            if let Some(path) = self.program.as_ref().filter(|_| round < dent_rounds) {
                let arguments = parameters.arguments(workload.put_count);
                of_dent.push(talk::run(&Program { path, arguments, dir }, workload)?);
            }
        }
        ProgramPair::of(of_ours, of_dent).context("no rounds")
    }

    fn table1(&self, dir: &Path, results: &mut Results) -> Result<()> {
        let spinner = progress::spinner("Table 1");
        let mut rows = Vec::new();
        for multiple in TABLE1_MULTIPLES {
            let (puts, gets) = (self.count(PUTS * f64::from(multiple)), self.count(GETS));
            // The larger half takes minutes per round, mostly in Dent's program.
            let dent_rounds = if multiple == 1 { self.rounds } else { 1 };
            for (keys, ..) in TABLE1 {
                let workload = CommandWorkload::new(keys, puts, gets, self.seed);
                let pair = self.point(DEFAULT, &workload, (self.rounds, dent_rounds), dir)?;
                rows.push(Table1Row { multiple, keys, pair });
            }
        }
        let workload =
            CommandWorkload::new(KeyDistribution::Uniform, self.count(PUTS), 0, self.seed);
        let mut buffers = Vec::new();
        for kind in OTHER_BUFFERS {
            spinner.set_message(format!("the buffer {kind}"));
            let run = |_| self.ours(DEFAULT, &["--memtable", kind], &workload, dir);
            buffers.push((0..self.rounds.max(1)).map(run).collect::<Result<Vec<_>>>()?);
        }
        spinner.finish_and_clear();
        tables::record_table1(self, &rows, &buffers, results);
        Ok(())
    }

    fn fig2(&self, dir: &Path, results: &mut Results) -> Result<()> {
        let spinner = progress::spinner("Fig. 2");
        let workload =
            CommandWorkload::new(KeyDistribution::Uniform, self.count(PUTS), 0, self.seed);
        let mut all = Vec::new();
        for (fanout, _) in FIG2 {
            spinner.set_message(format!("Fig. 2, fanout {fanout}"));
            let point = |pages| {
                let parameters = TreeParameters { pages, fanout, ..DEFAULT };
                self.point(parameters, &workload, (self.rounds, 1), dir)
            };
            let [caption, text] = FIG2_PAGES;
            all.push([point(caption)?, point(text)?]);
        }
        spinner.finish_and_clear();
        tables::record_fig2(self, &all, results);
        Ok(())
    }

    fn fig3(&self, dir: &Path, results: &mut Results) -> Result<()> {
        let spinner = progress::spinner("Fig. 3");
        let (puts, gets) = (self.count(PUTS), self.count(POINT_GETS));
        let workload = CommandWorkload::new(KeyDistribution::Uniform, puts, gets, self.seed);
        let mut all = Vec::new();
        for (bits, _) in FIG3 {
            spinner.set_message(format!("Fig. 3, {bits} bits"));
            let parameters = TreeParameters { bits, ..MANY_RUNS };
            all.push(self.point(parameters, &workload, (self.rounds, 1), dir)?);
        }
        spinner.finish_and_clear();
        tables::record_fig3(self, &all, results);
        Ok(())
    }
}

fn run(options: &ExperimentOptions, results: &mut Results) -> Result<()> {
    let scratch = Scratch::temporary("terrane-claims-")?;
    let ExperimentOptions { scale, rounds, seed, ref dent_program, .. } = *options;
    let sizes = DentSizes { scale, rounds, seed, program: dent_program.clone() };
    results.record("scale", &[], scale);
    results.record("rounds", &[], rounds as f64);
    let dir = scratch.path();
    options.part(results, "Table 1", "Table 1", |results| sizes.table1(dir, results))?;
    options.part(results, "puts by fanout", "Fig. 2", |results| sizes.fig2(dir, results))?;
    options.part(results, "gets by filter bits", "Fig. 3", |results| sizes.fig3(dir, results))?;
    options.part(results, "threads", "§5", |results| threads::measure(&sizes, dir, results))?;
    options.part(results, "formulas", "§2", models::measure)
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
