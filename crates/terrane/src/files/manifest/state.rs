//! The state of a manifest: all keyspaces with their tables, and the allocated numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_policy::{AddedTable, ShapeEdit};

use super::COUNT_MAX;
use super::edit::Change;
use super::job::JobHistory;
use super::keyspaces::{KeyspaceState, KeyspaceStates};
use crate::base::stats::OperationCounts;
use crate::base::types::{KeyspaceId, Lsn, MAX_SEQ, SeqNo};

/// The state after some edits. Clones share what none of them changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ManifestState {
    pub(crate) database: u64,
    pub(crate) next_table: u64,
    pub(crate) next_run: u64,
    pub(crate) next_keyspace: u32,
    pub(crate) last_seq: SeqNo,
    pub(crate) required_segment: u64,
    /// The log was durable up to this position when the last edit that states it was written.
    pub(crate) log_durable: Lsn,
    /// The earliest position for readers of changes; the largest number if it is not known yet.
    pub(crate) changes_from: Lsn,
    /// The last sequence number of the last ingest; 0 if there was none.
    pub(crate) last_ingest: SeqNo,
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) keyspaces: KeyspaceStates,
    /// Finished compactions, oldest first.
    pub(crate) jobs: Arc<JobHistory>,
    /// The operation history.
    pub(crate) operations: OperationCounts,
}

impl ManifestState {
    /// Applies changes.
    ///
    /// # Errors
    /// The reason why a change does not fit. The state may be partly changed and must be discarded;
    /// a caller that continues after an error applies changes to a clone.
    pub(crate) fn apply(&mut self, changes: &[Change]) -> Result<(), String> {
        // Removals and additions of a tree apply together, so that a table can change its level.
        let mut shapes: BTreeMap<KeyspaceId, ShapeEdit> = BTreeMap::new();
        for change in changes {
            self.apply_one(change, &mut shapes)?;
        }
        for (id, edit) in shapes {
            self.change(id, |keyspace| keyspace.apply(&edit))??;
        }
        if self.next_table.max(self.next_run) > COUNT_MAX || self.last_seq > MAX_SEQ {
            return Err("a table, run or sequence number is out of range".into());
        }
        Ok(())
    }

    fn apply_one(
        &mut self,
        change: &Change,
        shapes: &mut BTreeMap<KeyspaceId, ShapeEdit>,
    ) -> Result<(), String> {
        match change {
            Change::Database(id) => self.database = *id,
            Change::NextTable(next) => self.next_table = self.next_table.max(*next),
            Change::NextRun(next) => self.next_run = self.next_run.max(*next),
            Change::NextKeyspace(next) => self.next_keyspace = self.next_keyspace.max(*next),
            Change::LastSeq(seq) => self.last_seq = self.last_seq.max(*seq),
            Change::RequiredSegment(segment) => self.required_segment = *segment,
            Change::LastIngest(seq) => self.last_ingest = self.last_ingest.max(*seq),
            Change::LogDurable(upto) => self.log_durable = self.log_durable.max(*upto),
            Change::ChangesFrom(from) => self.changes_from = *from,
            Change::Option { name, value } => {
                self.options.insert(name.clone(), value.clone());
            }
            Change::Keyspace { keyspace, name, design } => {
                self.define_keyspace(*keyspace, name, design)?;
            }
            Change::DropKeyspace(keyspace) => {
                if !self.keyspaces.remove(*keyspace) {
                    return Err(missing(*keyspace));
                }
                shapes.remove(keyspace);
            }
            Change::Flushed { keyspace, upto } => {
                self.change(*keyspace, |state| state.flushed = state.flushed.max(*upto))?;
            }
            Change::MergeOperator { keyspace, name } => {
                self.change(*keyspace, |state| state.merge_operator = Some(name.clone()))?;
            }
            Change::CompactionFilter { keyspace, name } => {
                let filter = (!name.is_empty()).then(|| name.clone());
                self.change(*keyspace, |state| state.compaction_filter = filter)?;
            }
            Change::KeyspaceTtl { keyspace, ttl_micros } => {
                self.change(*keyspace, |state| state.ttl_micros = *ttl_micros)?;
            }
            Change::AddTable { keyspace, level, run, table } => {
                let info = &table.info;
                self.next_table = self.next_table.max(info.id.0.saturating_add(1));
                self.next_run = self.next_run.max(run.0.saturating_add(1));
                self.last_seq = self.last_seq.max(info.largest_seq);
                let level = usize::try_from(*level).unwrap_or(usize::MAX);
                if level >= 64 {
                    return Err(format!("table {} is in level {level}", info.id));
                }
                self.change(*keyspace, |state| state.add_table(table.clone()))?;
                let added = AddedTable { level, run: *run, table: info.clone() };
                shapes.entry(*keyspace).or_default().added.push(added);
            }
            Change::ValueFile { keyspace, file } => {
                self.next_table = self.next_table.max(file.name.number.saturating_add(1));
                let id = file.name.id();
                self.change(*keyspace, |state| state.value_files.insert(id, file.clone()))?;
                shapes.entry(*keyspace).or_default().value_files.push(Arc::clone(&file.info));
            }
            Change::RemoveValueFile { keyspace, file } => {
                shapes.entry(*keyspace).or_default().removed_value_files.push(*file);
            }
            Change::Job(job) => Arc::make_mut(&mut self.jobs).add(job.clone()),
            Change::Operations(counts) => self.operations = *counts,
            Change::RemoveTable { keyspace, table } => {
                shapes.entry(*keyspace).or_default().removed.push(*table);
            }
        }
        Ok(())
    }

