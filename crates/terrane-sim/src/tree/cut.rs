//! The output of a merge: the union of its inputs, cut into tables as in the engine.

use std::sync::Arc;

use terrane_policy::TableInfo;

use super::{END, SimulatedTree, bounds, width};
use crate::keys::Content;

/// The maximum overlap of a table with the level below it, in tables of its size (LevelDB's
/// grandparent limit, also the engine's).
const GRANDPARENTS_MAX: f64 = 10.0;

/// A range of keys with the same content throughout.
#[derive(Debug, Clone)]
pub(super) struct ContentRange {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) content: Content,
}

/// The output table under construction.
#[derive(Default)]
struct OpenTable {
    parts: Vec<(Content, f64)>,
    start: u64,
    end: u64,
    bytes: f64,
    grandparent_bytes: f64,
}

impl SimulatedTree {
    /// Returns the output of a merge of overlapping tables into `level`.
    pub(super) fn merged(&self, tables: &[Arc<TableInfo>], level: usize) -> Vec<ContentRange> {
        let newest = self.shape.level(level + 1).runs.first();
        let grandparents: Vec<(u64, f64)> = newest
            .map(|run| &run.tables[..])
            .unwrap_or_default()
            .iter()
            .map(|table| (bounds(&table.range).1, table.size_bytes as f64))
            .collect();
        self.cut(self.union(tables, None), &grandparents)
    }

    /// Returns the union of tables and of a memtable that covers all keys.
    pub(super) fn union(
        &self,
        tables: &[Arc<TableInfo>],
        memtable: Option<&Content>,
    ) -> Vec<ContentRange> {
        let mut cuts: Vec<u64> = Vec::new();
        let mut inputs: Vec<(u64, u64, &Content)> = Vec::new();
        for table in tables {
            let (start, end) = bounds(&table.range);
            cuts.extend([start, end]);
            inputs.extend(self.contents.get(&table.id).map(|content| (start, end, content)));
        }
        if let Some(content) = memtable {
            cuts.extend([0, END]);
            inputs.push((0, END, content));
        }
        cuts.sort_unstable();
        cuts.dedup();
        inputs.sort_by_key(|(start, ..)| *start);
        let mut pieces: Vec<ContentRange> = Vec::new();
        let mut active: Vec<(u64, &Content)> = Vec::new();
        let mut next = inputs.iter().peekable();
        for pair in cuts.windows(2) {
            let (start, end) = (pair[0], pair[1]);
            active.retain(|(until, _)| *until > start);
            while let Some((_, until, content)) = next.next_if(|(from, ..)| *from <= start) {
                active.push((*until, content));
            }
            if !active.is_empty() {
                let content = self.keys.union(active.iter().map(|(_, content)| *content));
                pieces.push(ContentRange { start, end, content });
            }
        }
        pieces
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
        self.keys.entries(content, width(start, end)) * self.entry_bytes
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
            return;
        }
        let content = self.keys.average(&ended.parts);
        made.push(ContentRange { start: ended.start, end: ended.end, content });
    }
}
