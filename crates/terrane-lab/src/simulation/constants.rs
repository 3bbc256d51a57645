//! A file with the costs of entries and bytes on a machine.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use terrane_sim::{Device, MachineCosts, MachineModel};

use crate::error::usage;
use crate::input::toml_file;

/// A [`MachineModel`] in the units of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConstantsFile {
    device_mb_per_second: f64,
    request_micros: f64,
    request_kib: f64,
    concurrency: u32,
    write_micros: f64,
    flush_micros_per_entry: f64,
    merge_micros_per_entry: f64,
    memtable_bytes_per_entry: f64,
    table_bytes_per_entry: f64,
    /// In addition to the key; may be negative.
    #[serde(default)]
    table_bytes_per_tombstone: f64,
}

/// Reads the constants from a file.
pub fn read(path: &Path) -> Result<MachineModel> {
    let file: ConstantsFile = toml_file::read(path)?;
    let numbers = [
        file.device_mb_per_second,
        file.request_kib,
        file.write_micros,
        f64::from(file.concurrency),
    ];
    let costs = [
        file.request_micros,
        file.flush_micros_per_entry,
        file.merge_micros_per_entry,
        file.memtable_bytes_per_entry,
        file.table_bytes_per_entry,
    ];
    let is_fine = |number: &f64| number.is_finite() && *number >= 0.0;
    if !numbers.iter().all(|number| is_fine(number) && *number > 0.0)
        || !costs.iter().all(is_fine)
        || !file.table_bytes_per_tombstone.is_finite()
    {
        return Err(usage(format!(
            "{}: constants must be positive, and request_micros and the per-entry costs may be zero",
            path.display()
        )));
    }
    Ok(MachineModel {
        device: Device {
            bytes_per_second: file.device_mb_per_second * 1e6,
            request_seconds: file.request_micros / 1e6,
            request_bytes: file.request_kib * 1024.0,
            concurrency: file.concurrency,
        },
        costs: MachineCosts {
            write_seconds: file.write_micros / 1e6,
            flush_seconds: file.flush_micros_per_entry / 1e6,
            merge_seconds: file.merge_micros_per_entry / 1e6,
            memtable_entry_bytes: file.memtable_bytes_per_entry,
            table_entry_bytes: file.table_bytes_per_entry,
            table_tombstone_bytes: file.table_bytes_per_tombstone,
        },
        ..MachineModel::default()
    })
}

/// Returns the contents of a file.
pub fn write(machine: &MachineModel, what: &str) -> Result<String> {
    let round = |number: f64| (number * 1e4).round() / 1e4;
    let MachineModel { device, costs, .. } = machine;
    let file = ConstantsFile {
        device_mb_per_second: round(device.bytes_per_second / 1e6),
        request_micros: round(device.request_seconds * 1e6),
        request_kib: round(device.request_bytes / 1024.0),
        concurrency: device.concurrency,
        write_micros: round(costs.write_seconds * 1e6),
        flush_micros_per_entry: round(costs.flush_seconds * 1e6),
        merge_micros_per_entry: round(costs.merge_seconds * 1e6),
        memtable_bytes_per_entry: round(costs.memtable_entry_bytes),
        table_bytes_per_entry: round(costs.table_entry_bytes),
        table_bytes_per_tombstone: round(costs.table_tombstone_bytes),
    };
    let mut text = String::new();
    writeln!(text, "# {what}")?;
    text.push_str(&toml::to_string(&file)?);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_read_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("here.toml");
        std::fs::write(&path, write(&MachineModel::default(), "defaults").unwrap()).unwrap();
        let read_back = read(&path).unwrap();
        assert_eq!(read_back.device, MachineModel::default().device);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(read_back.costs.merge_seconds, MachineModel::default().costs.merge_seconds));
        for bad in ["", "write_micros = 1", "what = 2"] {
            std::fs::write(&path, bad).unwrap();
            assert!(read(&path).is_err(), "{bad}");
        }
    }
}
