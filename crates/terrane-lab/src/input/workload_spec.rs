//! Workloads in TOML files: keys, sizes and phases of operations.
//!
//! ```toml
//! keys = 100_000             # loaded before the first phase
//! operations = 300_000       # of all phases together
//! key-size = 16              # bytes
//! value-size = "100..400"    # bytes
//! distribution = "zipf:0.99" # of operations without one
//! threads = 1
//! seed = 7
//!
//! [[phase]]
//! weight = 2                 # twice the operations of the other phase
//! insert = 50
//! update = "10@normal:0.1:0.9"
//!
//! [[phase]]
//! get = 90
//! "scan:16" = 10
//! ```
//!
//! Kinds of operations and their distributions are those of `--mix`.

use std::path::Path;

use anyhow::{Result, anyhow};
use serde::Deserialize;
use terrane_workload::{Distribution, OperationMix, RunOptions, ValueSize, Workload};
use toml::{Table, Value};

use crate::error::usage;
use crate::input::quantity::KEY_BYTES_MAX;
use crate::input::toml_file;

/// A file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WorkloadFile {
    keys: Option<u64>,
    operations: Option<u64>,
    key_size: Option<usize>,
    value_size: Option<Value>,
    compressibility: Option<f64>,
    distribution: Option<String>,
    threads: Option<u32>,
    seed: Option<u64>,

    phase: Vec<Table>,
}

/// Reads the options of a workload from a file.
///
/// # Errors
///
/// If the file cannot be read, or does not describe a workload.
pub fn read(path: &Path) -> Result<RunOptions> {
    let file: WorkloadFile = toml_file::read(path)?;
    let options = options(&file).map_err(|error| usage(format!("{}: {error}", path.display())))?;
    let checked = Workload::Mix.check(&options);
    checked.map_err(|error| usage(format!("{}: {error}", path.display())))?;
    Ok(options)
}

fn options(file: &WorkloadFile) -> Result<RunOptions> {
    let default = RunOptions::default();
    let phases = file.phase.iter().map(phase_text).collect::<Result<Vec<_>>>()?;
    let mix: OperationMix = phases.join(";").parse()?;
    let key_size_bytes = file.key_size.unwrap_or(default.key_size_bytes);
    if key_size_bytes as u64 > KEY_BYTES_MAX {
        return Err(anyhow!("key-size is {key_size_bytes}; at most {KEY_BYTES_MAX} are possible"));
    }
    let value_size: Option<ValueSize> = file
        .value_size
        .as_ref()
        .map(|size| word(size)?.parse().map_err(anyhow::Error::from))
        .transpose()?;
    let distribution: Option<Distribution> =
        file.distribution.as_deref().map(str::parse).transpose()?;
    Ok(RunOptions {
        num: file.keys.unwrap_or(100_000),
        reads: file.operations,
        key_size_bytes,
        value_size: value_size.unwrap_or(default.value_size),
        compressibility: file.compressibility.unwrap_or(default.compressibility),
        key_order: mix.placement(),
        distribution,
        mix,
        threads: file.threads.unwrap_or(1),
        seed: file.seed.unwrap_or(default.seed),
    })
}

/// Returns a phase as in the text form of a mix.
fn phase_text(phase: &Table) -> Result<String> {
    let kinds = phase.iter().filter(|(key, _)| *key != "weight");
    let kinds = kinds.map(|(key, value)| Ok(format!("{key}={}", word(value)?)));
    let text = kinds.collect::<Result<Vec<_>>>()?.join(",");
    match phase.get("weight") {
        Some(weight) => Ok(format!("{text} x{}", word(weight)?)),
        None => Ok(text),
    }
}

fn word(value: &Value) -> Result<String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(_) | Value::Float(_) => Ok(value.to_string()),
        _ => Err(anyhow!("expected a number or a text, found {value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RunOptions> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("workload.toml");
        std::fs::write(&path, text)?;
        read(&path)
    }

    #[test]
    fn files_describe_phases() {
        let options = parse(
            "keys = 1000\noperations = 500\nvalue-size = \"10..20\"\nseed = 7\n\
             [[phase]]\nweight = 2\ninsert = \"50@zipf:1\"\ndelete-missing = 1\n\
             [[phase]]\nget = \"9@beta:2:5\"\n\"scan:0.5%\" = 1\n",
        )
        .unwrap();
        assert_eq!((options.num, options.operations(), options.seed), (1000, 500, 7));
        assert_eq!(
            options.mix.to_string(),
            "delete-missing=1,insert=50@zipf:1 x2; get=9@beta:2:5,scan:0.5%=1"
        );
        assert_eq!(options.key_order, options.mix.placement());
    }

    #[test]
    fn mistakes_are_named() {
        for (text, hint) in [
            ("keys = 5", "missing field `phase`"),
            ("key = 5\n[[phase]]\nget = 1", "unknown field `key`"),
            ("[[phase]]\ngot = 1", "one of insert"),
            ("[[phase]]\nget = true", "expected a number or a text"),
            ("threads = 2\n[[phase]]\n\"delete-range:5\" = 1", "single thread"),
            ("key-size = 9_000_000\n[[phase]]\nget = 1", "key-size"),
            ("value-size = \"x\"\n[[phase]]\nget = 1", "value size"),
        ] {
            let message = format!("{:#}", parse(text).unwrap_err());
            assert!(message.contains(hint) && message.contains("workload.toml"), "{message}");
        }
    }
}
