//! `terrane simulate calibrate`: measures the constants of the simulator.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use terrane_lab::input::quantity::{bytes_in, count_in};
use terrane_lab::simulation::calibrate::{KEY_BYTES, measure};
use terrane_lab::simulation::constants;

use crate::exit::Exit;
use crate::output::write_document;

/// Measure the costs of writes, flushes and merges, and the device, for `terrane simulate --constants`
///
/// The device is measured for about ten seconds, past the page cache, in a file of up to 256 MiB:
/// bandwidth, cost of a request, and how many requests it serves at a time. The engine then writes and
/// merges records, on that device and in memory.
#[derive(Debug, Clone, Args)]
pub(super) struct CalibrateArgs {
    /// Bytes of a key and its value
    #[arg(long, value_name = "BYTES", default_value = "1KiB", value_parser = bytes_in::<u64>(KEY_BYTES as u64..=64 << 20))]
    record_size: u64,

    /// Megabytes of data; they are written several times
    #[arg(long, value_name = "MB", default_value_t = 128, value_parser = count_in::<u64>(1..=65536))]
    megabytes: u64,

    /// The directory whose device is measured [default: the directory of temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Write the constants to a file [default: to standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl CalibrateArgs {
    /// Measures the constants, and writes the file.
    pub(super) fn run(&self) -> Result<Exit> {
        let count = (self.megabytes * 1_000_000 / self.record_size).max(1000);
        let machine = measure(count, self.record_size as usize, self.dir.as_deref())?;
        let what = format!(
            "Measured by `terrane simulate calibrate` with {count} records of {} bytes.",
            self.record_size
        );
        write_document(self.output.as_deref(), &constants::write(&machine, &what)?)?;
        Ok(Exit::Done)
    }
}
