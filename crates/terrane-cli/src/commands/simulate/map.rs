//! `terrane simulate map`: the share of the maximum rate that each of many designs sustains.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use terrane_lab::host::{Environment, progress};
use terrane_lab::input::quantity::{count_in, number_in};
use terrane_lab::simulation::map::{MapOptions, StabilityMap};

use crate::exit::Exit;
use crate::output::write_document;

/// Simulate size ratios, depths, schedulers and limits, and list the sustainable share of the
/// maximum
#[derive(Debug, Clone, Args)]
pub(super) struct MapArgs {
    /// Hours of virtual time of the phases; a run lasts for the longest
    #[arg(
        long,
        value_name = "HOURS,…",
        value_delimiter = ',',
        default_value = "2,16",
        value_parser = number_in(0.01..=10_000.0)
    )]
    hours: Vec<f64>,

    /// Trees of random fill for each design
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = count_in::<u64>(1..=10_000))]
    seeds: u64,

    /// Simulate every share for this number of trees; for the others, search the highest
    /// sustainable one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count_in::<u64>(0..=10_000))]
    complete: u64,

    /// Simulate only every N-th design
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count_in::<usize>(1..=10_000))]
    step: usize,

    /// Threads [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = count_in::<usize>(1..=1024))]
    jobs: Option<usize>,

    /// Write the document to a file [default: to standard output, unless there is --out]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write a page with heat maps, and the shares as CSV, into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl MapArgs {
    /// Simulates the map, and writes the document and the page.
    pub(super) fn run(&self) -> Result<Exit> {
        let here = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut hours = self.hours.clone();
        hours.sort_by(f64::total_cmp);
        hours.dedup();
        let options = MapOptions {
            hours,
            trees: self.seeds,
            complete: self.complete.min(self.seeds),
            step: self.step,
            threads: self.jobs.unwrap_or_else(here),
        };
        let bar = progress::bar(1, "simulating".to_owned());
        let map = StabilityMap::simulate(&options, &|_, all| {
            bar.set_length(all as u64);
            bar.inc(1);
        })?;
        bar.finish_and_clear();
        let environment = Environment {
            command: command(&options),
            ..Environment::of_run(&std::env::temp_dir(), 1)
        };
        if self.output.is_some() || self.out.is_none() {
            write_document(self.output.as_deref(), &map.markdown(&environment))?;
        }
        if let Some(dir) = &self.out {
            let page = map.write(dir, &environment)?;
            let _ = writeln!(io::stderr(), "report: {}", page.display());
        }
        Ok(Exit::Done)
    }
}

/// Returns the command that yields the same map anywhere.
fn command(options: &MapOptions) -> String {
    let MapOptions { hours, trees, complete, step, .. } = options;
    let hours: Vec<String> = hours.iter().map(f64::to_string).collect();
    let step = if *step > 1 { format!(" --step {step}") } else { String::new() };
    let hours = hours.join(",");
    format!("terrane simulate map --hours {hours} --seeds {trees} --complete {complete}{step}")
}
