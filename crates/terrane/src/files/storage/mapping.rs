//! Segments of the log, mapped into memory for writing.
//!
//! A [`WritableMapping`] is shared by the threads that write to it:
//!
//! 1. No reference into it exists, and its memory is accessed only by atomic operations on whole aligned
//!    words. Concurrent stores are therefore not a data race, even if their ranges overlap in part: atomic
//!    operations on the same bytes must have the same size. A store of part of a word loads the word first,
//!    so two threads that store parts of one word may lose one of them. Records do not share words.
//!
//! 2. Every mapping is registered with [`map_guard`](super::map_guard) from before the first store until
//!    after the last one, so that a store to a page that another program has truncated, or that the
//!    device cannot read, does not end the process. The caller of a store learns of it from
//!    [`WritableMapping::check`].
//!
//! The log is not read through a map, because a read of a lost page would return zeros.
#![allow(unsafe_code, reason = "the compiler cannot check that stores stay within a mapping")]
#![allow(clippy::disallowed_types, reason = "a mapping needs a file")]

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

#[cfg(not(miri))]
use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};

use super::map_guard::GuardedRange;
use crate::base::error::LostPage;

#[cfg(miri)]
mod stand_in;
#[cfg(test)]
mod tests;

#[cfg(miri)]
use stand_in::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};

/// The first bytes of a file, mapped into memory for writing. No reference into it exists, and all stores
/// to it are atomic (1). Clones write to the same memory.
#[derive(Debug, Clone)]
pub(super) struct WritableMapping(Arc<Guarded>);

/// A mapping that may be gone.
#[derive(Debug, Default)]
pub(super) struct WeakMapping(Weak<Guarded>);

impl WeakMapping {
    /// Returns the mapping if it still exists.
    pub(super) fn upgrade(&self) -> Option<WritableMapping> {
        self.0.upgrade().map(WritableMapping)
    }
}

#[derive(Debug)]
struct Guarded {
    /// Dropped before the map, whose addresses may then be reused.
    range: GuardedRange,
    map: MmapRaw,
}

const WORD: usize = size_of::<u64>();

/// The bytes of pages that are unmapped at once, which takes a tenth of a millisecond.
const UNMAP_STEP: usize = 4 << 20;

