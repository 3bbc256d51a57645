//! A huge page that is populated before a reader needs it.
//!
//! The system clears a huge page in 0.1 ms, and may take 10 ms to find one once files fill the memory. A
//! pool that grows would make its readers wait for that, so another thread populates the next page when
//! the last one was used. The page counts as allocated, and is released if the pool needs the room for
//! something else.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::allocation::HUGE_BYTES_MIN;
use super::memory::{HUGE_PAGE_BYTES, Memory};
use super::pool::{BufferPool, Shared, State};

impl BufferPool {
    /// Returns the work for another thread that populates the next page, if that is due. It is returned
    /// once.
    #[inline]
    pub(crate) fn work_ahead(&self) -> Option<impl FnOnce() + Send + 'static + use<>> {
        let wants_page = &self.shared().wants_page;
        // Relaxed: the work itself takes the lock. Loaded first, because the flag is rarely set.
        if !wants_page.load(Ordering::Relaxed) || !wants_page.swap(false, Ordering::Relaxed) {
            return None;
        }
        // The pool may be dropped before the thread begins.
        let shared = Arc::downgrade(self.shared());
        Some(move || {
            if let Some(shared) = shared.upgrade() {
                shared.populate_ahead();
            }
        })
    }
}

impl Shared {
    fn populate_ahead(&self) {
        if !self.lock().has_room_ahead(0) {
            return;
        }
        let memory = Memory::populated(HUGE_PAGE_BYTES);
        let mut state = self.lock();
        if state.has_room_ahead(0) {
            state.allocated += HUGE_PAGE_BYTES;
            state.ahead = Some(memory);
        } else {
            // Unmapped without the lock.
            state.garbage.push(memory);
        }
    }
}

impl State {
    /// Returns true if the pool has room for `bytes` bytes and one more page, which is not there yet.
    pub(super) fn has_room_ahead(&self, bytes: usize) -> bool {
        self.ahead.is_none()
            && self.capacity >= HUGE_BYTES_MIN
            && self.allocated + bytes + HUGE_PAGE_BYTES <= self.capacity
    }

    /// Returns the bytes that the pool could still allocate, including the page that is ready.
    pub(super) fn room(&self) -> usize {
        let ahead = self.ahead.as_ref().map_or(0, Memory::bytes);
        self.capacity.saturating_sub(self.allocated - ahead)
    }

    /// Takes the page that is ready, which no longer counts as allocated.
    pub(super) fn take_ahead(&mut self) -> Option<Memory> {
        let memory = self.ahead.take()?;
        self.allocated -= memory.bytes();
        Some(memory)
    }

    /// Releases the page that is ready, if the pool exceeds its capacity with `bytes` more bytes.
    pub(super) fn release_ahead(&mut self, bytes: usize) {
        if self.ahead.is_some() && self.allocated + bytes > self.capacity {
            let memory = self.take_ahead();
            self.garbage.extend(memory);
        }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    /// Runs the work that is due. Returns whether any was.
    fn work(pool: &BufferPool) -> bool {
        pool.work_ahead().map(|work| work()).is_some()
    }

    #[test]
    fn the_next_chunk_is_ready_and_within_the_capacity() {
        let pool = BufferPool::new(72 << 20);
        let mut blocks = Vec::new();
        let mut pages = 0;
        while pool.bytes().pinned < 66 << 20 {
            blocks.push(pool.allocate(4 << 10));
            pages += usize::from(work(&pool));
            assert!(pool.bytes().allocated <= 72 << 20, "{:?}", pool.bytes());
        }
        assert!(pages >= 30, "{pages}");
        assert!(!work(&pool), "no room is left for another page");
        // The page that is ready gives way to other sizes.
        let large = pool.allocate(3 << 20);
        assert!(pool.bytes().allocated <= 72 << 20, "{:?}", pool.bytes());
        drop((blocks, large));
        pool.set_capacity(1 << 20);
        assert!(pool.bytes().allocated <= 1 << 20, "{:?}", pool.bytes());
    }

    #[test]
    fn work_that_begins_too_late_keeps_nothing() {
        let pool = BufferPool::new(72 << 20);
        // A size gets a chunk once its frames would fill a quarter of it.
        let blocks: Vec<_> = (0..200).map(|_| pool.allocate(4 << 10)).collect();
        let late = pool.work_ahead().unwrap();
        pool.set_capacity(64 << 10);
        late();
        drop(blocks);
        assert!(pool.bytes().allocated <= 4 << 20, "{:?}", pool.bytes());
        let blocks: Vec<_> = (0..200).map(|_| pool.allocate(4 << 10)).collect();
        assert!(!work(&pool));
        drop((blocks, pool));
    }
}
