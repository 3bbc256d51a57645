//! One experiment of a sweep: its parameters, its key, and its execution.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use terrane_policy::advice::DesignCosts;
use terrane_policy::suggest::did_you_mean;

use anyhow::{Result, anyhow};
use serde_json::{Value, json};
use terrane::{Design, Options};
use terrane_sim::MachineModel;
use terrane_workload::{OperationMix, RunOptions, Workload};

use super::results::ResultLine;
use crate::advice::predict::{self, Scenario};
use crate::advice::question::OperationProfile;
use crate::bench::BenchRun;
use crate::error::usage;
use crate::host::{Environment, program};
use crate::input::fit;
use crate::input::quantity::{self, KEY_BYTES_MAX, RECORDS_MAX};
use crate::input::spec;
use crate::output::json::SCHEMA;

/// Parameters by name.
pub(super) type Parameters = BTreeMap<String, String>;

/// The version recorded in results.
const VERSION: &str = env!("CARGO_PKG_VERSION");

const WORKLOAD_DEFAULT: &str = "fillrandom,readrandom,readmissing";

/// Parameters of the run, in addition to settings of the design and options of the engine.
const RUN: [&str; 10] = [
    "workload",
    "mix",
    "num",
    "operations",
    "key_size",
    "value_size",
    "compressibility",
    "distribution",
    "threads",
    "seed",
];

/// The system that runs experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Player {
    /// A database.
    Engine,
    /// The simulator.
    Simulator,
}

impl Player {
    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Simulator => "simulator",
        }
    }
}

/// One experiment.
#[derive(Debug, Clone)]
pub struct SweepExperiment {
    parameters: Parameters,
    work: SweepWork,
    /// The number by which the sizes of the design are divided to fit the data.
    divided_by: u64,
    seed: u64,
}

#[derive(Debug, Clone)]
enum SweepWork {
    Engine(Box<BenchRun>),
    Simulator(Box<SimulatedWork>),
}

/// The inputs of a simulated experiment.
#[derive(Debug, Clone)]
struct SimulatedWork {
    design: Design,
    operations: OperationProfile,
    world: Scenario,
}

impl SweepExperiment {
    /// Builds an experiment from its parameters.
    ///
    /// # Errors
    /// Fails if a parameter is unknown or invalid.
    pub fn of(mut parameters: Parameters, player: Player) -> Result<Self> {
        if let Some(design) = parameters.get_mut("design").filter(|name| name.starts_with('@')) {
            // Record the contents of the file, because the file may change.
            *design = spec::parse(design)?.to_string();
        }
        let (mut settings, mut options) = (Vec::new(), Options::new());
        let known: Vec<&str> = Options::table().iter().map(|info| info.name).collect();
        for (name, value) in &parameters {
            if name == "design" || RUN.contains(&name.as_str()) {
                continue;
            }
            if known.contains(&name.as_str()) {
                options.set(name, value).map_err(|error| usage(format!("{name}: {error}")))?;
            } else if Design::KEYS.contains(&name.as_str()) {
                settings.push((name.as_str(), value.as_str()));
            } else {
                return Err(unknown(name, &known));
            }
        }
        let name = parameters.get("design").map_or(terrane_policy::catalogue::DEFAULT, |name| name);
        let mut design = design_of(name, &settings)?;
        let run = run_options(&parameters)?;
        let gives_sizes = spec::gives_sizes(name)?
            || settings.iter().any(|(setting, _)| spec::SIZES.contains(setting));
        let divided_by = if gives_sizes { 1 } else { fit::fit(&mut design, fit::data_bytes(&run)) };
        let seed = run.seed;
        let work = match player {
            Player::Engine => {
                let workloads = workloads(&parameters)?;
                let title = (name, design);
                SweepWork::Engine(Box::new(BenchRun::new(title, workloads, run, options)?))
            }
            Player::Simulator => {
                SweepWork::Simulator(Box::new(simulated(&parameters, design, &run)?))
            }
        };
        Ok(Self { parameters, work, divided_by, seed })
    }

