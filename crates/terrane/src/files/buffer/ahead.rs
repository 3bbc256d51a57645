//! A huge page that is populated before a reader needs it.
//!
//! The system clears a huge page in 0.1 ms, but may take 20 ms once files fill the memory. A pool that grows
//! would make its readers wait for that, so another thread populates the next page when the last one was
//! used. The page counts as allocated, and is released if the pool needs the room for something else. A reader
//! that needs a page for a large block before it is ready reads the block into memory outside of the pool.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::allocation::HUGE_BYTES_MIN;
use super::memory::{HUGE_PAGE_BYTES, Memory};
use super::pool::{BufferPool, Shared, State};

/// After this time, a reader no longer relies on the thread that was asked for a page: it may not have
/// started.
const PAGE_WAIT_MAX: Duration = Duration::from_millis(200);

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
    /// Requests a page of another thread, if the state says so.
    #[inline]
    pub(super) fn request_page(&self, state: &mut State) {
        if std::mem::take(&mut state.wants_page) {
            self.wants_page.store(true, Ordering::Relaxed);
        }
    }

    fn populate_ahead(&self) {
        {
            let mut state = self.lock();
            if !state.has_room_ahead(0) {
                state.page_requested = None;
                return;
            }
        }
        let memory = Memory::populated(HUGE_PAGE_BYTES);
        let mut state = self.lock();
        state.page_requested = None;
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
    /// Wants a page of another thread.
    pub(super) fn want_page(&mut self) {
        self.wants_page = true;
        self.page_requested = Some(Instant::now());
    }

    /// Returns true if another thread will soon have populated a page, of which it is asked if need be.
    pub(super) fn awaits_page(&mut self) -> bool {
        match self.page_requested {
            Some(since) => since.elapsed() < PAGE_WAIT_MAX,
            None => {
                self.want_page();
                true
            }
        }
    }

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

    /// A reader of large blocks used to wait 20 ms for a page where files filled the memory.
    #[test]
    fn a_reader_does_not_wait_for_a_page_that_is_not_ready() {
        let pool = BufferPool::new(72 << 20);
        let fill = |count: usize| -> Vec<_> {
            (0..count).map(|_| pool.allocate_at_once(64 << 10)).collect()
        };
        // A size gets a chunk once its frames would fill a quarter of it; until the page is there, blocks are
        // outside of the pool.
        let blocks = fill(50);
        assert!(pool.bytes().allocated <= 1 << 20, "{:?}", pool.bytes());
        let outside = pool.standalone_bytes();
        assert!(outside > 2 << 20, "{outside}");
        assert!(work(&pool), "the page is requested");
        let cached = fill(25);
        assert_eq!(pool.standalone_bytes(), outside);
        // The request for the next page is not answered in time.
        let more = fill(20);
        assert!(pool.standalone_bytes() > outside);
        let requested = || pool.shared().lock().page_requested;
        assert!(requested().is_some());
        pool.shared().lock().page_requested = Instant::now().checked_sub(PAGE_WAIT_MAX);
        let outside = pool.standalone_bytes();
        let waited = fill(25);
        assert_eq!(pool.standalone_bytes(), outside);
        drop((blocks, cached, more, waited));
        assert_eq!(pool.standalone_bytes(), 0);
    }

    /// One pass over small blocks caches them all, however late the pages come.
    #[test]
    fn small_blocks_are_cached_although_no_page_is_ready() {
        let pool = BufferPool::new(72 << 20);
        let blocks: Vec<_> = (0..2000).map(|_| pool.allocate_at_once(4 << 10)).collect();
        assert_eq!(pool.standalone_bytes(), 0);
        assert!(pool.bytes().pinned > 7 << 20, "{:?}", pool.bytes());
        drop(blocks);
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
