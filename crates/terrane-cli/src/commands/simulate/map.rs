//! `terrane simulate map`: for which designs which share of the maximum rate holds.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use terrane_lab::progress;
use terrane_lab::quantity::{count_in, number_in};
use terrane_lab::simulation::map::{MapOptions, simulate};

use crate::exit::Exit;
use crate::output::write_document;

/// Simulate size ratios, depths, schedulers and limits, and list the share of the maximum that holds
#[derive(Debug, Clone, Args)]
pub(super) struct MapArgs {
    /// Hours of virtual time of each run
    #[arg(long, value_name = "HOURS", default_value_t = 16.0, value_parser = number_in(0.01..=10_000.0))]
    hours: f64,

    /// Trees of random fill for each share of the maximum; 23 give 100,000 runs
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = count_in::<u64>(1..=10_000))]
    seeds: u64,

    /// Simulate only every N-th design
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count_in::<usize>(1..=10_000))]
    step: usize,

    /// Threads [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = count_in::<usize>(1..=1024))]
    jobs: Option<usize>,

    /// Write the document to a file [default: to standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl MapArgs {
    /// Simulates the map, and writes the document.
    pub(super) fn run(&self) -> Result<Exit> {
        let here = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = self.jobs.unwrap_or_else(here);
        let options = MapOptions { hours: self.hours, seeds: self.seeds, step: self.step, threads };
        let bar = progress::bar(1, "simulating".to_owned());
        let text = simulate(&options, &|_, all| {
            bar.set_length(all as u64);
            bar.inc(1);
        })?;
        bar.finish_and_clear();
        write_document(self.output.as_deref(), &text)?;
        Ok(Exit::Done)
    }
}
