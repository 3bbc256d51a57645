//! The file of results: a line an experiment, written when it is done.
//!
//! A line is written in one piece and synced, with its key. What a crash leaves of the last line is
//! cut off when the file is opened again; anything else that is no result is an error, for the file
//! may be another one. One sweep writes at a time: the file is locked.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of the file.
const FILE: &str = "results.jsonl";

/// An experiment that is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultLine {
    /// The version of the schema.
    pub schema: u32,
    /// What tells it from all others.
    pub key: String,
    /// The version of the engine.
    pub engine: String,
    /// `engine` or `simulator`.
    pub by: String,
    /// The round, from 1.
    pub round: u32,
    /// The parameters of the experiment.
    pub parameters: BTreeMap<String, String>,
    /// How much there was to do.
    pub operations: u64,
    /// How long it took, loading included.
    pub seconds: f64,
    /// A row for each workload.
    pub results: Vec<Value>,
}

/// The file, open for more.
#[derive(Debug)]
pub struct ResultsFile {
    file: File,
    lines: Vec<ResultLine>,
}

impl ResultsFile {
    /// Opens the file of a directory; both are made if they are not there.
    ///
    /// # Errors
    /// Another sweep is writing, the file holds something else, or it cannot be used.
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

    /// What was done before.
    pub fn lines(&self) -> &[ResultLine] {
        &self.lines
    }

    /// Adds a line, durably.
    pub fn append(&mut self, line: ResultLine) -> Result<()> {
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        self.file.write_all(&text).context("cannot write a result")?;
        self.file.sync_data().context("cannot sync the results")?;
        self.lines.push(line);
        Ok(())
    }
}

/// What there is; nothing if there is no file. Works while a sweep is writing.
pub fn read(dir: &Path) -> Result<Vec<ResultLine>> {
    let path = dir.join(FILE);
    match fs::read(&path) {
        Ok(text) => Ok(parse(&text, &path)?.0),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// The lines, and how many bytes they are: a last one without an end does not count.
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
            by: "engine".into(),
            round: 1,
            parameters: BTreeMap::from([("T".into(), "4".into())]),
            operations: 10,
            seconds: 0.5,
            results: vec![serde_json::json!({"write_amplification": 3.5})],
        }
    }

    #[test]
    fn a_torn_last_line_is_cut_off_wherever_it_was_torn() {
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
    fn one_sweep_writes_at_a_time_and_no_other_file_is_taken_for_results() {
        let dir = tempfile::tempdir().unwrap();
        let first = ResultsFile::open(dir.path()).unwrap();
        assert!(ResultsFile::open(dir.path()).unwrap_err().to_string().contains("another sweep"));
        drop(first);
        fs::write(dir.path().join(FILE), "something else\n").unwrap();
        assert!(ResultsFile::open(dir.path()).unwrap_err().to_string().contains("line 1"));
        assert_eq!(fs::read(dir.path().join(FILE)).unwrap(), b"something else\n");
    }
}
