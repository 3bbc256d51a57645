//! The state of a script: a database in memory, its clock, its snapshots.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use terrane::storage::{CrashPoint, FaultStorage, MemoryStorage, Storage};
use terrane::{Background, Db, Error, Keyspace, KeyspaceOptions, ManualClock, Options, Snapshot};
use terrane_testkit::datadriven::Case;

/// Arguments of `open` that are not options of the engine.
const OWN_ARGUMENTS: &[&str] = &["dir"];

pub(crate) struct Session {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) memory: MemoryStorage,
    pub(crate) faults: FaultStorage,
    pub(crate) snapshots: BTreeMap<String, Snapshot>,
    /// What `points` listed.
    pub(crate) points: Vec<CrashPoint>,
    /// The last event that an answer showed.
    pub(crate) shown_event: u64,
    /// The last manifest version that an answer showed.
    pub(crate) shown_edit: u64,
    pub(crate) dir: String,
    options: Options,
    db: Option<Db>,
}

impl Session {
    pub(crate) fn new() -> Self {
        let memory = MemoryStorage::new(1);
        Self {
            clock: Arc::new(ManualClock::new(1_000_000)),
            faults: FaultStorage::new(Arc::new(memory.clone())),
            memory,
            snapshots: BTreeMap::new(),
            points: Vec::new(),
            shown_event: 0,
            shown_edit: 0,
            dir: "db".into(),
            options: Options::new(),
            db: None,
        }
    }

    /// Opens the database with the options of the case. Options that the case leaves out have their
    /// defaults or, for an existing database, their stored values.
    pub(crate) fn open(&mut self, case: &Case) -> Result<(), Error> {
        let mut options = Options::new();
        options.set("memory_budget", "16MiB")?;
        options.set("log_segment_bytes", "64KiB")?;
        for (name, value) in &case.arguments {
            if !OWN_ARGUMENTS.contains(&name.as_str()) {
                options.set(name, value)?;
            }
        }
        self.dir = case.argument("dir").unwrap_or("db").to_owned();
        self.options = options;
        self.reopen()
    }

    /// Opens the database with the options of the last `open`.
    pub(crate) fn reopen(&mut self) -> Result<(), Error> {
        let options = self.options.clone().background(Background::Inline);
        let options = options.storage(Arc::new(self.faults.clone()));
        self.shown_event = 0;
        self.db = Some(options.clock(Arc::clone(&self.clock) as _).open(&self.dir)?);
        Ok(())
    }

    pub(crate) fn db(&self) -> &Db {
        self.db.as_ref().expect("the database is open")
    }

    pub(crate) fn close(&mut self) -> Result<(), Error> {
        self.snapshots.clear();
        self.db.take().expect("the database is open").close()
    }

    /// Replaces all files by the files of the image, as after a crash.
    pub(crate) fn replace_files(&mut self, image: MemoryStorage) {
        self.snapshots.clear();
        self.memory = image;
        self.faults = FaultStorage::new(Arc::new(self.memory.clone()));
        self.db = None;
    }

    pub(crate) fn keyspace(&self, name: Option<&str>) -> Keyspace {
        let name = name.unwrap_or("default");
        assert!(self.db().keyspaces().iter().any(|known| known == name), "no keyspace {name}");
        self.db().keyspace(name, KeyspaceOptions::new()).unwrap()
    }

    pub(crate) fn snapshot(&self, case: &Case) -> Option<&Snapshot> {
        let name = case.argument("snapshot")?;
        Some(self.snapshots.get(name).unwrap_or_else(|| panic!("no snapshot {name}")))
    }

    /// Returns the names of the files of a directory, without the lock file.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = self.memory.list(Path::new(&self.dir)).unwrap();
        names.into_iter().filter(|name| name != "LOCK").collect()
    }

    /// Copies the files to a directory on disk, where `inspect` finds them.
    pub(crate) fn on_disk(&self) -> tempfile::TempDir {
        let target = tempfile::tempdir().unwrap();
        for name in self.names() {
            let bytes = self.memory.read(&Path::new(&self.dir).join(&name)).unwrap();
            std::fs::write(target.path().join(name), bytes).unwrap();
        }
        target
    }
}