    /// Returns the largest flushed position of all keyspaces.
    pub(crate) fn flushed_furthest(&self) -> Lsn {
        self.keyspaces.flushed_most().unwrap_or(Lsn(0))
    }

    fn define_keyspace(&mut self, id: KeyspaceId, name: &str, design: &str) -> Result<(), String> {
        self.next_keyspace = self.next_keyspace.max(id.0.saturating_add(1));
        self.keyspaces.define(id, name, design)
    }

    fn change<T>(
        &mut self,
        id: KeyspaceId,
        change: impl FnOnce(&mut KeyspaceState) -> T,
    ) -> Result<T, String> {
        self.keyspaces.change(id, change).ok_or_else(|| missing(id))
    }

    /// Returns the changes that turn an empty state into this one.
    pub(crate) fn snapshot(&self) -> Vec<Change> {
        let mut changes = vec![
            Change::Database(self.database),
            Change::NextTable(self.next_table),
            Change::NextRun(self.next_run),
            Change::NextKeyspace(self.next_keyspace),
            Change::LastSeq(self.last_seq),
            Change::RequiredSegment(self.required_segment),
        ];
        if self.log_durable > Lsn(0) {
            changes.push(Change::LogDurable(self.log_durable));
        }
        if self.changes_from > Lsn(0) {
            changes.push(Change::ChangesFrom(self.changes_from));
        }
        if self.last_ingest > 0 {
            changes.push(Change::LastIngest(self.last_ingest));
        }
        changes.extend(
            self.options
                .iter()
                .map(|(name, value)| Change::Option { name: name.clone(), value: value.clone() }),
        );
        for (&keyspace, state) in self.keyspaces.iter() {
            // A reader that applies two designs in a row takes the first one as the previous
            // design.
            for design in state.design_before.iter().chain([&state.design]) {
                let (name, design) = (state.name.clone(), design.to_string());
                changes.push(Change::Keyspace { keyspace, name, design });
            }
            changes.push(Change::Flushed { keyspace, upto: state.flushed });
            if let Some(name) = state.merge_operator.clone() {
                changes.push(Change::MergeOperator { keyspace, name });
            }
            if let Some(name) = state.compaction_filter.clone() {
                changes.push(Change::CompactionFilter { keyspace, name });
            }
            if state.ttl_micros > 0 {
                changes.push(Change::KeyspaceTtl { keyspace, ttl_micros: state.ttl_micros });
            }
            let files = state.value_files.values().cloned();
            changes.extend(files.map(|file| Change::ValueFile { keyspace, file }));
            for place in state.shape.places() {
                let Some(table) = state.tables.get(&place.table.id) else { continue };
                let level = u32::try_from(place.level).unwrap_or(u32::MAX);
                let table = table.clone();
                changes.push(Change::AddTable { keyspace, level, run: place.run, table });
            }
        }
        changes.extend(self.jobs.iter().cloned().map(Change::Job));
        if self.operations.total() > 0 {
            changes.push(Change::Operations(self.operations));
        }
        changes
    }

    /// Returns the size of all tables, in bytes.
    pub(crate) fn table_bytes(&self) -> u64 {
        self.keyspaces.table_bytes()
    }

    /// Returns the oldest log position that some keyspace still needs; `end` if the database has no
    /// keyspaces.
    pub(crate) fn log_needed_from(&self, end: Lsn) -> Lsn {
        self.keyspaces.flushed_least().unwrap_or(end)
    }
}

fn missing(id: KeyspaceId) -> String {
    format!("keyspace {id} does not exist")
}

#[cfg(test)]
mod tests {
    use terrane_policy::{Design, KeyRange, RunId, TableId};

    use super::super::edit::tests::table;
    use super::*;

