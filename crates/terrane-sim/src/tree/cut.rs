//! What a merge makes: the union of its inputs, cut into tables as the engine cuts them.

use std::sync::Arc;

use terrane_policy::TableInfo;

use super::{END, Tree, bounds, width};
use crate::keys::Content;

/// How much of the level below one table may overlap, in tables of its own size (LevelDB's
/// grandparent limit, as the engine has it).
const GRANDPARENTS_MAX: f64 = 10.0;

/// A part of the key space with the same content throughout.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) content: Content,
}

/// A table that is being put together.
#[derive(Default)]
struct Open {
    parts: Vec<(Content, f64)>,
    start: u64,
    end: u64,
    bytes: f64,
    grandparent_bytes: f64,
}

impl Tree {
    /// What a merge of tables that share keys makes in a level.
    pub(super) fn merged(&self, tables: &[Arc<TableInfo>], level: usize) -> Vec<Piece> {
        let newest = self.shape.level(level + 1).runs.first();
        let grandparents: Vec<(u64, f64)> = newest
            .map(|run| &run.tables[..])
            .unwrap_or_default()
            .iter()
            .map(|table| (bounds(&table.range).1, table.size_bytes as f64))
            .collect();
        self.cut(self.union(tables, None), &grandparents)
    }

    /// What tables and a memtable of all keys hold together.
    pub(super) fn union(
        &self,
        tables: &[Arc<TableInfo>],
        memtable: Option<&Content>,
    ) -> Vec<Piece> {
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
        let mut pieces: Vec<Piece> = Vec::new();
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
                pieces.push(Piece { start, end, content });
            }
        }
        pieces
    }

    /// Cuts neighbouring pieces into tables. Of the level below the output, `grandparents` has where
    /// tables end, and their bytes.
    pub(super) fn cut(&self, pieces: Vec<Piece>, grandparents: &[(u64, f64)]) -> Vec<Piece> {
        let limit = self.table_bytes as f64;
        let uncut = self.table_bytes == u64::MAX;
        let from = pieces.first().map_or(0, |piece| piece.start);
        let mut below = grandparents.iter().skip_while(|(end, _)| *end <= from).peekable();
        let mut made = Vec::new();
        let mut open = Open { start: from, end: from, ..Open::default() };
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

    /// Ends a table; what is less than an entry goes into the one before.
    fn close(&self, open: &mut Open, made: &mut Vec<Piece>) {
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
        made.push(Piece { start: ended.start, end: ended.end, content });
    }
}
