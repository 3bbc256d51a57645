//! What is run, from the flags.

use anyhow::Result;
use terrane::{Design, Options};
use terrane_workload::{MixOrder, RunOptions, Workload};

use super::BenchArgs;
use crate::commands::design::spec;
use crate::events;
use crate::exit::usage;

/// What is run when no workload is asked for: writing, the three ways of reading, and the scan
/// that shows what an ordered store is for.
const WORKLOADS_DEFAULT: [&str; 5] =
    ["fillrandom", "readrandom", "readmissing", "seekrandom", "readseq"];

/// A seek reads ten entries and costs as much as ten lookups.
const SEEK_SHARE: u64 = 10;

/// How many buffers the data should fill for a tree of several levels to grow from it.
const BUFFERS_WANTED: u64 = 24;

/// Everything that is to be run.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// The workloads, in order.
    pub(super) workloads: Vec<Workload>,
    /// The designs.
    pub(super) candidates: Vec<Candidate>,
    /// Whether the user asked for designs.
    pub(super) is_design_given: bool,
    /// Sizes, counts, threads, seed.
    pub(super) run: RunOptions,
    /// How often everything is run.
    pub(super) repeat: u32,
    /// Options of the engine, but for the design.
    pub(super) options: Options,
}

/// A design to be run.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// What it is called in the results.
    pub(super) name: String,
    /// A name for its directory.
    pub(super) slug: String,
    /// The design.
    pub(super) design: Design,
}

/// Whether a workload fills a database from empty.
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

impl Plan {
    /// The plan of these flags.
    pub(super) fn of(args: &BenchArgs) -> Result<Self> {
        let mut mix = args.mix.clone().unwrap_or_default();
        if args.serial {
            mix.order = MixOrder::Serial;
        }
        let run = RunOptions {
            key_order: mix.placement(),
            mix,
            num: args.num,
            reads: args.reads,
            key_size_bytes: args.key_size,
            value_size: args.value_size,
            compressibility: args.compressibility,
            distribution: args.distribution,
            threads: args.threads,
            seed: args.seed,
        };
        let workloads = workloads(args)?;
        if (args.mix.is_some() || args.serial) && !workloads.contains(&Workload::Mix) {
            return Err(usage(
                "--mix and --serial are for the workload 'mix', which is not asked for",
            ));
        }
        let options = args.engine.options()?;
        let plan = Self {
            candidates: candidates(args, &run)?,
            is_design_given: !args.design.is_empty(),
            repeat: args.repeat,
            options: if args.events { options.on_event(events::tell) } else { options },
            workloads,
            run,
        };
        for workload in &plan.workloads {
            let checked = workload.check(&plan.run_of(*workload));
            checked.map_err(|error| usage(format!("{workload}: {error}")))?;
        }
        Ok(plan)
    }

    /// The options that a workload is run with.
    pub(super) fn run_of(&self, workload: Workload) -> RunOptions {
        let mut run = self.run.clone();
        if let (Workload::SeekRandom { .. }, None) = (workload, run.reads) {
            run.reads = Some(run.num.div_ceil(SEEK_SHARE));
        }
        run
    }

    /// Bytes of all keys and values that are loaded.
    pub(super) fn data_bytes(&self) -> u64 {
        data_bytes(&self.run)
    }
}

fn data_bytes(run: &RunOptions) -> u64 {
    let value_bytes = usize::midpoint(run.value_size.min_bytes(), run.value_size.max_bytes());
    run.num.saturating_mul((run.key_size_bytes + value_bytes) as u64)
}

fn workloads(args: &BenchArgs) -> Result<Vec<Workload>> {
    let default = || WORKLOADS_DEFAULT.map(str::to_owned).to_vec();
    let names = match (&args.workload[..], &args.mix) {
        ([], Some(_)) => vec![Workload::Mix.name().to_owned()],
        ([], None) => default(),
        (names, _) => names.to_vec(),
    };
    let parse = |name: &String| {
        let workload: Workload = name
            .trim()
            .parse()
            .map_err(|error: terrane_workload::ParseError| usage(format!("--workload: {error}")))?;
        Ok(match (workload, args.batch) {
            (Workload::FillBatch { .. }, Some(entries)) if !name.contains(':') => {
                Workload::FillBatch { entries }
            }
            _ => workload,
        })
    };
    let workloads = names.iter().map(parse).collect::<Result<Vec<_>>>()?;
    if workloads.contains(&Workload::Settle) {
        return Err(usage(
            "--workload: a database settles by itself after every workload that writes",
        ));
    }
    Ok(workloads)
}