    fn example() -> ManifestState {
        let mut state = ManifestState::default();
        let keyspace = KeyspaceId(0);
        let range = |a: &str, b: &str| KeyRange::inclusive(a.as_bytes(), b.as_bytes());
        let design = Design::new(terrane_policy::Eagerness::Tiering).to_string();
        let name = "default".to_owned();
        let add = |level, run, number, range| Change::AddTable {
            keyspace,
            level,
            run: RunId(run),
            table: table(number, range),
        };
        state
            .apply(&[
                Change::Database(77),
                Change::Keyspace { keyspace, name, design },
                Change::Option { name: "durability".into(), value: "sync".into() },
                Change::RequiredSegment(3),
                Change::LogDurable(Lsn(600)),
                Change::ChangesFrom(Lsn(300)),
                Change::LastIngest(8),
                add(0, 4, 11, range("a", "f")),
                add(1, 2, 5, range("a", "c")),
                add(1, 2, 6, range("d", "z")),
                Change::Flushed { keyspace, upto: Lsn(500) },
            ])
            .unwrap();
        state
    }

    #[test]
    fn snapshots_make_the_same_state() {
        let state = example();
        let mut again = ManifestState::default();
        again.apply(&state.snapshot()).unwrap();
        assert_eq!(again, state);
        assert_eq!((state.next_table, state.next_run, state.next_keyspace), (12, 5, 1));
        assert_eq!((state.last_seq, state.log_needed_from(Lsn(9))), (9, Lsn(500)));
    }

    #[test]
    fn the_design_before_is_kept_by_edits_and_snapshots() {
        let mut state = example();
        let change = |design: &str| Change::Keyspace {
            keyspace: KeyspaceId(0),
            name: "default".into(),
            design: design.into(),
        };
        let before = |state: &ManifestState| {
            let before = state.keyspaces[&KeyspaceId(0)].design_before.as_ref();
            before.map(|design| design.strategy.eagerness.to_string())
        };
        assert_eq!(before(&state), None);
        state.apply(&[change("leveling")]).unwrap();
        assert_eq!(before(&state).as_deref(), Some("tiering"));
        // Setting the same design again is not a change.
        state.apply(&[change("leveling")]).unwrap();
        assert_eq!(before(&state).as_deref(), Some("tiering"));
        let mut again = ManifestState::default();
        again.apply(&state.snapshot()).unwrap();
        assert_eq!(again, state);
    }

    #[test]
    fn tables_move_within_one_edit() {
        let mut state = example();
        let moved = state.keyspaces[&KeyspaceId(0)].tables[&TableId(5)].clone();
        let keyspace = KeyspaceId(0);
        state
            .apply(&[
                Change::RemoveTable { keyspace, table: TableId(5) },
                Change::AddTable { keyspace, level: 2, run: RunId(9), table: moved },
                Change::RemoveTable { keyspace, table: TableId(11) },
            ])
            .unwrap();
        let keyspace = &state.keyspaces[&keyspace];
        assert_eq!(keyspace.tables.keys().map(|id| id.0).collect::<Vec<_>>(), [5, 6]);
        assert_eq!(keyspace.shape.level(2).table_count(), 1);
    }

    #[test]
    fn edits_that_do_not_fit_are_refused() {
        let state = example();
        let keyspace = KeyspaceId(0);
        let nowhere = KeyspaceId(5);
        for broken in [
            Change::RemoveTable { keyspace, table: TableId(99) },
            Change::RemoveTable { keyspace: nowhere, table: TableId(5) },
            Change::Flushed { keyspace: nowhere, upto: Lsn(1) },
            Change::DropKeyspace(nowhere),
            Change::Keyspace {
                keyspace: nowhere,
                name: "default".into(),
                design: "tiering".into(),
            },
            Change::Keyspace { keyspace: nowhere, name: "x".into(), design: "sideways".into() },
            Change::AddTable {
                keyspace,
                level: 1,
                run: RunId(2),
                table: table(20, KeyRange::inclusive(b"c", b"d")),
            },
        ] {
            let mut changed = state.clone();
            assert!(changed.apply(&[Change::LastSeq(1000), broken]).is_err());
        }
    }

    /// Each edit used to copy all keyspaces with all tables, so the cost of an edit grew with the
    /// database, and opening it took quadratic time.
    #[test]
    fn an_edit_copies_the_keyspaces_that_it_changes_and_no_other() {
        let mut state = example();
        let [first, second] = [0, 1].map(KeyspaceId);
        let design = state.keyspaces[&first].design.to_string();
        state.apply(&[Change::Keyspace { keyspace: second, name: "b".into(), design }]).unwrap();
        let mut next = state.clone();
        next.apply(&[Change::Flushed { keyspace: second, upto: Lsn(900) }]).unwrap();
        assert!(Arc::ptr_eq(&state.keyspaces[&first], &next.keyspaces[&first]));
        assert!(Arc::ptr_eq(&state.jobs, &next.jobs));
        assert_eq!(
            (state.keyspaces[&second].flushed, next.keyspaces[&second].flushed),
            (Lsn(0), Lsn(900))
        );
    }
}
