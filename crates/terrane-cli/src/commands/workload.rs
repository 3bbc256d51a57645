//! `terrane workload`: shows, generates and records operations in proportions and phases.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use terrane_lab::input::quantity::{count, count_in};
use terrane_lab::{
    host::interrupt, host::progress, input::spec, input::workload_spec, output::human,
};
use terrane_workload::recording::RecordingStore;
use terrane_workload::{
    KeyOrder, MemStore, MixPart, OperationKind, OperationMix, Report, RunOptions, Silent, Store,
    TerraneStore, Workload, run,
};

use crate::control::ControlFlag;
use crate::engine_flags::EngineFlags;
use crate::exit::{Exit, usage};
use crate::output;
use crate::table::{Align, lines, table};

const EXAMPLES: &str = "\
A workload is a TOML file, or a mix as in `terrane bench --mix`; phases are separated by ';':
  insert=50,update=10@zipf:0.99,get=30,missing=5,scan:16=4,delete-range:10=1
  insert=1@normal:0.1:0.5 x3; get=9@beta:2:5,delete-missing=1

  keys = 100_000
  operations = 300_000
  [[phase]]
  weight = 2
  insert = 50
  update = \"10@zipf:0.99\"
  [[phase]]
  get = 1

Examples:
  terrane workload show workload.toml
  terrane workload generate workload.toml --out trace.txt && terrane replay trace.txt
  terrane workload record 'insert=1,get=3' --keys 10K --db ./db --out trace.txt";

/// Show, generate or record the operations of a workload
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WorkloadArgs {
    #[command(subcommand)]
    command: WorkloadCommand,
}

#[derive(Debug, Clone, Subcommand)]
enum WorkloadCommand {
    /// Show the phases of a workload and their operations
    Show(ChosenWorkload),
    /// Write the operations of a workload to a trace, without a database
    ///
    /// The same workload and seed give the same trace. The load of the keys comes first. One client
    /// performs all operations.
    Generate(GenerateArgs),
    /// Run a workload on a database, and write its operations to a trace in the order in which the
    /// database executed them
    Record(Box<RecordArgs>),
}

/// A workload, and the settings to change in it.
#[derive(Debug, Clone, Args)]
struct ChosenWorkload {
    /// A TOML file, or a mix such as `insert=50,get=50`
    workload: String,

    /// Keys to load first
    #[arg(long, value_name = "N", value_parser = count_in::<u64>(1..=u64::MAX))]
    keys: Option<u64>,

    /// Operations of all phases together [default: as many as keys]
    #[arg(long, value_name = "N", value_parser = count_in::<u64>(1..=u64::MAX))]
    operations: Option<u64>,

    /// The seed of all random choices
    #[arg(long, value_name = "N", value_parser = count)]
    seed: Option<u64>,
}

#[derive(Debug, Clone, Args)]
struct GenerateArgs {
    #[command(flatten)]
    chosen: ChosenWorkload,

    /// The file of the trace [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
struct RecordArgs {
    #[command(flatten)]
    chosen: ChosenWorkload,

    /// The database, created if it does not exist
    #[arg(long, value_name = "DIR")]
    db: PathBuf,

    /// The file of the trace
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// The design of a new database; see `terrane design list`
    #[arg(long, value_name = "SPEC")]
    design: Option<String>,

    #[command(flatten)]
    control: ControlFlag,

