//! The workloads, designs and sizes of a benchmark, checked.

use anyhow::Result;
use terrane::Options;
use terrane_policy::suggest::hint;
use terrane_workload::{MixOrder, OperationMix, RunOptions, Workload};

use crate::error::usage;
use crate::input::fit;
use crate::input::named_design::NamedDesign;

/// The default workloads: writing, three ways of reading, and an ordered scan.
const WORKLOADS_DEFAULT: [&str; 5] =
    ["fillrandom", "readrandom", "readmissing", "seekrandom", "readseq"];

/// A seek reads ten entries and costs as much as ten lookups.
const SEEK_SHARE: u64 = 10;

/// The unchecked options of a benchmark.
#[derive(Debug, Clone)]
pub struct BenchOptions {
    /// Names of workloads, in order; empty for the default ones.
    pub workloads: Vec<String>,
    /// The operations of the workload `mix`; `None` for the default mix.
    pub mix: Option<OperationMix>,
    /// Runs the kinds of a mix one after the other instead of interleaved.
    pub is_serial: bool,
    /// Entries per batch of `fillbatch`, unless its name specifies them.
    pub batch_entries: Option<u32>,
    /// Specs of designs; empty for the default design. A design's sizes are scaled to the data
    /// unless its spec gives sizes.
    pub designs: Vec<String>,
    /// Repetitions of everything.
    pub repeat: u32,
    /// Sizes, counts, threads and seed; `mix` overrides its mix and key order.
    pub run: RunOptions,
    /// Options of the engine, except the design.
    pub engine: Options,
}

/// A checked benchmark.
#[derive(Debug, Clone)]
pub struct BenchPlan {
    /// The workloads, in order.
    pub workloads: Vec<Workload>,
    /// The designs.
    pub designs: Vec<NamedDesign>,
    /// Whether the user named designs.
    pub is_design_given: bool,
    /// Sizes, counts, threads, seed.
    pub run: RunOptions,
    /// Repetitions of everything.
    pub repeat: u32,
    /// Options of the engine, except the design.
    pub engine: Options,
}

/// Returns true if the workload fills an empty database.
pub(super) fn loads(workload: Workload) -> bool {
    matches!(
        workload,
        Workload::FillSeq
            | Workload::FillRandom
            | Workload::FillBatch { .. }
            | Workload::FillSync
            | Workload::YcsbLoad
    )
}

impl BenchPlan {
    /// Checks the options of a benchmark.
    ///
    /// # Errors
    ///
    /// If a workload or a design is unknown, or a workload cannot run with these options.
    pub fn new(options: BenchOptions) -> Result<Self> {
        let workloads = workloads(&options)?;
        let is_mix_given = options.mix.is_some() || options.is_serial;
        if is_mix_given && !workloads.contains(&Workload::Mix) {
            return Err(usage("--mix and --serial need the workload 'mix'; add it to --workload"));
        }
        let mut mix = options.mix.unwrap_or_default();
        if options.is_serial {
            mix.order = MixOrder::Serial;
        }
        let run = RunOptions { key_order: mix.placement(), mix, ..options.run };
        let designs = NamedDesign::parse_fitted(&options.designs, fit::data_bytes(&run))?;
        let plan = Self {
            designs,
            is_design_given: !options.designs.is_empty(),
            repeat: options.repeat,
            engine: options.engine,
            workloads,
            run,
        };
        for workload in &plan.workloads {
            let checked = workload.check(&plan.run_of(*workload));
            checked.map_err(|error| usage(format!("{workload}: {error}")))?;
        }
        Ok(plan)
    }

    /// Returns the options of a workload.
    pub fn run_of(&self, workload: Workload) -> RunOptions {
        let mut run = self.run.clone();
        if let (Workload::SeekRandom { .. }, None) = (workload, run.reads) {
            run.reads = Some(run.num.div_ceil(SEEK_SHARE));
        }
        run
    }

    /// Returns the bytes of all keys and values that are loaded.
    pub fn data_bytes(&self) -> u64 {
        fit::data_bytes(&self.run)
    }
}

fn workloads(options: &BenchOptions) -> Result<Vec<Workload>> {
    let default = || WORKLOADS_DEFAULT.map(str::to_owned).to_vec();
    let names = match (&options.workloads[..], &options.mix) {
        ([], Some(_)) => vec![Workload::Mix.name().to_owned()],
        ([], None) => default(),
        (names, _) => names.to_vec(),
    };
    let parse = |name: &String| {
        let workload: Workload =
            name.trim().parse().map_err(|error: terrane_workload::ParseError| {
                let hint = hint(&error.found, &error.expected);
                usage(format!("--workload: unknown workload '{}'{hint}", error.found))
            })?;
        Ok(match (workload, options.batch_entries) {
            (Workload::FillBatch { .. }, Some(entries)) if !name.contains(':') => {
                Workload::FillBatch { entries }
            }
            _ => workload,
        })
    };
    let workloads = names.iter().map(parse).collect::<Result<Vec<_>>>()?;
    if workloads.contains(&Workload::Settle) {
        return Err(usage(
            "--workload: omit 'settle'; the database settles after every workload that writes",
        ));
    }
    Ok(workloads)
}
