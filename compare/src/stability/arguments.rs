//! The command line of the evaluation.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use crate::cli::{Sizes, engines_named};
use crate::engines::Engine;
use crate::settings::Bytes;

/// The engine at whose maximum all others run as well.
const REFERENCE_DEFAULT: &str = "rocksdb";

#[derive(Debug, Args)]
pub(crate) struct StabilityArguments {
    /// Engines, separated by commas [default: all of this build]
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    engines: Vec<String>,

    /// Records of 16-byte keys that are loaded in random order and then updated
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) records: u64,

    /// Bytes of a value
    #[arg(long, default_value_t = 1000, value_name = "BYTES")]
    pub(super) value_size: usize,

    /// Seconds of the testing phase, warm-up included
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS", value_parser = seconds)]
    pub(super) testing: f64,

    /// Seconds of each running phase
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS", value_parser = seconds)]
    pub(super) running: f64,

    /// Seconds of the testing phase that are left out [default: a sixth of it]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) warm_up: Option<f64>,

    /// Shares of an engine's own maximum at which it runs, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "0.8,0.95", value_name = "SHARE", value_parser = share)]
    pub(super) utilizations: Vec<f64>,

    /// The engine at whose maximum all others run as well [default: rocksdb, if it is evaluated]
    #[arg(long, value_name = "NAME")]
    reference: Option<String>,

    /// What flushes and compactions may write in a second, where an engine can limit that
    #[arg(long, value_name = "SIZE")]
    pub(super) budget: Option<Bytes>,

    /// How often everything is evaluated; tables show medians
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) repeat: u32,

    /// Where keys, values and choices come from
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,

    /// Folder for the databases, which are removed [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,

    #[command(flatten)]
    pub(super) sizes: Sizes,

    /// An evaluation that takes longer is given up
    #[arg(long, default_value_t = 3600, value_name = "SECONDS")]
    pub(super) limit_seconds: u64,

    /// Write the tables to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(super) markdown: Option<PathBuf>,

    /// Write every evaluation to a file, as one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
}

fn number(text: &str, most: f64) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| *number > 0.0 && *number <= most);
    number.ok_or_else(|| format!("a number above 0, at most {most}, is expected"))
}

fn seconds(text: &str) -> Result<f64, String> {
    number(text, 86_400.0)
}

fn share(text: &str) -> Result<f64, String> {
    number(text, 2.0)
}

impl StabilityArguments {
    /// Returns the name of the reference engine.
    pub(super) fn reference(&self) -> &str {
        self.reference.as_deref().unwrap_or(REFERENCE_DEFAULT)
    }

    /// Returns true if this is the reference engine.
    pub(super) fn is_reference(&self, engine: &Engine) -> bool {
        engine.name == self.reference()
    }

    /// Returns the requested engines, the reference engine first.
    pub(super) fn engines_in_order(&self) -> Result<Vec<&'static Engine>> {
        let mut engines = engines_named(&self.engines)?;
        let has_reference = engines.iter().any(|engine| self.is_reference(engine));
        if self.reference.is_some() && !has_reference {
            bail!("the reference '{}' is not among the engines", self.reference());
        }
        engines.sort_by_key(|engine| !self.is_reference(engine));
        Ok(engines)
    }

    /// Returns the engines in the order of a repetition: the reference engine first, then the
    /// others, beginning with a different engine in each repetition.
    pub(super) fn turn(
        &self,
        engines: &[&'static Engine],
        repetition: u32,
    ) -> Vec<&'static Engine> {
        let first = engines.iter().take_while(|engine| self.is_reference(engine)).count();
        let (reference, others) = engines.split_at(first);
        let start = (repetition as usize - 1) % others.len().max(1);
        let in_turn = others[start..].iter().chain(&others[..start]);
        reference.iter().chain(in_turn).copied().collect()
    }
}
