//! Dent's tree beside ours: Table 1, Fig. 2 and Fig. 3 of his report.
//!
//! Ours is `terrane cs265`, run as a user runs it. His program takes part where it was built and
//! `--beside` names it; both get the same commands through the same kind of pipe and take turns, and
//! every answer of both is held against a map. What his report publishes stands in the tables too;
//! its figures were read off the plots to one part in a hundred.
//!
//! | module | one line |
//! |---|---|
//! | [`workload`] | commands and their answers |
//! | [`talk`] | a program, timed |
//! | [`document`] | tables and claims |

mod document;
mod talk;
mod workload;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use self::talk::{Program, Run};
use self::workload::{Keys, Workload};
use crate::machine::Machine;
use crate::process;
use crate::progress;
use crate::scratch::Scratch;

/// "A minimum workload size of 10,000,000 queries" (§4).
const PUTS: f64 = 10_000_000.0;
const GETS: f64 = 500_000.0;
/// For points of a figure, of which there are many.
const POINT_PUTS: f64 = 2_500_000.0;
const POINT_GETS: f64 = 300_000.0;

/// Table 1: fanout and distribution, puts and gets a second.
const TABLE1: [(Keys, f64, f64); 2] = [(Keys::Uniform, 305e3, 28e3), (Keys::Gaussian, 314e3, 43e3)];

/// Fig. 2: fanout, puts a second, with a buffer of one page.
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

/// Fig. 3: filter bits an entry, gets a second.
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

/// Entries of a page of his buffer.
const PAGE_ENTRIES: f64 = 512.0;

/// His parameters, in both programs' letters.
#[derive(Debug, Clone, Copy)]
struct Parameters {
    pages: u32,
    fanout: u32,
    bits: f64,
}

/// The defaults of his program, those of Table 1.
const DEFAULT: Parameters = Parameters { pages: 1000, fanout: 10, bits: 0.5 };

impl Parameters {
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

    /// The default depth, or the least that has room: his tree ends when it is full.
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

/// Both programs at one point, each operation at its best.
#[derive(Debug, Clone, Copy)]
struct Point {
    ours: Run,
    /// `None` where his program is not there.
    his: Option<Run>,
    /// Our rate over his: medians of the rounds, as whatever else the machine does meets both
    /// programs of a round.
    puts_over_his: Option<f64>,
    gets_over_his: Option<f64>,
}

/// Everything that was measured.
struct Measured {
    /// As [`TABLE1`].
    table1: Vec<Point>,
    /// As [`FIG2`], with buffers of one page and of a thousand.
    fig2: Vec<[Point; 2]>,
    /// As [`FIG3`].
    fig3: Vec<Point>,
}

/// Our program does the gets so many times over: processor time is told in hundredths of a second, and
/// its gets are done in a few of them otherwise.
const GETS_AGAIN: usize = 20;

/// How it is measured.
pub(super) struct Setting {
    pub(super) scale: f64,
    pub(super) rounds: usize,
    pub(super) seed: u64,
    /// His program.
    pub(super) beside: Option<PathBuf>,
}

impl Setting {
    fn count(&self, whole: f64) -> u64 {
        ((whole * self.scale) as u64).max(1)
    }

    /// Both programs on a workload, in turn, at their best of some rounds.
    fn point(
        &self,
        parameters: Parameters,
        workload: &Workload,
        rounds: usize,
        dir: &Path,
    ) -> Result<Point> {
        let ours = std::env::current_exe().context("this program does not know where it is")?;
        let run = |path: &Path, first: Option<&str>, workload: &Workload| {
            let mut arguments: Vec<String> = first.map(str::to_owned).into_iter().collect();
            arguments.extend(parameters.arguments(workload.put_count));
            talk::run(&Program { path, arguments, dir }, workload)
        };
        let mut of_ours = Vec::new();
        let mut of_his = Vec::new();
        let longer = workload.with_gets_again(GETS_AGAIN);
        for _ in 0..rounds {
            of_ours.push(run(&ours, Some("cs265"), &longer)?);
            let of_his_alone = self.beside.as_deref().map(|path| run(path, None, workload));
            of_his.extend(of_his_alone.transpose()?);
        }
        let pairs = || of_ours.iter().zip(&of_his);
        let puts = pairs().map(|(ours, his)| ours.puts_per_second / his.puts_per_second);
        let gets = pairs().filter_map(|(ours, his)| {
            ours.gets_per_second.zip(his.gets_per_second).map(|(ours, his)| ours / his)
        });
        Ok(Point {
            puts_over_his: median(puts.collect()),
            gets_over_his: median(gets.collect()),
            ours: of_ours.into_iter().reduce(Run::best).context("no round was asked for")?,
            his: of_his.into_iter().reduce(Run::best),
        })
    }

    fn measure(&self, dir: &Path) -> Result<Measured> {
        let spinner = progress::spinner("Table 1");
        let mut table1 = Vec::new();
        for (keys, ..) in TABLE1 {
            let (puts, gets) = (self.count(PUTS), self.count(GETS));
            let workload = Workload::new(keys, puts, gets, self.seed);
            table1.push(self.point(DEFAULT, &workload, self.rounds, dir)?);
        }
        let puts = self.count(POINT_PUTS);
        let workload = Workload::new(Keys::Uniform, puts, 0, self.seed);
        let mut fig2 = Vec::new();
        for (fanout, _) in FIG2 {
            spinner.set_message(format!("Fig. 2, fanout {fanout}"));
            let point =
                |pages| self.point(Parameters { pages, fanout, ..DEFAULT }, &workload, 1, dir);
            fig2.push([point(1)?, point(1000)?]);
        }
        let workload = Workload::new(Keys::Uniform, puts, self.count(POINT_GETS), self.seed);
        let mut fig3 = Vec::new();
        for (bits, _) in FIG3 {
            spinner.set_message(format!("Fig. 3, {bits} bits"));
            let parameters = Parameters { pages: 100, fanout: 1000, bits };
            fig3.push(self.point(parameters, &workload, 1, dir)?);
        }
        spinner.finish_and_clear();
        Ok(Measured { table1, fig2, fig3 })
    }
}

/// The upper one of the two in the middle, if there are two.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Measures, and answers the document.
pub(super) fn document(setting: &Setting) -> Result<String> {
    let scratch = Scratch::temporary("terrane-claims-")?;
    let measured = setting.measure(scratch.path())?;
    let mut machine = Machine::here(scratch.path()).to_string();
    // What others do at the time slows ours, which has several threads, more than his.
    if let Some(load) = process::load_average() {
        let _ = write!(machine, " · load average {load:.1}");
    }
    Ok(document::write(setting, &measured, &machine))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_as_deep_as_they_must_be() {
        assert_eq!(DEFAULT.depth(10_000_000), 5);
        let small = Parameters { pages: 1, fanout: 2, ..DEFAULT };
        assert_eq!(small.depth(1_000_000), 11);
        let arguments = small.arguments(1_000_000).join(" ");
        assert_eq!(arguments, "-b 1 -f 2 -d 11 -t 4 -r 0.5");
    }
}