impl WritableMapping {
    /// Maps the first `len` bytes of a file.
    pub(super) fn of_file(file: &File, len: u64) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        let map = MmapOptions::new().len(len).map_raw(file)?;
        // Only a hint: a fault then provides a single page. Providing the following pages as well
        // takes milliseconds where the system reads megabytes ahead.
        let _ = map.advise(Advice::Random);
        let range = GuardedRange::register(map.as_ptr(), map.len())?;
        Ok(Self(Arc::new(Guarded { range, map })))
    }

    pub(super) fn len(&self) -> usize {
        self.0.map.len()
    }

    /// Returns a reference that does not keep the mapping.
    pub(super) fn downgrade(&self) -> WeakMapping {
        WeakMapping(Arc::downgrade(&self.0))
    }

    /// Fails with [`LostPage`] if a store of this thread, or any earlier one, met a lost page.
    #[inline]
    pub(super) fn check(&self) -> io::Result<()> {
        // The note of a lost page must be loaded after the stores. The handler runs in the thread that
        // faults, for which the order of the program suffices. If another thread faulted, the page of
        // this thread's record may have been replaced. On x86 the replacement interrupts this processor
        // between two instructions, so that a store to the new page precedes a load that is executed
        // after the interrupt. Other processors need a fence.
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
        #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
        std::sync::atomic::fence(Ordering::SeqCst);
        match self.0.range.lost() {
            None => Ok(()),
            Some(offset) => Err(LostPage { offset }.into()),
        }
    }

    /// Notes that the file was found to end at `len`, before the end of the mapping.
    pub(super) fn note_shortened(&self, len: u64) {
        self.0.range.note_lost(len);
    }

    /// Returns `offset` as an index if `len` bytes from there on are within the mapping.
    fn place(&self, offset: u64, len: u64) -> io::Result<usize> {
        let end = offset.checked_add(len).filter(|end| *end <= self.len() as u64);
        end.map(|_| offset as usize).ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    /// Copies `bytes` to `offset`. The caller checks afterwards whether a page was lost.
    ///
    /// # Errors
    /// The range is not within the mapping.
    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let start = self.place(offset, bytes.len() as u64)?;
        let to_boundary = (start.next_multiple_of(WORD) - start).min(bytes.len());
        let (head, rest) = bytes.split_at(to_boundary);
        self.store_part(start, head);
        if rest.is_empty() {
            // The bytes may end within a word.
            return Ok(());
        }
        let (words, last) = rest.as_chunks::<WORD>();
        self.store_words(start + to_boundary, words);
        self.store_part(start + to_boundary + words.len() * WORD, last);
        Ok(())
    }

    /// Copies the parts of a record to `offset`, a multiple of eight, and stores its second word
    /// last. The caller checks afterwards whether a page was lost.
    ///
    /// # Errors
    /// The first part is shorter than two words, or the record is not within the mapping.
    pub(super) fn write_record(&self, offset: u64, record: &[&[u8]]) -> io::Result<()> {
        let Some((record, parts)) = record.split_first() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut end = record.len() as u64;
        for part in parts {
            self.write(offset.saturating_add(end), part)?;
            end += part.len() as u64;
        }
        let start = self.place(offset, end)?;
        let words = record.split_first_chunk::<WORD>();
        let words =
            words.and_then(|(first, rest)| Some((first, rest.split_first_chunk::<WORD>()?)));
        let Some((first, (second, rest))) = words.filter(|_| start.is_multiple_of(WORD)) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let (words, last) = rest.as_chunks::<WORD>();
        self.store_words(start + 2 * WORD, words);
        self.store_part(start + 2 * WORD + words.len() * WORD, last);
        self.store_words(start, &[*first]);
        // Release: the compiler moves no earlier store past this one. The stores that a dead
        // process executed survive, and other processes observe them in program order.
        if let [to] = self.words(start + WORD, 1) {
            to.store(u64::from_ne_bytes(*second), Ordering::Release);
        }
        Ok(())
    }

    /// Stores words at `start`, a multiple of eight. The caller has checked the range.
    #[inline]
    fn store_words(&self, start: usize, words: &[[u8; WORD]]) {
        for (to, word) in self.words(start, words.len()).iter().zip(words) {
            // Relaxed: readers of the file do not rely on an order; they check every record.
            to.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
        }
    }

    /// Stores bytes at `start`, less than a word and within one, whose other bytes keep their values. The
    /// caller has checked the range.
    fn store_part(&self, start: usize, bytes: &[u8]) {
        let at = start % WORD;
        if bytes.is_empty() {
            return;
        }
        if let [to] = self.words(start - at, 1) {
            // Relaxed: the other bytes are those of this thread, or of nobody (1).
            let mut word = to.load(Ordering::Relaxed).to_ne_bytes();
            word[at..at + bytes.len()].copy_from_slice(bytes);
            to.store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
    }

    /// Returns `count` words from `start` on, a multiple of eight. The last one may begin before the end
    /// of the mapping and end after it.
    #[inline]
    fn words(&self, start: usize, count: usize) -> &[AtomicU64] {
        let end = self.len().next_multiple_of(WORD);
        assert!(start.is_multiple_of(WORD) && start + count * WORD <= end);
        // SAFETY: `start` is at most the length, rounded up to a word. The system maps whole pages, and
        // `self.0` keeps the mapping alive.
        let to = unsafe { self.0.map.as_mut_ptr().add(start) };
        // SAFETY: the words end within the last page of the mapping, as just checked. They are aligned
        // because a mapping begins at a page and `start` is a multiple of the size of a word. All accesses
        // to the mapping are atomic operations on words (1).
        unsafe { std::slice::from_raw_parts(to.cast::<AtomicU64>(), count) }
    }

    /// Faults in the pages of a range for writing, without changing their contents.
    pub(super) fn populate(&self, offset: u64, len: u64) {
        let all = self.len() as u64;
        let start = offset.min(all);
        let len = len.min(all - start);
        if len > 0 {
            // Only a hint: if it fails, the first write to each page faults.
            let advice = Advice::PopulateWrite;
            let _ = self.0.map.advise_range(advice, start as usize, len as usize);
        }
    }

    /// Unmaps all pages, in steps between which it calls `between`; the file keeps what was stored to them. A later
    /// store would map its page again.
    pub(super) fn discard_pages(&self, between: &dyn Fn()) {
        for start in (0..self.len()).step_by(UNMAP_STEP) {
            let len = UNMAP_STEP.min(self.len() - start);
            // SAFETY: the map is shared, so its pages do not lose what was stored to them.
            let advised =
                unsafe { self.0.map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, len) };
            // Only a hint: the pages that stay are unmapped with the map.
            let _ = advised;
            between();
        }
    }
}
