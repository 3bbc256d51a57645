//! The code that every other module uses: plain data, and functions without files or threads of
//! their own.
//!
//! | module | one line |
//! |---|---|
//! | `types`, `range`, `codec`, `checksum` | positions and ids, bounds of keys, bounds-checked decoding, checksums |
//! | `error` | errors as plain data |
//! | `fork` | processes that fork |
//! | `clock`, `expiry`, `durability` | time, values that expire, and what a write survives |
//! | `merge_operator`, `compaction_filter` | functions of the application |
//! | `turns` | background threads that take short turns on a processor |
//! | `shared_map` | an ordered map whose clones share their contents |
//! | `memory_ledger`, `io_budget`, `cancel` | accounts of memory and bandwidth, cancellation |
//! | `stats`, `event`, `job_view`, `lookup_path` | metrics, events, running jobs, explained lookups |

pub(crate) mod bytes;
pub(crate) mod cancel;
pub(crate) mod checksum;
pub(crate) mod clock;
pub(crate) mod codec;
pub(crate) mod compaction_filter;
pub(crate) mod durability;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod expiry;
pub(crate) mod fork;
pub(crate) mod io_budget;
pub(crate) mod job_view;
pub(crate) mod lookup_path;
pub(crate) mod memory_ledger;
pub(crate) mod merge_operator;
pub(crate) mod range;
pub(crate) mod shared_map;
pub(crate) mod stats;
pub(crate) mod turns;
pub(crate) mod types;
