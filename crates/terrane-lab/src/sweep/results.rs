//! The results file: one line per experiment, written when it completes.
//!
//! Each line contains the key of its experiment; it is written with one call and synced. Opening the
//! file truncates a last line that a crash has torn. Any other invalid line is an error, because the
//! file may not be a results file. The file is locked, so one sweep writes at a time.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::host::Environment;

/// The name of the file.
const FILE: &str = "results.jsonl";

/// The result of a completed experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultLine {
    /// The version of the schema.
    pub schema: u32,
    /// The key of the experiment; experiments that differ in parameters, round or program have
    /// different keys, so that changed code is measured again.
    pub key: String,
    /// The version of the engine.
    pub engine: String,
    /// The hash of the program; empty in results of earlier versions.
    #[serde(default)]
    pub program: String,
    /// `engine` or `simulator`.
    pub by: String,
    /// The round, from 1.
    pub round: u32,
    /// The parameters of the experiment.
    pub parameters: BTreeMap<String, String>,
    /// The number of operations.
    pub operations: u64,
    /// The duration in seconds, loading included.
    pub seconds: f64,
    /// A row for each workload.
    pub results: Vec<Value>,
    /// The setting of the measurement; absent in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
}

/// A results file, open for appending.
#[derive(Debug)]
pub struct ResultsFile {
    file: File,
    lines: Vec<ResultLine>,
}

impl ResultsFile {
    /// Opens the results file in `dir`, and creates both if they do not exist.
    ///
    /// # Errors
    /// Fails if another sweep is writing, the file is not a results file, or an I/O error occurs.
    pub fn open(dir: &Path) -> Result<Self> {
        let path = dir.join(FILE);
        let open = || {
            fs::create_dir_all(dir)?;
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)
        };
        let mut file = open().with_context(|| format!("cannot open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(anyhow!("another sweep is writing to {}", path.display()));
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).with_context(|| format!("cannot read {}", path.display()))?;
        let (lines, whole) = parse(&text, &path)?;
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::Start(whole as u64))?;
        Ok(Self { file, lines })
    }

    /// Returns the completed experiments.
    pub fn lines(&self) -> &[ResultLine] {
        &self.lines
    }

    /// Appends a line and syncs it.
    pub fn append(&mut self, line: ResultLine) -> Result<()> {
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        self.file.write_all(&text).context("cannot write a result")?;
        self.file.sync_data().context("cannot sync the results")?;
        self.lines.push(line);
        Ok(())
    }
}

/// Reads the results in `dir`; empty without a results file. A sweep may be writing concurrently.
pub fn read(dir: &Path) -> Result<Vec<ResultLine>> {
    let path = dir.join(FILE);
    match fs::read(&path) {
        Ok(text) => Ok(parse(&text, &path)?.0),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Parses complete lines. Returns them with their total length in bytes, without a torn last line.
fn parse(text: &[u8], path: &Path) -> Result<(Vec<ResultLine>, usize)> {
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let mut lines = Vec::new();
    for (number, line) in text[..whole].split_inclusive(|byte| *byte == b'\n').enumerate() {
        let parsed = serde_json::from_slice(line);
        lines.push(parsed.with_context(|| {
            format!("line {} of {} is not a result of a sweep", number + 1, path.display())
        })?);
    }
    Ok((lines, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(key: &str) -> ResultLine {
        ResultLine {
            schema: 1,
            key: key.into(),
            engine: "0".into(),
            program: String::new(),
            by: "engine".into(),
            round: 1,
            parameters: BTreeMap::from([("T".into(), "4".into())]),
            operations: 10,
            seconds: 0.5,
            results: vec![serde_json::json!({"write_amplification": 3.5})],
            environment: None,
        }
    }

    #[test]
    fn a_torn_last_line_is_truncated_at_any_cut() {
        let dir = tempfile::tempdir().unwrap();
        let mut results = ResultsFile::open(dir.path()).unwrap();
        results.append(line("a")).unwrap();
        let one = fs::read(dir.path().join(FILE)).unwrap();
        results.append(line("b")).unwrap();
        let both = fs::read(dir.path().join(FILE)).unwrap();
        drop(results);
        for cut in one.len()..both.len() {
            fs::write(dir.path().join(FILE), &both[..cut]).unwrap();
            let mut results = ResultsFile::open(dir.path()).unwrap();
            assert_eq!(results.lines(), [line("a")], "{cut}");
            results.append(line("c")).unwrap();
            drop(results);
            assert_eq!(read(dir.path()).unwrap(), [line("a"), line("c")], "{cut}");
        }
    }

    #[test]
    fn only_one_sweep_writes_and_other_files_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let first = ResultsFile::open(dir.path()).unwrap();
        assert!(ResultsFile::open(dir.path()).unwrap_err().to_string().contains("another sweep"));
        drop(first);
        fs::write(dir.path().join(FILE), "something else\n").unwrap();
        assert!(ResultsFile::open(dir.path()).unwrap_err().to_string().contains("line 1"));
        assert_eq!(fs::read(dir.path().join(FILE)).unwrap(), b"something else\n");
    }
}
