//! Reads of blocks of several tables that the kernel begins together: for the keys of a batch, the runs of a lookup,
//! and the runs of a seek.
//!
//! 1. Blocks that another thread reads are left out, and so are those that cannot be read. Whoever needs them then
//!    reads them individually, so that an error surfaces only where the block is needed.
//! 2. The locations of all blocks are known before the first block is reserved for this thread, because an index may
//!    have to be read for them (rule 3 of [`crate::files::buffer`]'s reads in flight).

use std::ops::Range;
use std::sync::Arc;

use super::blocks::memory_for_blocks;
use super::cursor::TableCursor;
use super::reader::{Table, TableFile};
use super::scan_window::Blocks;
use super::slots::data_slot;
use crate::base::stats::{BlockKind, Counter};
use crate::files::buffer::{BlockMut, BlockRef, Loading, Priority};
use crate::files::io_rings::{FileRead, RingLease};
use crate::files::storage::RandomReader;

/// Consecutive data blocks of a table.
pub(crate) type BlocksOf<'a> = (&'a Table, Range<usize>);

/// What was read.
pub(super) enum Loaded {
    /// One block, which is in the buffer manager if there was room.
    Block(BlockRef),
    /// Several blocks as stored in the file.
    Blocks(Blocks),
}

/// A part of a file, and the memory for it.
struct Part<'a> {
    file: &'a TableFile,
    reader: Reader,
    offset: u64,
    memory: BlockMut,
    is_read: bool,
}

/// Where blocks are in the file of their table.
enum Place {
    Block(Reader, Range<u64>),
    /// The offset of the first of several blocks, and the memory for them.
    Blocks(Reader, u64, BlockMut),
}

/// A file that stays open.
type Reader = Arc<dyn RandomReader>;

/// One block, or several, to be read.
enum Plan<'a> {
    Block(Loading<'a>, Part<'a>),
    Blocks(Range<usize>, Part<'a>),
}

/// Reads single blocks that are not in memory into their slots. Returns those that were read, or `None` if the system
/// does not read several blocks together.
pub(crate) fn load_together<'a>(
    blocks: impl Iterator<Item = (&'a Arc<Table>, usize)>,
) -> Option<Vec<BlockRef>> {
    let wanted: Vec<BlocksOf<'a>> =
        blocks.map(|(table, number)| (&**table, number..number + 1)).collect();
    let loaded = read_together(&wanted)?;
    let block = |loaded| match loaded {
        Some(Loaded::Block(block)) => Some(block),
        Some(Loaded::Blocks(_)) | None => None,
    };
    Some(loaded.into_iter().filter_map(block).collect())
}

/// Reads all blocks, with those of each range in one read. Returns what was read of each, or `None` if the system does
/// not read several blocks together.
pub(super) fn read_together(wanted: &[BlocksOf<'_>]) -> Option<Vec<Option<Loaded>>> {
    let TableFile { environment, .. } = &wanted.first()?.0.file;
    let mut lease = environment.io_rings.lease()?;
    // What is true of one file is true of all.
    let (first, _) = wanted.first()?;
    let reader = first.file.shared_reader(&first.opened().ok()?.reader).ok()?;
    if !lease.can_read(&*reader) {
        return None;
    }
    environment.hot_records.yield_to_blocks(&environment.buffer);
    let places: Vec<Option<Place>> = wanted.iter().map(find).collect();
    let plan = |(wanted, place)| plan(wanted, place?);
    let mut plans: Vec<Option<Plan<'_>>> = wanted.iter().zip(places).map(plan).collect();
    let mut parts: Vec<&mut Part<'_>> = plans.iter_mut().flatten().map(Plan::part).collect();
    if !parts.is_empty() {
        let sizes = (parts.len(), parts.iter().map(|part| part.memory.len() as u64).sum());
        environment.io_threads.read_together(sizes, || fill(&mut lease, &mut parts));
        if !parts.iter().any(|part| part.is_read) {
            return None;
        }
    }
    drop(lease);
    Some(plans.into_iter().map(|plan| plan?.finish()).collect())
}

/// Reads the blocks that several cursors need for the same seek, or begins to read them on other threads. A cursor that
/// is alone reads by itself.
pub(crate) fn read_for_seek<'a>(cursors: impl Iterator<Item = &'a mut TableCursor>) {
    let plan = |cursor: &'a mut TableCursor| {
        let planned = cursor.plan_read()?;
        Some((cursor, planned))
    };
    let planned: Vec<_> = cursors.filter_map(plan).collect();
    if planned.is_empty() {
        return;
    }
    let (mut cursors, planned): (Vec<_>, Vec<_>) = planned.into_iter().unzip();
    let wanted: Vec<BlocksOf<'_>> =
        planned.iter().map(|(table, numbers)| (&**table, numbers.clone())).collect();
    let loaded = if wanted.len() > 1 { read_together(&wanted) } else { None };
    let Some(loaded) = loaded else {
        let is_alone = cursors.len() == 1;
        for (cursor, (_, numbers)) in cursors.iter_mut().zip(planned) {
            if is_alone { cursor.read_now(numbers) } else { cursor.begin_read(numbers) }
        }
        return;
    };
    for ((cursor, (_, numbers)), loaded) in cursors.into_iter().zip(planned).zip(loaded) {
        if let Some(loaded) = loaded {
            cursor.expect(numbers, loaded);
        }
    }
}