    /// Returns the key: a hash of the engine version, the player, the round and the parameters.
    pub fn key(&self, round: u32) -> String {
        let player = match self.work {
            SweepWork::Engine(_) => Player::Engine,
            SweepWork::Simulator(_) => Player::Simulator,
        };
        let program = program::hash();
        let mut text = format!("{VERSION} {program}\n{}\n{round}\n", player.name());
        for (name, value) in &self.parameters {
            text.push_str(&format!("{name}={value}\n"));
        }
        format!("{:016x}", fnv(text.as_bytes()))
    }

    /// Returns the parameters on one line.
    pub fn name(&self) -> String {
        let words: Vec<String> =
            self.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        words.join(" ")
    }

    /// Returns the parameters, from which [`Self::of`] builds the same experiment.
    pub fn parameters(&self) -> &BTreeMap<String, String> {
        &self.parameters
    }

    /// Returns the number by which the sizes of the design are divided to fit the data; 1 for the
    /// design as given.
    pub fn divided_by(&self) -> u64 {
        self.divided_by
    }

    /// Returns the number of operations.
    pub fn operations(&self) -> u64 {
        match &self.work {
            SweepWork::Engine(experiment) => experiment.operations(),
            SweepWork::Simulator(simulated) => simulated.world.records as u64,
        }
    }

    /// Runs the experiment with a database in `dir`. Returns the rows and the number of wrong answers.
    pub fn run(&self, dir: PathBuf) -> Result<(Vec<Value>, u64)> {
        match &self.work {
            SweepWork::Engine(experiment) => experiment.run(dir),
            SweepWork::Simulator(simulated) => Ok((vec![simulated.run()?], 0)),
        }
    }

    /// Returns the result line of a run that ends now, with databases in `dir`.
    pub fn line(&self, round: u32, took: Duration, results: Vec<Value>, dir: &Path) -> ResultLine {
        let by = match self.work {
            SweepWork::Engine(_) => Player::Engine,
            SweepWork::Simulator(_) => Player::Simulator,
        };
        ResultLine {
            schema: SCHEMA,
            key: self.key(round),
            engine: VERSION.to_owned(),
            program: program::hash().to_owned(),
            by: by.name().to_owned(),
            round,
            parameters: self.parameters.clone(),
            operations: self.operations(),
            seconds: (took.as_secs_f64() * 1e3).round() / 1e3,
            results,
            environment: Some(Environment::of_run(dir, self.seed)),
        }
    }
}

