//! Maps for the interpreter Miri, which cannot map files: memory with the interface of `memmap2`, as far as it
//! is used. The memory has the first bytes of the file, and the file gets them back when the map is dropped.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;

/// The size and the alignment of a page.
const PAGE_BYTES: usize = 4096;

#[derive(Debug)]
pub(super) enum Advice {
    Random,
    PopulateWrite,
}

#[derive(Debug)]
pub(super) enum UncheckedAdvice {
    DontNeed,
}

#[derive(Debug)]
pub(super) struct MmapOptions {
    len: usize,
}

impl MmapOptions {
    pub(super) fn new() -> Self {
        Self { len: 0 }
    }

    pub(super) fn len(&mut self, len: usize) -> &mut Self {
        self.len = len;
        self
    }

    pub(super) fn map_raw(&self, file: &File) -> io::Result<MmapRaw> {
        let map = MmapRaw::zeroed(file.try_clone()?, self.len);
        let mut bytes = vec![0; map.len];
        map.file.read_exact_at(&mut bytes, 0)?;
        // SAFETY: both have this many bytes, and nothing else accesses the new map yet.
        unsafe { map.start.copy_from_nonoverlapping(NonNull::from(&bytes[..]).cast(), map.len) };
        Ok(map)
    }
}

#[derive(Debug)]
pub(super) struct MmapRaw {
    start: NonNull<u8>,
    len: usize,
    file: File,
}

// SAFETY: the map is only an address and accesses no bytes itself before it is dropped; its users
// synchronize accesses.
unsafe impl Send for MmapRaw {}
// SAFETY: as above.
unsafe impl Sync for MmapRaw {}

impl MmapRaw {
    fn zeroed(file: File, len: usize) -> Self {
        let layout = layout(len);
        // SAFETY: the layout has at least a page.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, len, file }
    }

    pub(super) fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    pub(super) fn as_mut_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn advise(&self, _advice: Advice) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn advise_range(&self, _advice: Advice, start: usize, len: usize) -> io::Result<()> {
        assert!(start + len <= self.len);
        Ok(())
    }

    /// # Safety
    /// None here, but that of a map that it stands for.
    pub(super) unsafe fn unchecked_advise_range(
        &self,
        _advice: UncheckedAdvice,
        start: usize,
        len: usize,
    ) -> io::Result<()> {
        self.advise_range(Advice::Random, start, len)
    }
}

impl Drop for MmapRaw {
    fn drop(&mut self) {
        // SAFETY: the map has this many bytes, all of them initialized. Its owner is being dropped, so
        // nothing writes to it.
        let bytes = unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) };
        let written = self.file.write_all_at(bytes, 0);
        // SAFETY: the memory was allocated with this layout, and is freed once.
        unsafe { dealloc(self.start.as_ptr(), layout(self.len)) };
        assert!(written.is_ok(), "{written:?}");
    }
}

fn layout(len: usize) -> Layout {
    Layout::from_size_align(len.max(1).next_multiple_of(PAGE_BYTES), PAGE_BYTES)
        .unwrap_or_else(|_| handle_alloc_error(Layout::new::<u8>()))
}
