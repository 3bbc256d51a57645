//! Spreads the threads over a few stripes, so that data that every write changes rarely shares a cache
//! line with data that another thread changes.

/// The number of stripes. Models visit all interleavings, and need as few atomics as possible.
pub(crate) const STRIPES: usize = if cfg!(loom) { 1 } else { 8 };

/// Returns the stripe of the calling thread.
#[cfg(not(loom))]
#[inline]
pub(crate) fn stripe_of_thread() -> usize {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    STRIPE.with(|own| {
        let mut stripe = own.get();
        if stripe == usize::MAX {
            // Relaxed: only the number matters.
            stripe = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES;
            own.set(stripe);
        }
        stripe
    })
}

/// Returns the stripe of the calling thread: there is only one.
#[cfg(loom)]
pub(crate) fn stripe_of_thread() -> usize {
    0
}
