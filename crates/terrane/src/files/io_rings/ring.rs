//! A ring of the kernel.
//!
//! The kernel writes to the buffers of reads that it has begun until it has completed them. [`Ring::read`] therefore
//! returns only then, whatever fails meanwhile.
#![allow(unsafe_code, reason = "the kernel writes to memory that is borrowed meanwhile")]

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::{IoUring, Probe, opcode, types};

use super::FileRead;
use crate::files::storage::{ALIGN, AlignedBuffer, RandomReader};

/// The number of reads that one ring has in flight.
const DEPTH: u32 = 64;

/// How long to wait for completions if the kernel refuses to wait for them.
const PAUSE: Duration = Duration::from_millis(1);

/// A queue of reads and a queue of their completions. Both are empty between two calls.
pub(super) struct Ring(IoUring);

/// Memory for the blocks around an unaligned part of a file that is read directly.
struct Window {
    blocks: AlignedBuffer,
    /// The number of bytes before the part.
    skipped: usize,
}

impl Ring {
    /// Creates a ring.
    ///
    /// # Errors
    /// The kernel is too old, the system forbids rings, or a limit on memory or open files is reached.
    pub(super) fn new() -> io::Result<Self> {
        // Completions need not interrupt a thread that waits for them; kernels before 5.19 always do so.
        let mut quiet = IoUring::builder();
        quiet.setup_coop_taskrun();
        let ring: IoUring = quiet.build(DEPTH).or_else(|_| IoUring::new(DEPTH))?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        match probe.is_supported(opcode::Read::CODE) {
            true => Ok(Self(ring)),
            false => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    pub(super) fn can_read(reader: &dyn RandomReader) -> bool {
        reader.descriptor().is_some()
    }

    /// Reads parts of files, and returns once the kernel has completed all of them. Returns false if the ring must
    /// not be used again.
    pub(super) fn read(&mut self, reads: &mut [FileRead<'_>]) -> bool {
        reads.chunks_mut(DEPTH as usize).all(|reads| self.read_at_once(reads))
    }

    fn read_at_once(&mut self, reads: &mut [FileRead<'_>]) -> bool {
        let mut windows: Vec<Option<Window>> = reads.iter().map(Window::of).collect();
        // Nothing below may panic: the kernel may have begun the first reads.
        let descriptors: Vec<_> = reads.iter().map(|read| read.reader.descriptor()).collect();
        let mut lengths = vec![None; reads.len()];
        let mut begun = 0;
        let all = reads.iter_mut().zip(&mut windows).zip(descriptors);
        for (number, ((read, window), descriptor)) in all.enumerate() {
            let Some(descriptor) = descriptor else { continue };
            let (offset, memory) = match window {
                Some(window) => (read.offset - window.skipped as u64, &mut window.blocks[..]),
                None => (read.offset, &mut *read.buffer),
            };
            let Ok(len) = u32::try_from(memory.len()) else { continue };
            let descriptor = types::Fd(descriptor.as_raw_fd());
            let entry = opcode::Read::new(descriptor, memory.as_mut_ptr(), len);
            let entry = entry.offset(offset).build().user_data(number as u64);
            // SAFETY: the descriptor and the memory are borrowed by this function or owned by it. It returns only
            // when each entry was completed, or was never taken by the kernel; in the latter case the ring is not
            // used again. Nothing else accesses the memory until then.
            begun += usize::from(unsafe { self.0.submission().push(&entry) }.is_ok());
        }
        let is_usable = self.complete(begun, &mut lengths);
        for ((read, window), len) in reads.iter_mut().zip(&windows).zip(lengths) {
            let skipped = window.as_ref().map_or(0, |window| window.skipped);
            read.is_done = len.is_some_and(|len| len >= skipped + read.buffer.len());
            if let (true, Some(window)) = (read.is_done, window) {
                read.buffer.copy_from_slice(&window.blocks[skipped..skipped + read.buffer.len()]);
            }
        }
        is_usable
    }

    /// Submits the queued reads, and waits until the kernel has completed all `left` reads, or those that it took before
    /// it failed. Stores the length of each that succeeded.
    fn complete(&mut self, mut left: usize, lengths: &mut [Option<usize>]) -> bool {
        let mut is_usable = true;
        while left > 0 {
            let failure = self.0.submit_and_wait(left).err();
            for completion in self.0.completion() {
                left -= 1;
                if let Some(len) = lengths.get_mut(completion.user_data() as usize) {
                    *len = usize::try_from(completion.result()).ok();
                }
            }
            if failure.is_some_and(|error| error.kind() != io::ErrorKind::Interrupted) {
                is_usable = false;
                if left == self.0.submission().len() {
                    break;
                }
                std::thread::sleep(PAUSE);
            }
        }
        is_usable
    }
}

impl Window {
    /// The memory for a read of a file that bypasses the page cache.
    fn of(read: &FileRead<'_>) -> Option<Self> {
        if !read.reader.is_direct() {
            return None;
        }
        let skipped = (read.offset % ALIGN as u64) as usize;
        let len = (skipped + read.buffer.len()).next_multiple_of(ALIGN);
        Some(Self { blocks: AlignedBuffer::new(len), skipped })
    }
}
