//! An operation, and its measurement.

use std::error::Error;

use terrane::Db;

use crate::allocations;

/// What an operation returns.
pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// An operation on a database `T`.
pub(crate) struct Operation<T> {
    /// The path of the function, as callgrind names it.
    pub(crate) name: &'static str,
    /// Repeats the operation. It must not be inlined.
    pub(crate) run: fn(&T) -> Outcome,
    /// The repetitions.
    pub(crate) count: u64,
}

/// Names a function of this module, `$name`, which repeats an operation `$count` times.
macro_rules! operation {
    ($name:ident, $count:expr) => {
        $crate::operation::Operation {
            name: concat!(module_path!(), "::", stringify!($name)),
            run: $name,
            count: $count,
        }
    };
}
pub(crate) use operation;

impl<T> Operation<T> {
    /// Runs the operation on `subject` and prints its counts; `db` counts the bytes read and written.
    pub(crate) fn measure(&self, subject: &T, db: &Db) -> Outcome {
        let (read, written) = bytes(db)?;
        let before = allocations::of_this_thread();
        (self.run)(subject)?;
        let after = allocations::of_this_thread();
        let (read_after, written_after) = bytes(db)?;
        println!(
            "{}\t{}\t{}\t{}\t{}\t{}",
            self.name,
            self.count,
            after.count - before.count,
            after.bytes - before.bytes,
            read_after - read,
            written_after - written
        );
        Ok(())
    }
}

/// Returns the bytes read and written so far. What a write appended to the log counts once the log is synced.
fn bytes(db: &Db) -> Result<(u64, u64), terrane::Error> {
    db.sync()?;
    let stats = db.stats();
    Ok((stats.storage_bytes_read(), stats.storage_bytes_written()))
}
