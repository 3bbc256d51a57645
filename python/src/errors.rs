//! Exceptions: `terrane.Error`, and a subclass for each kind that a program may handle differently.
//!
//! The message is that of the engine. An exception for an invalid argument is also a `ValueError`, and one of
//! the operating system also an `OSError`, so that code written for other stores catches them.

use pyo3::exceptions::{PyException, PyFileNotFoundError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use terrane::ErrorKind;

/// The classes, created once for the process.
struct Classes {
    error: Py<PyType>,
    invalid: Py<PyType>,
    not_found: Py<PyType>,
    corruption: Py<PyType>,
    unsupported: Py<PyType>,
    io: Py<PyType>,
    disk_full: Py<PyType>,
    locked: Py<PyType>,
    busy: Py<PyType>,
    conflict: Py<PyType>,
    closed: Py<PyType>,
    read_only: Py<PyType>,
    changes_gone: Py<PyType>,
    poisoned: Py<PyType>,
    internal: Py<PyType>,
    forked: Py<PyType>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

/// Returns a new exception class of the package.
fn class(
    py: Python<'_>,
    name: &str,
    bases: &[&Bound<'_, PyType>],
    doc: &str,
) -> PyResult<Py<PyType>> {
    let namespace = PyDict::new(py);
    namespace.set_item("__module__", "terrane")?;
    namespace.set_item("__doc__", doc)?;
    let bases = PyTuple::new(py, bases)?;
    let made = py.get_type::<PyType>().call1((name, bases, namespace))?;
    Ok(made.cast_into::<PyType>()?.unbind())
}

fn classes(py: Python<'_>) -> PyResult<&Classes> {
    CLASSES.get_or_try_init(py, || {
        let base = class(
            py,
            "Error",
            &[&py.get_type::<PyException>()],
            "An error of Terrane; the subclasses say what the caller can do.",
        )?;
        let error = base.bind(py);
        let (value, os) = (&py.get_type::<PyValueError>(), &py.get_type::<PyOSError>());
        let missing = &py.get_type::<PyFileNotFoundError>();
        let runtime = &py.get_type::<PyRuntimeError>();
        let of = |name: &str, doc: &str| class(py, name, &[error], doc);
        Ok(Classes {
            invalid: class(
                py,
                "InvalidError",
                &[error, value],
                "Fix the call: an argument or option is invalid.",
            )?,
            not_found: class(
                py,
                "NotFoundError",
                &[error, missing],
                "The directory does not contain a database.",
            )?,
            corruption: of(
                "CorruptionError",
                "Restore from a backup, or repair: a file is damaged.",
            )?,
            unsupported: of(
                "UnsupportedError",
                "Use a newer version of Terrane to read these files.",
            )?,
            io: class(
                py,
                "StorageError",
                &[error, os],
                "The operating system refused an operation.",
            )?,
            disk_full: class(
                py,
                "DiskFullError",
                &[error, os],
                "The disk is full. Reads continue, and writes resume once there is space.",
            )?,
            locked: of("LockedError", "Another process or handle has the database open.")?,
            busy: of("BusyError", "Try again: a writer changed the database during the call.")?,
            conflict: of(
                "ConflictError",
                "Run the transaction again: another write changed its basis.",
            )?,
            closed: class(
                py,
                "ClosedError",
                &[error, runtime],
                "The database, transaction or iterator was closed.",
            )?,
            read_only: of("ReadOnlyError", "The database was opened read-only.")?,
            changes_gone: of("ChangesGoneError", "The log no longer has the changes asked for.")?,
            poisoned: of("PoisonedError", "Close the database and open it again: a sync failed.")?,
            internal: of("InternalError", "Report a bug in Terrane.")?,
            forked: of(
                "ForkedError",
                "A handle was used in a forked process; open the database there.",
            )?,
            error: base,
        })
    })
}

/// Adds the classes to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let all = classes(module.py())?;
    for class in [
        &all.error,
        &all.invalid,
        &all.not_found,
        &all.corruption,
        &all.unsupported,
        &all.io,
        &all.disk_full,
        &all.locked,
        &all.busy,
        &all.conflict,
        &all.closed,
        &all.read_only,
        &all.changes_gone,
        &all.poisoned,
        &all.internal,
        &all.forked,
    ] {
        let class = class.bind(module.py());
        module.add(class.name()?, class)?;
    }
    Ok(())
}

/// Returns the exception of the class that `choose` returns.
fn raised(message: String, choose: impl FnOnce(&Classes) -> &Py<PyType>) -> PyErr {
    Python::attach(|py| match classes(py) {
        Ok(all) => PyErr::from_type(choose(all).bind(py).clone(), (message,)),
        Err(error) => error,
    })
}

/// Returns the exception for an error of the engine.
#[cold]
pub(crate) fn from_engine(error: terrane::Error) -> PyErr {
    use terrane::Error;
    raised(error.to_string(), |all| match &error {
        Error::NoDatabase { .. } => &all.not_found,
        Error::ReadOnly => &all.read_only,
        Error::ChangesGone(_) => &all.changes_gone,
        Error::DiskFull(_) => &all.disk_full,
        _ => match error.kind() {
            ErrorKind::Invalid => &all.invalid,
            ErrorKind::Corruption => &all.corruption,
            ErrorKind::Unsupported => &all.unsupported,
            ErrorKind::Io => &all.io,
            ErrorKind::Locked => &all.locked,
            ErrorKind::Busy => &all.busy,
            ErrorKind::Conflict => &all.conflict,
            ErrorKind::Closed => &all.closed,
            ErrorKind::Poisoned => &all.poisoned,
            ErrorKind::Internal => &all.internal,
            _ => &all.error,
        },
    })
}

/// Returns the exception for an error of the laboratory.
#[cold]
pub(crate) fn from_lab(error: anyhow::Error) -> PyErr {
    for cause in error.chain() {
        if let Some(engine) = cause.downcast_ref::<terrane::Error>() {
            return from_engine(engine.clone());
        }
    }
    invalid(format!("{error:#}"))
}

/// Returns an `InvalidError`.
#[cold]
pub(crate) fn invalid(message: impl Into<String>) -> PyErr {
    raised(message.into(), |all| &all.invalid)
}

/// Returns a `ClosedError`.
#[cold]
pub(crate) fn closed(message: impl Into<String>) -> PyErr {
    raised(message.into(), |all| &all.closed)
}

/// Returns the exception for a handle that a forked process has inherited.
#[cold]
pub(crate) fn forked() -> PyErr {
    let message = "this handle belongs to the parent process; open the database again after a fork, or \
                   start processes with multiprocessing's 'spawn'";
    raised(message.to_owned(), |all| &all.forked)
}