fn candidates(args: &BenchArgs, run: &RunOptions) -> Result<Vec<Candidate>> {
    if args.design.is_empty() {
        return Ok(vec![fitted(run)?]);
    }
    let parse = |(index, spec): (usize, &String)| {
        let design = spec::parse(spec)?;
        let word: String =
            spec.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        Ok(Candidate {
            name: spec.trim().to_owned(),
            slug: format!("{}-{word}", index + 1),
            design,
        })
    };
    args.design.iter().enumerate().map(parse).collect()
}

/// The default design with its sizes made to fit the data.
///
/// A million small entries fill two buffers of the default size, and two buffers are no tree. So
/// all sizes are divided by the same power of two, until there are enough buffers for the levels
/// that a larger database would have. For data that is large enough it is the default design.
fn fitted(run: &RunOptions) -> Result<Candidate> {
    const SMALLEST_BUFFER: u64 = 256 << 10;
    let name = terrane::policy::catalogue::DEFAULT;
    let mut design: Design = name.parse().map_err(terrane::Error::from)?;
    let wanted = (data_bytes(run) / BUFFERS_WANTED).max(SMALLEST_BUFFER);
    let mut divisor = 1;
    while design.buffer_bytes / divisor > wanted {
        divisor *= 2;
    }
    design.buffer_bytes /= divisor;
    design.table_bytes = (design.table_bytes / divisor).max(SMALLEST_BUFFER);
    design.strategy.base_bytes = design.strategy.base_bytes.map(|base| base / divisor);
    let name = if divisor > 1 { format!("{name}/{divisor}") } else { name.to_owned() };
    Ok(Candidate { name, slug: "1-default".into(), design })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        bench: BenchArgs,
    }

    fn plan(arguments: &[&str]) -> Result<Plan> {
        let arguments = std::iter::once(&"bench").chain(arguments);
        Plan::of(&Command::try_parse_from(arguments)?.bench)
    }

    #[test]
    fn the_default_is_a_million_writes_and_reads_on_a_tree_of_several_levels() {
        let plan = plan(&[]).unwrap();
        assert_eq!(plan.run.num, 1_000_000);
        assert_eq!(plan.workloads[0], Workload::FillRandom);
        assert_eq!(plan.workloads[1], Workload::ReadRandom);
        assert_eq!(plan.candidates[0].design.buffer_bytes, 4 << 20);
        assert_eq!(plan.candidates[0].name, "balanced/16");
        assert_eq!(plan.run_of(plan.workloads[3]).reads, Some(100_000));
    }

    #[test]
    fn large_data_is_run_on_the_default_design_itself() {
        let plan = plan(&["--num", "50M"]).unwrap();
        assert_eq!(plan.candidates[0].design, "balanced".parse().unwrap());
        assert_eq!(plan.candidates[0].name, "balanced");
    }

    #[test]
    fn batches_have_the_size_of_the_flag_unless_the_name_has_one() {
        let plan = plan(&["--workload", "fillbatch,fillbatch:7", "--batch", "50"]).unwrap();
        let sizes = [Workload::FillBatch { entries: 50 }, Workload::FillBatch { entries: 7 }];
        assert_eq!(plan.workloads, sizes);
    }

    #[test]
    fn a_mix_is_what_is_run_unless_more_is_asked_for() {
        let plan =
            plan(&["--mix", "insert=1@zipf,get=1", "--serial", "--operations", "5"]).unwrap();
        assert_eq!(plan.workloads, [Workload::Mix]);
        assert_eq!((plan.run.mix.order, plan.run.reads), (MixOrder::Serial, Some(5)));
        assert_eq!(plan.run.key_order, plan.run.mix.placement());
        let plan = self::plan(&["--workload", "fillseq,mix", "--mix", "get=1"]).unwrap();
        assert_eq!(plan.workloads, [Workload::FillSeq, Workload::Mix]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for arguments in [
            &["--workload", "fillrandomly"][..],
            &["--workload", "settle"],
            &["--design", "round"],
            &["--num", "0"],
            &["--num", "many"],
            &["--threads", "0"],
            &["--key-size", "1"],
            &["--mix", "get"],
            &["--mix", "insert=1@latest"],
            &["--workload", "readrandom", "--mix", "get=1"],
            &["--serial"],
            &["--repeat", "0"],
            &["--keep"],
            &["--read-mode", "psychic"],
        ] {
            assert!(plan(arguments).is_err(), "{arguments:?}");
        }
    }
}
