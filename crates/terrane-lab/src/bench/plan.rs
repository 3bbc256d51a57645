//! The workloads, designs and sizes of a benchmark, checked.

use anyhow::Result;
use terrane::Options;
use terrane_policy::suggest::hint;
use terrane_workload::{MixOrder, OperationMix, RunOptions, Workload};

use crate::error::usage;
use crate::input::named_design::NamedDesign;
use crate::input::spec;

/// The default workloads: writing, three ways of reading, and an ordered scan.
const WORKLOADS_DEFAULT: [&str; 5] =
    ["fillrandom", "readrandom", "readmissing", "seekrandom", "readseq"];

/// A seek reads ten entries and costs as much as ten lookups.
const SEEK_SHARE: u64 = 10;

/// The number of buffers that the data should fill, so that the tree has several levels.
const BUFFERS_WANTED: u64 = 24;

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
        let designs = designs(&options.designs, &run)?;
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
        data_bytes(&self.run)
    }
}

fn data_bytes(run: &RunOptions) -> u64 {
    let value_bytes = usize::midpoint(run.value_size.min_bytes(), run.value_size.max_bytes());
    run.num.saturating_mul((run.key_size_bytes + value_bytes) as u64)
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

/// Returns the designs of the specs, or the default one, each with its sizes scaled to the data unless
/// its spec gives sizes.
fn designs(specs: &[String], run: &RunOptions) -> Result<Vec<NamedDesign>> {
    let default = [terrane_policy::catalogue::DEFAULT.to_owned()];
    let specs = if specs.is_empty() { &default[..] } else { specs };
    let mut designs = NamedDesign::parse_all(specs)?;
    for (design, spec) in designs.iter_mut().zip(specs) {
        if !spec::gives_sizes(spec.trim())? {
            fit(design, data_bytes(run));
        }
    }
    Ok(designs)
}

/// Scales the sizes of a design to the data.
///
/// A million small entries fill only two buffers of the default size. All sizes are therefore
/// divided by the same power of two until the tree has the levels of a larger database. A large
/// data set gets the design unchanged.
fn fit(named: &mut NamedDesign, data_bytes: u64) {
    const SMALLEST_BUFFER: u64 = 256 << 10;
    let design = &mut named.design;
    let wanted = (data_bytes / BUFFERS_WANTED).max(SMALLEST_BUFFER);
    let mut divisor = 1;
    while design.buffer_bytes / divisor > wanted {
        divisor *= 2;
    }
    design.buffer_bytes /= divisor;
    design.table_bytes = (design.table_bytes / divisor).max(SMALLEST_BUFFER);
    design.strategy.base_bytes = design.strategy.base_bytes.map(|base| base / divisor);
    named.divided_by = divisor;
}