/// Finds out where blocks are in the file of their table, and opens it.
fn find((table, numbers): &BlocksOf<'_>) -> Option<Place> {
    let (file, opened) = (&table.file, table.opened().ok()?);
    let reader = file.shared_reader(&opened.reader).ok()?;
    if numbers.len() > 1 {
        let (start, memory) = memory_for_blocks(table, numbers).ok()?;
        return Some(Place::Blocks(reader, start, memory));
    }
    let place = file.place_of(opened, numbers.start).ok()?;
    file.check_place(place.start, (place.end - place.start) as usize).ok()?;
    file.announce(opened, numbers.start, &place);
    Some(Place::Block(reader, place))
}

/// Gets memory for blocks, and reserves a single block for this thread. Returns `None` if it is in memory by now, or
/// another thread reads it.
fn plan<'a>((table, numbers): &BlocksOf<'a>, place: Place) -> Option<Plan<'a>> {
    let file = &table.file;
    let part = |reader, offset, memory| Part { file, reader, offset, memory, is_read: false };
    match place {
        Place::Blocks(reader, start, memory) => {
            Some(Plan::Blocks(numbers.clone(), part(reader, start, memory)))
        }
        Place::Block(reader, place) => {
            let loading = table.opened().ok()?.slots.begin_load(data_slot(numbers.start))?;
            file.environment.counters.add_cache_miss(BlockKind::Data, file.level());
            let memory = file.environment.allocate_at_once((place.end - place.start) as usize);
            Some(Plan::Block(loading, part(reader, place.start, memory)))
        }
    }
}

/// Fills the memory of parts, as far as their files can be read.
fn fill(lease: &mut RingLease<'_>, parts: &mut [&mut Part<'_>]) {
    let mut reads: Vec<FileRead<'_>> = parts.iter_mut().map(|part| part.as_read()).collect();
    lease.read(&mut reads);
    let done: Vec<bool> = reads.into_iter().map(|read| read.is_done).collect();
    for (part, is_done) in parts.iter_mut().zip(done) {
        part.is_read = is_done;
    }
}

impl Part<'_> {
    fn as_read(&mut self) -> FileRead<'_> {
        let Self { reader, offset, memory, .. } = self;
        FileRead { reader: &**reader, offset: *offset, buffer: memory, is_done: false }
    }
}

impl<'a> Plan<'a> {
    fn part(&mut self) -> &mut Part<'a> {
        match self {
            Self::Block(_, part) | Self::Blocks(_, part) => part,
        }
    }

    /// Returns the blocks if they were read and, if it is one, it is not damaged.
    fn finish(mut self) -> Option<Loaded> {
        if !self.part().is_read {
            return None;
        }
        match self {
            Self::Block(loading, Part { file, offset, memory, .. }) => {
                let block = file.unpack(memory, offset, BlockKind::Data);
                let block = file.environment.noting_damage(block).ok()?;
                Some(Loaded::Block(loading.fill(block, Priority::Data)))
            }
            Self::Blocks(numbers, Part { file, offset, memory, .. }) => {
                let counters = &file.environment.counters;
                counters.add(Counter::TableBytesRead, memory.len() as u64);
                Some(Loaded::Blocks(Blocks::new(numbers, offset, memory.freeze())))
            }
        }
    }
}

#[cfg(test)]
mod tests;
