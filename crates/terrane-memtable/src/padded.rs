//! Values with cache lines of their own.

use std::ops::{Deref, DerefMut};

/// A value that shares no cache line with other data, for data that many threads write among data
/// that they only read. Aligned to two lines, because processors fetch lines in pairs.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Padded<T>(pub T);

impl<T> Deref for Padded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Padded<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
