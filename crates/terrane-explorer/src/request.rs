//! The input of a simulation.

use serde::{Deserialize, Deserializer};
use terrane_policy::ParseError;
use terrane_sim::{
    Arrival, InitialTree, MachineModel, ReadLoad, SimulatedTree, SimulationSetup, Skew, WriteLoad,
    WriteMix, initial_tree, tree_of_runs,
};

use crate::design;

/// The most records. Larger numbers would lose single records to rounding.
const RECORDS_MAX: f64 = 1e15;

/// From this number of flushes on, an automatic start is a settled tree: to simulate its load would take seconds.
const LOADED_FLUSHES_MAX: f64 = 400.0;

/// The longest time, in seconds.
const SECONDS_MAX: f64 = 3.6e8;

/// The most levels and runs of a tree that is given.
const LEVELS_MAX: usize = 64;
const RUNS_MAX: usize = 4096;

/// The most windows.
const WINDOWS_MAX: f64 = 10_000.0;

/// A simulation: a design, a workload, a machine, and how long it runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SimulationRequest {
    /// The text of a design.
    pub(crate) design: String,
    pub(crate) workload: Workload,
    pub(crate) machine: Machine,
    /// `empty`, `loaded`, `settled` or `auto`.
    #[serde(deserialize_with = "parsed")]
    pub(crate) start: InitialTree,
    /// The entries of the runs of each level, newest first, from level 0 on; `null` for `start`.
    #[serde(default)]
    pub(crate) runs: Option<Vec<Vec<f64>>>,
    /// The seed of a settled tree.
    pub(crate) seed: u64,
    /// Virtual time, in seconds.
    pub(crate) seconds: f64,
    /// The number of windows.
    pub(crate) windows: f64,
    /// The most tables; larger trees get larger tables.
    pub(crate) tables_max: usize,
    /// The most tables and events of the trace.
    pub(crate) trace_max: usize,
}

/// The operations, as shares of all operations, and their data.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Workload {
    records: f64,
    key_bytes: f64,
    record_bytes: f64,
    /// `uniform` or `zipf(0.99)`.
    #[serde(deserialize_with = "parsed")]
    skew: Skew,
    /// `closed`, `constant(WRITES)` or `burst(WRITES,SECONDS,WRITES,SECONDS)`.
    #[serde(deserialize_with = "parsed")]
    arrival: Arrival,
    writers: u32,
    update: f64,
    insert: f64,
    delete: f64,
    get: f64,
    missing: f64,
    scan: f64,
    scan_entries: f64,
    /// The share of the blocks of reads that come from the device.
    cold: f64,
    /// How long values of updates and inserts live, in seconds; `null` if they never expire.
    ttl_seconds: Option<f64>,
}

/// A machine; absent values are those of the model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Machine {
    /// The bytes a second that flushes and merges may write.
    budget: Option<f64>,
    /// Merges at a time.
    slots: usize,
    device_bytes_per_second: Option<f64>,
    write_seconds: Option<f64>,
    flush_seconds: Option<f64>,
    merge_seconds: Option<f64>,
    request_seconds: Option<f64>,
    #[serde(default)]
    request_bytes: Option<f64>,
    /// Requests at a time.
    #[serde(default)]
    concurrency: Option<u32>,
    /// Bytes of an entry in addition to key and value.
    #[serde(default)]
    memtable_entry_bytes: Option<f64>,
    #[serde(default)]
    table_entry_bytes: Option<f64>,
    /// Bytes of a tombstone in addition to its key; may be negative.
    #[serde(default)]
    table_tombstone_bytes: Option<f64>,
}

/// Reads a value in its text form.
fn parsed<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: std::str::FromStr<Err = ParseError>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

fn check(what: &str, value: f64, least: f64, most: f64) -> Result<f64, String> {
    match (least..=most).contains(&value) {
        true => Ok(value),
        false => Err(format!("{what} is {value}, but must be from {least} to {most}")),
    }
}

impl SimulationRequest {
    /// Returns the tree that a simulation begins with, and whether it is empty.
    pub(crate) fn tree(&self, setup: &SimulationSetup) -> Result<(SimulatedTree, bool), String> {
        let Some(runs) = &self.runs else {
            let start = self.start(setup);
            return Ok((initial_tree(setup, start, self.seed), start == InitialTree::Empty));
        };
        if runs.len() > LEVELS_MAX || runs.iter().map(Vec::len).sum::<usize>() > RUNS_MAX {
            return Err(format!(
                "a tree to start from has at most {LEVELS_MAX} levels and {RUNS_MAX} runs"
            ));
        }
        for entries in runs.iter().flatten() {
            check("the number of entries of a run", *entries, 1.0, RECORDS_MAX)?;
        }
        Ok((tree_of_runs(setup, runs), false))
    }

    /// Returns the tree to start from if it is not given.
    fn start(&self, setup: &SimulationSetup) -> InitialTree {
        let bytes = setup.workload.records * setup.workload.record_bytes;
        let flushes = bytes / setup.design.buffer_bytes.max(1) as f64;
        match self.start {
            InitialTree::Auto if flushes > LOADED_FLUSHES_MAX => InitialTree::Settled,
            start => start,
        }
    }

    /// Returns the setup of the simulation.
    pub(crate) fn setup(&self) -> Result<SimulationSetup, String> {
        check("the time in seconds", self.seconds, 0.001, SECONDS_MAX)?;
        check("the number of windows", self.windows, 1.0, WINDOWS_MAX)?;
        let design = design::parse(&self.design)?;
        let mut setup = SimulationSetup::new(design, self.workload.load()?, self.machine.model()?);
        setup.window_seconds = self.seconds / self.windows;
        setup.tables_max = self.tables_max.max(1);
        setup.trace_max = self.trace_max;
        Ok(setup)
    }
}

