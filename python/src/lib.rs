//! The compiled part of the Python package `terrane`: the module `terrane._terrane`.
//!
//! The classes here hold handles of the engine; conveniences, pictures and documentation for users are in
//! the Python sources next to it. Every call that may do I/O detaches from the interpreter.
//!
//! | module | one line |
//! |---|---|
//! | `errors` | exceptions by kind of error |
//! | `forks` | handles that refuse to work in a forked process |
//! | `interrupt` | maintenance that Ctrl-C ends |
//! | `convert` | bytes, ranges, durations and designs as arguments |
//! | `pair` | pairs of a key and a value as arguments |
//! | `value` | a value as a buffer, without a copy |
//! | `design` | designs |
//! | `scan` | iterators that read in chunks |
//! | `reading` | the reads of keyspaces, snapshots and transactions |
//! | `engine` | an open database: opening, closing, administration |
//! | `keyspace` | a keyspace: reads, writes, and its batches, snapshots and transactions |
//! | `batch` | atomic writes |
//! | `snapshot` | consistent views |
//! | `transaction` | optimistic transactions |
//! | `changes` | the feed of changes |
//! | `view` | statistics and trees as dictionaries |
//! | `simulate`, `advise`, `sweep` | the laboratory |

mod advise;
mod batch;
mod changes;
mod convert;
mod design;
mod engine;
mod errors;
mod forks;
mod interrupt;
mod keyspace;
mod pair;
mod reading;
mod scan;
mod simulate;
mod snapshot;
mod sweep;
mod transaction;
mod value;
mod view;

use pyo3::prelude::*;

#[pymodule]
fn _terrane(module: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::register(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("MAX_KEY_LEN", terrane::MAX_KEY_LEN)?;
    module.add("MAX_VALUE_LEN", terrane::MAX_VALUE_LEN)?;
    module.add_class::<engine::Engine>()?;
    module.add_class::<reading::Readable>()?;
    module.add_class::<keyspace::Keyspace>()?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<snapshot::Snapshot>()?;
    module.add_class::<transaction::Transaction>()?;
    module.add_class::<changes::Changes>()?;
    module.add_class::<scan::Entries>()?;
    module.add_class::<value::Value>()?;
    module.add_class::<design::Design>()?;
    module.add_function(wrap_pyfunction!(forks::note_fork, module)?)?;
    module.add_function(wrap_pyfunction!(engine::destroy, module)?)?;
    module.add_function(wrap_pyfunction!(engine::option_table, module)?)?;
    module.add_function(wrap_pyfunction!(design::design_names, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(advise::advise, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::sweep_experiments, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::sweep_run, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::sweep_collect, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::set_program, module)?)?;
    Ok(())
}
