//! The setting of a measurement: enough to repeat it.

use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::host::machine::Machine;
use crate::host::program;

/// The setting of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The machine and the file system of the databases.
    pub machine: String,
    /// The version of the program.
    pub version: String,
    /// The hash of the program.
    pub program: String,
    /// The commit that the program was built from, with `-dirty` if files differed from it; `None` if
    /// unknown at build time.
    pub commit: Option<String>,
    /// The command, quoted for a shell.
    pub command: String,
    /// When the measurement ended, in UTC.
    pub date: String,
    /// The seed of all random choices.
    pub seed: u64,
    /// The sizes as a share of the paper's, for experiments that reproduce a paper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// Rounds of timed operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<usize>,
    /// A note on the conditions, such as other load on the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Environment {
    /// Describes a run of this process that ends now, with databases in `dir`.
    #[must_use]
    pub fn of_run(dir: &Path, seed: u64) -> Self {
        Self {
            machine: Machine::here(dir).to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            program: program::hash().to_owned(),
            commit: program::commit().map(str::to_owned),
            command: program::command_line(),
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            seed,
            scale: None,
            rounds: None,
            note: None,
        }
    }

    /// Returns the setting as the first paragraphs of a document, in Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let Self { machine, date, command, note, .. } = self;
        let commit = self.commit_or_unknown();
        let note = note.as_ref().map_or(String::new(), |note| format!("\n> {note}\n"));
        format!(
            "Measured on {date} at commit {commit}, on\n{machine}.\n\n```sh\n{command}\n```\n{note}"
        )
    }

    /// Says when and by which program a page is rendered now, which may be long after the measurement.
    #[must_use]
    pub fn rendering() -> String {
        let date = humantime::format_rfc3339_seconds(SystemTime::now());
        let commit = program::commit().unwrap_or("unknown");
        format!("rendered on {date} by version {}, commit {commit}", env!("CARGO_PKG_VERSION"))
    }

    /// Returns the commit, or that it is unknown.
    #[must_use]
    pub fn commit_or_unknown(&self) -> &str {
        self.commit.as_deref().unwrap_or("unknown")
    }
}
