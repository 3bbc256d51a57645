//! The output of a merge: the union of its inputs, cut into tables as in the engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_policy::{Compaction, TableId, TableInfo};

use super::values::ValueCounts;
use super::{END, SimulatedTree, TableContent, bounds, range, width};
use crate::keys::Content;

/// The maximum overlap of a table with the level below it, in tables of its size (LevelDB's grandparent
/// limit, which the engine also uses).
const GRANDPARENTS_MAX: f64 = 10.0;

/// A range of keys with the same content throughout.
#[derive(Debug, Clone)]
pub(super) struct ContentRange {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) content: Content,
    /// The value files of the range's values, if they are separated.
    pub(super) values: ValueCounts,
    /// The number of separated values that have no file yet, by group of keys.
    pub(super) fresh: Vec<f64>,
}

/// A table or a memtable as a source of a merge.
#[derive(Clone, Copy)]
struct Source<'a> {
    start: u64,
    end: u64,
    /// The position in the order of age; smaller is newer.
    age: usize,
    content: &'a Content,
    /// `None` for a memtable, whose values have no file yet.
    table: Option<&'a TableContent>,
}

/// The output table under construction.
#[derive(Default)]
struct OpenTable {
    parts: Vec<(Content, f64)>,
    start: u64,
    end: u64,
    bytes: f64,
    grandparent_bytes: f64,
    values: ValueCounts,
    fresh: Vec<f64>,
}

impl SimulatedTree {
    /// Returns the output of a merge of overlapping tables into `level` that begins at time `now`, in
    /// seconds.
    pub(super) fn merged(
        &self,
        job: &Compaction,
        tables: &[Arc<TableInfo>],
        level: usize,
        now: f64,
    ) -> Vec<ContentRange> {
        let newest = self.shape.level(level + 1).runs.first();
        let grandparents: Vec<(u64, f64)> = newest
            .map(|run| &run.tables[..])
            .unwrap_or_default()
            .iter()
            .map(|table| (bounds(&table.range).1, table.size_bytes as f64))
            .collect();
        self.cut(self.union(job, tables, None, now), &grandparents)
    }

    /// Returns the union of a job's tables and of a memtable that covers all keys. Values that have
    /// expired at `now` are tombstones.
    pub(super) fn union(
        &self,
        job: &Compaction,
        tables: &[Arc<TableInfo>],
        memtable: Option<&Content>,
        now: f64,
    ) -> Vec<ContentRange> {
        let mut cuts: Vec<u64> = Vec::new();
        let mut sources: Vec<Source<'_>> = Vec::new();
        let ages: BTreeMap<TableId, usize> = job
            .inputs
            .iter()
            .enumerate()
            .flat_map(|(age, input)| input.tables.iter().map(move |table| (table.id, age)))
            .collect();
        for table in tables {
            let (start, end) = bounds(&table.range);
            cuts.extend([start, end]);
            let Some(content) = self.contents.get(&table.id) else { continue };
            // The memtable is newer than all tables.
            let age = ages.get(&table.id).map_or(usize::MAX, |age| age + 1);
            let table = Some(content);
            sources.push(Source { start, end, age, content: &content.entries, table });
        }
        if let Some(content) = memtable {
            cuts.extend([0, END]);
            sources.push(Source { start: 0, end: END, age: 0, content, table: None });
        }
        cuts.sort_unstable();
        cuts.dedup();
        sources.sort_by_key(|source| source.start);
        let mut pieces: Vec<ContentRange> = Vec::new();
        let mut active: Vec<Source<'_>> = Vec::new();
        let mut next = sources.iter().peekable();
        for pair in cuts.windows(2) {
            let (start, end) = (pair[0], pair[1]);
            active.retain(|source| source.end > start);
            while let Some(source) = next.next_if(|source| source.start <= start) {
                active.push(*source);
            }
            if !active.is_empty() {
                active.sort_by_key(|source| source.age);
                let content = self.keys.union(active.iter().map(|source| source.content)).at(now);
                let content = self.droppable(job, content, start, end);
                let (values, fresh) = self.values_left(job, &active, width(start, end));
                pieces.push(ContentRange { start, end, content, values, fresh });
            }
        }
        pieces
    }

    /// Returns the content of a merge, without its tombstones if there is no older table below.
    fn droppable(&self, job: &Compaction, content: Content, start: u64, end: u64) -> Content {
        if content.has_tombstones() && job.is_bottom(&range(start, end), &self.shape) {
            return content.without_tombstones();
        }
        content
    }

