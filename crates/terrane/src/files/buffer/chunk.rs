//! Chunks: memory that is divided into frames of one size.
//!
//! Each power of two is divided into eight sizes, plus one line, so that a block whose length is a
//! power of two wastes little space despite its header and its trailer.

use std::ptr::NonNull;

use super::header::{FramePtr, HEADER_BYTES};
use super::memory::{FRAME_ALIGN, Memory};
use super::word::Slot;

/// The smallest frame size is `1 << SMALLEST_LOG2`, plus a line.
const SMALLEST_LOG2: u32 = 9;

/// The number of sizes between two powers of two.
const STEPS: usize = 8;

/// The number of frame sizes: up to 128 KiB.
pub(super) const CLASSES: usize = 8 * STEPS + 1;

/// Room for the header of a frame and the trailer of a block.
const EXTRA_BYTES: usize = 64;

/// Returns the class of frames of `bytes`, and their size; `None` if they are too large for chunks.
pub(super) fn class_of(bytes: usize) -> Option<(usize, usize)> {
    let wanted = bytes.saturating_sub(EXTRA_BYTES).max(1 << SMALLEST_LOG2);
    let log2 = wanted.ilog2();
    let step = 1 << (log2 - 3);
    let steps = (wanted - (1 << log2)).div_ceil(step);
    let class = (log2 - SMALLEST_LOG2) as usize * STEPS + steps;
    (class < CLASSES).then_some((class, (1 << log2) + steps * step + EXTRA_BYTES))
}

/// Returns the distance of a header from the start of its frame. The bytes of a large frame begin at
/// a cache line, because the lines of a filter are read individually. In a small frame the header
/// shares a line with the start of the block, which a search reads anyway.
pub(super) fn lead_of(frame_bytes: usize) -> usize {
    if frame_bytes > LARGE_BYTES { FRAME_ALIGN - HEADER_BYTES } else { 0 }
}

/// Frames above this size have aligned bytes.
const LARGE_BYTES: usize = 16 << 10;

/// The state of one frame of a chunk.
#[derive(Debug, Clone, Default)]
pub(super) struct Entry {
    /// The slot that refers to the frame. The slot exists while this refers to it, because closing a
    /// table removes its slots first.
    pub(super) slot: Option<NonNull<Slot>>,
    /// Distinguishes the blocks that the frame holds over time.
    pub(super) birth: u32,
    /// True while the block is on probation.
    pub(super) is_young: bool,
}

/// Memory for frames of one size.
#[derive(Debug)]
pub(super) struct Chunk {
    memory: Memory,
    pub(super) frame_bytes: usize,
    /// The distance of a header from the start of its frame.
    pub(super) lead: usize,
    /// The class of the frames; [`CLASSES`] if they have none.
    pub(super) class: usize,
    /// True if the chunk was allocated for a single frame, and is freed with it.
    pub(super) is_single: bool,
    /// The number of frames that are referenced.
    pub(super) live: usize,
    /// The number of frames in slots.
    pub(super) linked: usize,
    /// True if the chunk is in the list of chunks that may have free frames.
    pub(super) is_open: bool,
    /// The places of the frames that are not referenced.
    free: Vec<u32>,
    pub(super) entries: Box<[Entry]>,
}

impl Chunk {
    /// Divides memory into frames.
    pub(super) fn new(memory: Memory, frame_bytes: usize, class: usize, is_single: bool) -> Self {
        let count = if is_single { 1 } else { (memory.bytes() / frame_bytes).max(1) };
        Self {
            memory,
            frame_bytes,
            lead: lead_of(frame_bytes),
            class,
            is_single,
            live: 0,
            linked: 0,
            is_open: false,
            free: (0..count as u32).rev().collect(),
            entries: vec![Entry::default(); count].into(),
        }
    }

    /// Returns the bytes that a chunk with frames of this size takes, including its description.
    pub(super) fn bytes_with(memory_bytes: usize, frame_bytes: usize) -> usize {
        let count = (memory_bytes / frame_bytes).max(1);
        memory_bytes + size_of::<Self>() + count * (size_of::<Entry>() + size_of::<u32>())
    }

    /// Returns the bytes that the chunk takes, including its description.
    pub(super) fn bytes(&self) -> usize {
        Self::bytes_with(self.memory.bytes(), self.frame_bytes)
    }

    /// Returns the memory of a chunk without referenced frames.
    pub(super) fn into_memory(self) -> Memory {
        self.memory
    }

    /// Takes a free frame.
    pub(super) fn take(&mut self) -> Option<u32> {
        let place = self.free.pop()?;
        self.entries[place as usize] = Entry::default();
        self.live += 1;
        Some(place)
    }

    /// Returns a frame to the chunk.
    pub(super) fn give_back(&mut self, place: u32) {
        self.entries[place as usize] = Entry::default();
        self.free.push(place);
        self.live -= 1;
    }

    /// Returns the address of the header of a frame.
    pub(super) fn frame(&self, place: u32) -> FramePtr {
        let offset = place as usize * self.frame_bytes + self.lead;
        // SAFETY: places are below the number of frames, so the frame is within the memory.
        unsafe { self.memory.start().add(offset) }.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_waste_little_and_fit_blocks_of_powers_of_two() {
        let step = if cfg!(miri) { 509 } else { 1 };
        for bytes in (1..=128 << 10).step_by(step) {
            let (class, size) = class_of(bytes).unwrap();
            assert!(class < CLASSES && size >= bytes && size.is_multiple_of(64), "{bytes}");
            assert!(size <= (bytes + bytes / 8).max(512) + 128, "{bytes}: {size}");
        }
        // A block of 4 KiB with its trailer and the header of a frame.
        assert_eq!(class_of(4096 + 9 + 32).unwrap().1, 4160);
        assert!(class_of(1 << 20).is_none());
    }
}
