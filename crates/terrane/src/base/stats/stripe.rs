//! Groups of threads, each with its own copy of what threads count.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of groups.
pub(super) const STRIPES: usize = 16;

/// Returns the group of the calling thread.
#[inline]
pub(crate) fn stripe_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    STRIPE.with(|stripe| {
        if stripe.get() == usize::MAX {
            stripe.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
        }
        stripe.get()
    })
}