    /// For a merge of overlapping sources, returns the values that stay in their files, and those that go
    /// to new files, in a range of this width.
    fn values_left(
        &self,
        job: &Compaction,
        sources: &[Source<'_>],
        part: f64,
    ) -> (ValueCounts, Vec<f64>) {
        let (mut values, mut fresh) = (ValueCounts::default(), Vec::new());
        if self.values.is_none() {
            return (values, fresh);
        }
        // The share of each group that no newer source has overwritten.
        let mut kept = vec![1.0; self.keys.groups()];
        for source in sources.iter() {
            match source.table {
                Some(table) => {
                    let part = part / width(source.start, source.end);
                    values.add(&table.values, part, Some(&kept));
                }
                None => {
                    let all = self.keys.lasting_by_group(source.content);
                    fresh =
                        all.iter().zip(&kept).map(|(count, kept)| count * part * kept).collect();
                }
            }
            self.keys.overwrite(&mut kept, source.content);
        }
        let relocated = values.take(&job.relocated);
        fresh.resize(fresh.len().max(relocated.len()), 0.0);
        fresh.iter_mut().zip(relocated).for_each(|(sum, count)| *sum += count);
        (values, fresh)
    }

    /// Cuts adjacent ranges into tables. `grandparents` has the ends and bytes of the tables in the
    /// level below the output.
    pub(super) fn cut(
        &self,
        pieces: Vec<ContentRange>,
        grandparents: &[(u64, f64)],
    ) -> Vec<ContentRange> {
        let limit = self.table_bytes as f64;
        let uncut = self.table_bytes == u64::MAX;
        let from = pieces.first().map_or(0, |piece| piece.start);
        let mut below = grandparents.iter().skip_while(|(end, _)| *end <= from).peekable();
        let mut made = Vec::new();
        let mut open = OpenTable { start: from, end: from, ..OpenTable::default() };
        for piece in pieces {
            let mut start = piece.start;
            while start < piece.end {
                let mut end = piece.end;
                if !uncut {
                    if let Some((ends, _)) = below.peek() {
                        end = end.min(*ends);
                    }
                    let bytes = self.bytes(&piece.content, start, end);
                    let room = limit - open.bytes;
                    if bytes > room {
                        let part = ((end - start) as f64 * (room / bytes).max(0.0)) as u64;
                        end = start + part.max(1);
                    }
                }
                open.bytes += self.bytes(&piece.content, start, end);
                open.parts.push((piece.content.clone(), width(start, end)));
                let part = width(start, end) / width(piece.start, piece.end);
                open.values.add(&piece.values, part, None);
                open.fresh.resize(open.fresh.len().max(piece.fresh.len()), 0.0);
                let fresh = open.fresh.iter_mut().zip(&piece.fresh);
                fresh.for_each(|(sum, count)| *sum += count * part);
                open.end = end;
                start = end;
                while let Some((_, bytes)) = below.next_if(|(ends, _)| *ends <= end) {
                    open.grandparent_bytes += bytes;
                }
                let is_full = open.bytes >= limit * (1.0 - 1e-9)
                    || open.grandparent_bytes > limit * GRANDPARENTS_MAX;
                if !uncut && is_full {
                    self.close(&mut open, &mut made);
                }
            }
        }
        self.close(&mut open, &mut made);
        made
    }

    fn bytes(&self, content: &Content, start: u64, end: u64) -> f64 {
        self.bytes_of(content, width(start, end))
    }

    /// Finishes a table. A remainder of less than one entry joins the previous table.
    fn close(&self, open: &mut OpenTable, made: &mut Vec<ContentRange>) {
        let ended = std::mem::take(open);
        open.start = ended.end;
        open.end = ended.end;
        if ended.parts.is_empty() {
            return;
        }
        if ended.bytes < self.entry_bytes
            && let Some(last) = made.last_mut()
        {
            last.end = ended.end;
            last.values.add(&ended.values, 1.0, None);
            last.fresh.resize(last.fresh.len().max(ended.fresh.len()), 0.0);
            last.fresh.iter_mut().zip(ended.fresh).for_each(|(sum, count)| *sum += count);
            return;
        }
        let content = self.keys.average(&ended.parts);
        let OpenTable { start, end, values, fresh, .. } = ended;
        made.push(ContentRange { start, end, content, values, fresh });
    }
}