impl Workload {
    fn load(&self) -> Result<WriteLoad, String> {
        let shares = [self.update, self.insert, self.delete, self.get, self.missing, self.scan];
        shares.iter().try_for_each(|share| check("a share", *share, 0.0, 1e6).map(drop))?;
        let writes = self.update + self.insert + self.delete;
        if writes <= 0.0 {
            return Err("a simulation needs updates, inserts or deletes".to_owned());
        }
        let record_bytes = check("the size of a record", self.record_bytes, 1.0, 1e9)?;
        let ttl = self.ttl_seconds.map(|ttl| check("the time to live", ttl, 0.001, 1e12));
        let ttl = ttl.transpose()?;
        Ok(WriteLoad {
            records: check("the number of records", self.records, 1.0, RECORDS_MAX)?.round(),
            key_bytes: check("the size of a key", self.key_bytes, 1.0, 1e6)?.min(record_bytes),
            record_bytes,
            skew: self.skew,
            arrival: self.arrival,
            writers: self.writers.clamp(1, 4096),
            mix: WriteMix {
                inserts: self.insert / writes,
                deletes: self.delete / writes,
                deleted_return: false,
                expiring: if ttl.is_some() { 1.0 } else { 0.0 },
                ttl_seconds: ttl.unwrap_or(f64::INFINITY),
                ..WriteMix::default()
            },
            reads: ReadLoad {
                gets: self.get / writes,
                missing: self.missing / writes,
                scans: self.scan / writes,
                scan_entries: check("the entries of a scan", self.scan_entries, 0.0, 1e9)?,
                cold: check("the share of cold blocks", self.cold, 0.0, 1.0)?,
            },
        })
    }
}

impl Machine {
    fn model(&self) -> Result<MachineModel, String> {
        let mut machine = MachineModel::default();
        let rate = |what: &str, rate: Option<f64>| {
            rate.map(|rate| check(what, rate, 1.0, 1e15)).transpose()
        };
        machine.budget = rate("the budget", self.budget)?;
        machine.slots = self.slots.clamp(1, 64);
        let device = rate("the rate of the device", self.device_bytes_per_second)?;
        machine.device.bytes_per_second = device.unwrap_or(machine.device.bytes_per_second);
        let costs = &mut machine.costs;
        for (cost, given) in [
            (&mut costs.write_seconds, self.write_seconds),
            (&mut costs.flush_seconds, self.flush_seconds),
            (&mut costs.merge_seconds, self.merge_seconds),
            (&mut machine.device.request_seconds, self.request_seconds),
        ] {
            if let Some(given) = given {
                *cost = check("a time", given, 0.0, 1.0)?;
            }
        }
        machine.costs.write_seconds = machine.costs.write_seconds.max(1e-9);
        let bytes = |what: &str, given: Option<f64>, least: f64, known: &mut f64| {
            if let Some(given) = given {
                *known = check(what, given, least, 1e9)?;
            }
            Ok::<(), String>(())
        };
        let costs = &mut machine.costs;
        bytes("the size of a request", self.request_bytes, 1.0, &mut machine.device.request_bytes)?;
        bytes(
            "the size of an entry",
            self.memtable_entry_bytes,
            0.0,
            &mut costs.memtable_entry_bytes,
        )?;
        bytes("the size of an entry", self.table_entry_bytes, 0.0, &mut costs.table_entry_bytes)?;
        bytes(
            "the size of a tombstone",
            self.table_tombstone_bytes,
            -1e9,
            &mut costs.table_tombstone_bytes,
        )?;
        machine.device.concurrency =
            self.concurrency.unwrap_or(machine.device.concurrency).clamp(1, 4096);
        Ok(machine)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_all_constants_that_are_calibrated() {
        let text = r#"{"budget":1e7,"slots":3,"device_bytes_per_second":1e9,"write_seconds":1e-6,"flush_seconds":2e-6,
            "merge_seconds":3e-6,"request_seconds":4e-6,"request_bytes":5000,"concurrency":6,
            "memtable_entry_bytes":7,"table_entry_bytes":8,"table_tombstone_bytes":-9}"#;
        let machine: Machine = serde_json::from_str(text).unwrap();
        let MachineModel { device, costs, budget, slots, .. } = machine.model().unwrap();
        assert_eq!((budget, slots), (Some(1e7), 3));
        let numbers = [device.bytes_per_second, device.request_seconds, device.request_bytes];
        assert_eq!((numbers, device.concurrency), ([1e9, 4e-6, 5000.0], 6));
        let costs = [
            costs.write_seconds,
            costs.flush_seconds,
            costs.merge_seconds,
            costs.memtable_entry_bytes,
            costs.table_entry_bytes,
            costs.table_tombstone_bytes,
        ];
        assert_eq!(costs, [1e-6, 2e-6, 3e-6, 7.0, 8.0, -9.0]);
        // Those that are absent are the model's.
        let text = r#"{"budget":null,"slots":1,"device_bytes_per_second":null,"write_seconds":null,
            "flush_seconds":null,"merge_seconds":null,"request_seconds":null}"#;
        let machine: Machine = serde_json::from_str(text).unwrap();
        assert_eq!(machine.model().unwrap(), MachineModel { slots: 1, ..MachineModel::default() });
        let bad = text.replace("\"slots\":1", "\"slots\":1,\"table_entry_bytes\":-1");
        let machine: Machine = serde_json::from_str(&bad).unwrap();
        assert!(machine.model().unwrap_err().contains("the size of an entry is -1"));
    }
}
