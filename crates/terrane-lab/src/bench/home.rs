//! The directory of the databases of a benchmark.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::plan::{BenchPlan, loads};
use crate::error::usage;
use crate::host::scratch::Scratch;
use crate::input::named_design::NamedDesign;

/// The directory of the databases of a benchmark.
#[derive(Debug)]
pub enum BenchHome {
    /// A directory that is removed when this value is dropped.
    Scratch(Scratch),
    /// A directory that is kept.
    Kept(PathBuf),
    /// A database from an earlier run, which is used and never removed.
    Existing(PathBuf),
}

impl BenchHome {
    /// Chooses the directory: `dir`, or a temporary one. An empty or missing `dir` is removed at
    /// the end unless `keep` is set; a directory with an existing database is kept.
    ///
    /// # Errors
    ///
    /// If `dir` holds a database that the plan cannot use.
    pub fn new(dir: Option<&Path>, plan: &BenchPlan, keep: bool) -> Result<Self> {
        let Some(dir) = dir else {
            return Ok(Self::Scratch(Scratch::temporary("terrane-bench-")?));
        };
        let is_empty = match std::fs::read_dir(dir) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(usage(format!("cannot use {}: {error}", dir.display()))),
        };
        if is_empty {
            let dir = dir.to_owned();
            return Ok(if keep { Self::Kept(dir) } else { Self::Scratch(Scratch::of(dir)) });
        }
        if let Some(load) = plan.workloads.iter().find(|workload| loads(**workload)) {
            return Err(usage(format!(
                "{} is not empty, and {load} needs an empty database; name another directory, or \
                 workloads that read existing data",
                dir.display()
            )));
        }
        if plan.designs.len() > 1 || plan.is_design_given {
            let dir = dir.display();
            return Err(usage(format!(
                "the database in {dir} keeps its design; leave out --design"
            )));
        }
        Ok(Self::Existing(dir.to_owned()))
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        match self {
            Self::Scratch(scratch) => scratch.path(),
            Self::Kept(path) | Self::Existing(path) => path,
        }
    }

    /// Returns true if the database exists already.
    pub(super) fn is_existing(&self) -> bool {
        matches!(self, Self::Existing(_))
    }

    /// Returns true if new databases are kept.
    pub(super) fn is_kept(&self) -> bool {
        matches!(self, Self::Kept(_))
    }

    /// Returns the directory of a design: the whole directory for a single design, else a
    /// subdirectory.
    pub(super) fn dir_of(&self, design: &NamedDesign, plan: &BenchPlan) -> PathBuf {
        let path = self.path();
        if plan.designs.len() > 1 { path.join(&design.slug) } else { path.to_owned() }
    }
}
