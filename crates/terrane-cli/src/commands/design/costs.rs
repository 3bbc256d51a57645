//! The costs of a design for a number of records, computed with the cost model.

use std::io::{self, Write};

use clap::Args;
use serde::Serialize;
use terrane::Design;
use terrane_policy::cost::{CostEstimate, DataProfile, LevelCosts, costs};

use crate::table::{Align, lines, table};
use terrane_lab::input::quantity::{RECORD_BYTES_MAX, RECORDS_MAX, bytes_in, check_data, count_in};
use terrane_lab::output::human;

/// The number of entries in the scan whose cost is printed.
const SCAN_ENTRIES: f64 = 100.0;

/// The data that costs are computed for.
#[derive(Debug, Clone, Args)]
pub(super) struct CostArgs {
    /// Print the modelled costs of writing this many records in random order and reading them;
    /// nothing is run
    #[arg(long, value_name = "COUNT", value_parser = count_in::<u64>(1..=RECORDS_MAX))]
    records: Option<u64>,

    /// Bytes of a record: its key and value
    #[arg(long, value_name = "BYTES", default_value = "100", requires = "records")]
    #[arg(value_parser = bytes_in::<u64>(1..=RECORD_BYTES_MAX))]
    record_size: u64,
}

impl CostArgs {
    /// Rejects impossible amounts of data.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        self.records.map_or(Ok(()), |records| check_data(records as f64, self.record_size as f64))
    }

    /// Returns the costs, if requested; `None` for designs without levels, which have no cost model.
    pub(super) fn costs(&self, design: &Design) -> Option<CostEstimate> {
        if design.strategy.size_tiered().is_some() {
            return None;
        }
        let data = DataProfile::new(self.records? as f64, self.record_size as f64);
        Some(costs(design, &data))
    }

    /// Prints the costs of a design, if requested.
    pub(super) fn write(&self, out: &mut impl Write, design: &Design) -> io::Result<()> {
        if self.records.is_some() && design.strategy.size_tiered().is_some() {
            return writeln!(
                out,
                "\nno cost model for a design without levels; try `terrane simulate`"
            );
        }
        let (Some(records), Some(costs)) = (self.records, self.costs(design)) else {
            return Ok(());
        };
        let size = human::bytes(self.record_size);
        writeln!(out, "\n{} of {size}, by the model", human::counted(records, "record"))?;
        write_levels(out, &costs.levels)?;
        let number = human::number;
        let bytes = |bytes: f64| human::bytes(bytes as u64);
        let files = if costs.value_files.is_some() { " and value files" } else { "" };
        let rows = [
            (
                "a byte written",
                format!("{} bytes to tables{files}", number(costs.write_amplification)),
            ),
            ("a missing key", blocks(costs.absent_lookup_blocks)),
            ("an existing key", blocks(costs.present_lookup_blocks)),
            ("the start of a scan", blocks(costs.seek_blocks)),
            ("a scan of 100 entries", blocks(costs.scan_blocks(SCAN_ENTRIES))),
            (
                "filters, indexes",
                format!("{}, {}", bytes(costs.filter_bytes), bytes(costs.index_bytes)),
            ),
            (
                "tables",
                format!(
                    "{}; at most {} times the live data, and {} more during a compaction",
                    bytes(costs.table_bytes),
                    number(costs.space_amplification_max),
                    bytes(costs.compaction_bytes_max)
                ),
            ),
        ];
        rows.iter().try_for_each(|(what, cost)| writeln!(out, "  {what:<24} {cost}"))?;
        let Some(files) = costs.value_files else { return Ok(()) };
        let rows = [
            (
                "value files",
                format!(
                    "{}, and {} times the live values under overwrites in random order",
                    bytes(costs.value_bytes),
                    number(files.space)
                ),
            ),
            ("a byte overwritten", format!("{} bytes to value files", number(files.written))),
            (
                "a value",
                format!(
                    "{} read for each existing key and entry of a scan",
                    number(costs.value_reads)
                ),
            ),
        ];
        rows.iter().try_for_each(|(what, cost)| writeln!(out, "  {what:<24} {cost}"))
    }
}

fn blocks(count: f64) -> String {
    format!("{} blocks read", human::number(count))
}

fn write_levels(out: &mut impl Write, levels: &[LevelCosts]) -> io::Result<()> {
    let mut table = table(&[
        ("level", Align::Left),
        ("size", Align::Right),
        ("runs", Align::Right),
        ("arriving", Align::Right),
        ("rewritten", Align::Right),
        ("filter false positives", Align::Right),
    ]);
    for level in levels {
        table.add_row([
            format!("level {}", level.level),
            human::bytes(level.bytes as u64),
            human::number(level.runs),
            human::bytes(level.arrived_bytes as u64),
            human::bytes(level.written_bytes as u64),
            format!("{} %", human::number(level.false_positive_rate * 100.0)),
        ]);
    }
    lines(&table).into_iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// The costs of a design as JSON.
#[derive(Serialize)]
pub(super) struct JsonCosts {
    write_amplification: f64,
    runs: f64,
    absent_lookup_blocks: f64,
    present_lookup_blocks: f64,
    seek_blocks: f64,
    scan_entry_blocks: f64,
    filter_bytes: f64,
    index_bytes: f64,
    table_bytes: f64,
    value_bytes: f64,
    value_reads: f64,
    overwrite_value_amplification: Option<f64>,
    overwrite_value_space: Option<f64>,
    space_amplification_max: f64,
    compaction_bytes_max: f64,
}

impl From<CostEstimate> for JsonCosts {
    fn from(costs: CostEstimate) -> Self {
        Self {
            write_amplification: costs.write_amplification,
            runs: costs.runs,
            absent_lookup_blocks: costs.absent_lookup_blocks,
            present_lookup_blocks: costs.present_lookup_blocks,
            seek_blocks: costs.seek_blocks,
            scan_entry_blocks: costs.scan_entry_blocks,
            filter_bytes: costs.filter_bytes,
            index_bytes: costs.index_bytes,
            table_bytes: costs.table_bytes,
            value_bytes: costs.value_bytes,
            value_reads: costs.value_reads,
            overwrite_value_amplification: costs.value_files.map(|files| files.written),
            overwrite_value_space: costs.value_files.map(|files| files.space),
            space_amplification_max: costs.space_amplification_max,
            compaction_bytes_max: costs.compaction_bytes_max,
        }
    }
}