/// FNV-1a, because keys need not resist attacks.
pub(super) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns the error for an unknown parameter.
fn unknown(name: &str, options: &[&'static str]) -> anyhow::Error {
    let names = || std::iter::once("design").chain(RUN).chain(Design::KEYS);
    let meant = did_you_mean(name, names().chain(options.iter().copied()));
    let all = names().collect::<Vec<_>>().join(", ");
    usage(format!(
        "unknown parameter '{name}'{meant}\nknown parameters: {all}, and every option that \
         `terrane options` lists"
    ))
}

/// Returns the design `name` with the given settings.
fn design_of(name: &str, settings: &[(&str, &str)]) -> Result<Design> {
    // T first, because the runs of level 0 default to it.
    let (first, rest): (Vec<_>, Vec<_>) = settings.iter().partition(|(key, _)| *key == "T");
    let mut text = name.to_owned();
    for (key, value) in first.into_iter().chain(rest) {
        text.push_str(&format!("; {key}={value}"));
    }
    spec::parse(&text)
}

fn run_options(parameters: &Parameters) -> Result<RunOptions> {
    fn of<T, E: std::fmt::Display>(
        parameters: &Parameters,
        name: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>> {
        let parsed = parameters.get(name).map(|text| parse(text)).transpose();
        parsed.map_err(|error| usage(format!("{name}: {error}")))
    }
    let mut run = RunOptions { num: 1_000_000, ..RunOptions::default() };
    run.mix = of(parameters, "mix", str::parse::<OperationMix>)?.unwrap_or_default();
    run.key_order = run.mix.placement();
    let some = quantity::count_in(1..=RECORDS_MAX);
    run.num = of(parameters, "num", &some)?.unwrap_or(run.num);
    run.reads = of(parameters, "operations", &some)?;
    let key_size = quantity::bytes_in(1..=KEY_BYTES_MAX);
    run.key_size_bytes = of(parameters, "key_size", key_size)?.unwrap_or(run.key_size_bytes);
    run.value_size = of(parameters, "value_size", quantity::value_size)?.unwrap_or(run.value_size);
    run.compressibility = of(parameters, "compressibility", quantity::number_in(0.0..=1.0))?
        .unwrap_or(run.compressibility);
    run.distribution = of(parameters, "distribution", str::parse)?;
    run.threads = of(parameters, "threads", quantity::count_in(1..=1024))?.unwrap_or(run.threads);
    run.seed = of(parameters, "seed", quantity::count)?.unwrap_or(run.seed);
    Ok(run)
}

fn workloads(parameters: &Parameters) -> Result<Vec<Workload>> {
    let names = match (parameters.get("workload"), parameters.get("mix")) {
        (None, None) => WORKLOAD_DEFAULT,
        (None, Some(_)) => "mix",
        (Some(names), _) => names,
    };
    let parse = |name: &str| {
        let parsed = name.trim().parse::<Workload>();
        parsed.map_err(|error| usage(format!("workload: {error}")))
    };
    let workloads = names.split(',').map(parse).collect::<Result<Vec<_>>>()?;
    if workloads.contains(&Workload::Settle) {
        return Err(usage("workload: 'settle' is implied after every workload; leave it out"));
    }
    if parameters.contains_key("mix") && !workloads.contains(&Workload::Mix) {
        return Err(usage("parameter 'mix' requires the workload 'mix'"));
    }
    Ok(workloads)
}

fn simulated(parameters: &Parameters, design: Design, run: &RunOptions) -> Result<SimulatedWork> {
    if parameters.contains_key("workload") {
        return Err(usage("the simulator runs a mix, not workloads; leave out 'workload'"));
    }
    let mut mix = run.mix.clone();
    if !parameters.contains_key("mix") {
        mix = "update=1".parse().map_err(|error| usage(format!("mix: {error}")))?;
    }
    let value = usize::midpoint(run.value_size.min_bytes(), run.value_size.max_bytes());
    let records = run.num as f64;
    quantity::check_data(records, (run.key_size_bytes + value) as f64)?;
    let operations = OperationProfile::of_mix(&mix, records)?;
    let world = Scenario {
        records,
        key_bytes: run.key_size_bytes as f64,
        record_bytes: (run.key_size_bytes + value).max(1) as f64,
        skew: operations.skew,
        inserts: operations.inserts,
        deletes: operations.deletes,
        writes: operations.shares.writes > 0.0,
        machine: MachineModel::default(),
        seed: run.seed,
    };
    Ok(SimulatedWork { design, operations, world })
}

impl SimulatedWork {
    /// Simulates the experiment and returns its row, with the field names of `terrane bench`.
    fn run(&self) -> Result<Value> {
        let played = predict::costs(&self.design, &self.world)
            .ok_or_else(|| anyhow!("writers of {} stall forever", self.design))?;
        let costs: DesignCosts = played.costs;
        let is_written = self.world.writes;
        let rate = is_written.then(|| predict::greatest_rate(&self.design, &self.world, &played));
        let thousandths = |value: f64| (value * 1e3).round() / 1e3;
        Ok(json!({
            "workload": "simulated",
            "write_amplification": is_written.then(|| thousandths(costs.written)),
            "read_amplification": thousandths(costs.lookup_blocks(&self.operations.shares)),
            "found_blocks": thousandths(costs.found_blocks),
            "missing_blocks": (costs.missing_blocks * 1e6).round() / 1e6,
            "space_amplification": thousandths(costs.space),
            "sorted_runs": thousandths(costs.runs),
            "writes_per_second_max": rate.map(f64::round),
        }))
    }
}