    #[command(flatten)]
    engine: EngineFlags,
}

impl WorkloadArgs {
    /// Runs the subcommand.
    pub(crate) fn run(&self) -> Result<Exit> {
        match &self.command {
            WorkloadCommand::Show(chosen) => show(&chosen.options()?)?,
            WorkloadCommand::Generate(args) => args.run()?,
            WorkloadCommand::Record(args) => args.run()?,
        }
        Ok(Exit::Done)
    }
}

impl ChosenWorkload {
    fn options(&self) -> Result<RunOptions> {
        let mut options = if self.workload.contains('=') {
            let mix: OperationMix =
                self.workload.parse().map_err(|error| usage(format!("{error}")))?;
            let num = self.keys.unwrap_or(100_000);
            RunOptions { num, key_order: mix.placement(), mix, ..RunOptions::default() }
        } else {
            workload_spec::read(Path::new(&self.workload))?
        };
        options.num = self.keys.unwrap_or(options.num);
        options.reads = self.operations.or(options.reads);
        options.seed = self.seed.unwrap_or(options.seed);
        Workload::Mix.check(&options).map_err(|error| usage(error.to_string()))?;
        Ok(options)
    }
}

fn show(options: &RunOptions) -> Result<()> {
    let mut out = output::text();
    let (low, high) = (options.value_size.min_bytes(), options.value_size.max_bytes());
    let values = if low == high { low.to_string() } else { format!("{low} to {high}") };
    writeln!(
        out,
        "{} of {} bytes, values of {values} bytes; then {} by {}, seed {}\n",
        human::counted(options.num, "key"),
        options.key_size_bytes,
        human::counted(options.operations(), "operation"),
        human::counted(options.threads.into(), "client"),
        options.seed
    )?;
    let mut rows = table(&[
        ("phase", Align::Right),
        ("operation", Align::Left),
        ("count", Align::Right),
        ("share", Align::Right),
        ("keys", Align::Left),
    ]);
    let counts = options.mix.counts(options.operations());
    let mut counts = counts.into_iter();
    for (number, parts) in options.mix.phases().enumerate() {
        let of_phase: Vec<u64> = counts.by_ref().take(parts.len()).collect();
        let all: u64 = of_phase.iter().sum();
        for (part, count) in parts.iter().zip(of_phase) {
            rows.add_row([
                (number + 1).to_string(),
                part.kind.to_string(),
                human::count(count),
                format!("{} %", human::number(100.0 * count as f64 / all.max(1) as f64)),
                keys_of(part, options),
            ]);
        }
    }
    Ok(lines(&rows).try_for_each(|line| writeln!(out, "{line}"))?)
}

/// Returns the distribution of the keys of a part.
fn keys_of(part: &MixPart, options: &RunOptions) -> String {
    match (part.kind, options.key_order) {
        (OperationKind::Insert, KeyOrder::Hashed) => "uniform".to_owned(),
        (OperationKind::Insert, KeyOrder::Ordered) => "sequential".to_owned(),
        (OperationKind::Insert, KeyOrder::Skewed(placement)) => placement.to_string(),
        _ => {
            let chosen = part.distribution.or(options.distribution);
            chosen.map_or("uniform".to_owned(), |chosen| chosen.to_string())
        }
    }
}

impl GenerateArgs {
    fn run(&self) -> Result<()> {
        let options = RunOptions { threads: 1, ..self.chosen.options()? };
        let store = MemStore::new();
        match &self.out {
            None => record(&store, &options, BufWriter::new(io::stdout())).map(drop),
            Some(path) => record_to(&store, &options, path).map(drop),
        }
    }
}

impl RecordArgs {
    fn run(&self) -> Result<()> {
        let options = self.chosen.options()?;
        let mut engine = self.engine.options()?;
        if let Some(text) = &self.design {
            engine = engine.design(spec::parse(text)?);
        }
        let db = engine.open(&self.db)?;
        let control = self.control.serve(&db);
        let recorded = record_to(&TerraneStore { db: db.clone() }, &options, &self.out);
        drop(control);
        let closed = db.close();
        let report = recorded?;
        closed?;
        let mut out = output::text();
        let mut rows = table(&[
            ("operation", Align::Left),
            ("count", Align::Right),
            ("mean µs", Align::Right),
            ("p99", Align::Right),
        ]);
        for kind in &report.kinds {
            let latency = kind.latency.summary();
            let micros = |micros| match kind.operations {
                0 => "-".to_owned(),
                _ => human::number(micros),
            };
            rows.add_row([
                kind.kind.to_string(),
                human::count(kind.operations),
                micros(latency.mean),
                micros(latency.p99),
            ]);
        }
        lines(&rows).try_for_each(|line| writeln!(out, "{line}"))?;
        writeln!(out, "recorded in {}", self.out.display())?;
        Ok(())
    }
}

/// Runs the load and the operations of a workload on `store`, and records them to a new file.
fn record_to(store: &dyn Store, options: &RunOptions, path: &Path) -> Result<Report> {
    let failed = || format!("cannot write {}", path.display());
    let file = File::create_new(path).with_context(failed)?;
    let recorded = record(store, options, BufWriter::new(file));
    recorded.with_context(failed)
}

fn record(store: &dyn Store, options: &RunOptions, out: impl Write + Send) -> Result<Report> {
    let recording = RecordingStore::new(store, out)?;
    let spinner = progress::spinner("recording");
    let report = run(&recording, Workload::FillRandom, options, &Silent)
        .and_then(|_| run(&recording, Workload::Mix, options, &Silent));
    interrupt::wait_if_ending();
    spinner.finish_and_clear();
    let report = report?;
    recording.finish()?;
    Ok(report)
}
