//! The buffer manager: the blocks of tables in memory.
//!
//! It replaces both a block cache with a hash table and memory maps. The design follows pointer
//! swizzling (LeanStore, Leis et al., ICDE 2018) and vmcache (SIGMOD 2023); tables never change,
//! which removes latches and dirty pages from both.
//!
//! Each open table has [`Slots`]: one word per block, which contains the address of the block while
//! it is in memory. A hit loads the word and follows it. It takes no lock, computes no hash, and
//! writes nothing that other readers read, except that the first three uses of a block increment
//! two bits of its word.
//!
//! 1. A block is a *frame*: a header followed by the bytes, so that both share a cache line. Nothing
//!    changes the bytes once the frame is in a slot.
//! 2. A frame is freed when its last reference is dropped. A slot has one reference; each
//!    [`BlockRef`] has one.
//! 3. A reader that loads a slot is pinned ([`pin`]). A slot's reference is released only after all
//!    readers that were pinned when the slot was emptied have unpinned. A reader therefore uses a
//!    block without counting a reference, and a [`BlockView`] lives no longer than its guard.
//! 4. A pinned reader never waits for I/O or for another reader, so (3) waits for microseconds.
//! 5. The pool's lock is taken by misses, when the last reference to a frame is dropped, and when a
//!    table is closed. Slots change under this lock; only the two bits change without it.
//! 6. Memory counts against the capacity while it is in the pool. Each allocating thread may have one
//!    more chunk or frame that it maps or unmaps without the lock. Pinned blocks can take the pool
//!    beyond its capacity, as can evicted frames, by up to a sixteenth, while preempted readers keep
//!    them from reuse.
//!
//! | module | one line |
//! |---|---|
//! | `epoch` | detects when all earlier readers are gone |
//! | `memory` | chunks of memory, with huge pages where the system has them |
//! | `header`, `frame` | frames; references to them |
//! | `word`, `slots` | the word of a block; the words of a table |
//! | `chunk`, `pool` | free frames; the state under the lock |
//! | `allocation`, `blocks` | allocation of frames, and of blocks in and outside of the pool |
//! | `eviction`, `shrink` | which blocks are evicted; which memory is released |
//! | `turnover` | counts blocks that were evicted too early |
//! | `ahead` | a huge page that is populated before it is needed |
//! | `in_flight` | one read for threads that miss the same block |
//! | `locked`, `steps` | work after the lock is released; step sizes, waits for readers |

#![allow(unsafe_code, reason = "frames are shared without counting references")]

mod ahead;
mod allocation;
mod blocks;
mod chunk;
mod epoch;
mod eviction;
mod frame;
mod header;
mod in_flight;
mod locked;
mod memory;
mod pool;
#[cfg(test)]
mod pressure_tests;
mod shrink;
mod slots;
mod steps;
#[cfg(test)]
mod tests;
mod turnover;
mod word;

pub(crate) use epoch::pin;
pub(crate) use frame::{BlockMut, BlockRef, BlockView};
pub(crate) use pool::{BLOCK_LEN_MAX, BufferPool};
pub(crate) use slots::{Loading, Priority, Slots};
