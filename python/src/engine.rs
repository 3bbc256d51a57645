//! An open database: opening, closing and administration.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use terrane::{Db, Error, Isolation, Maintenance, OpenMode, Options, TransactionOptions};

use crate::changes::Changes;
use crate::convert;
use crate::design::DesignArgument;
use crate::errors;
use crate::forks::OfProcess;
use crate::interrupt;
use crate::view;

/// An open database.
#[pyclass(frozen, module = "terrane._terrane", name = "Engine")]
pub(crate) struct Engine {
    db: OfProcess<Db>,
    is_closed: AtomicBool,
}

impl Engine {
    /// Returns the database.
    ///
    /// # Errors
    /// `ClosedError`, or `ForkedError` in a child.
    #[inline]
    pub(crate) fn db(&self) -> PyResult<&Db> {
        let db = self.db.get()?;
        if self.is_closed.load(Ordering::Acquire) {
            return Err(errors::from_engine(Error::Closed));
        }
        Ok(db)
    }
}

/// Options as pairs of names and values, both strings.
type Texts = Vec<(String, String)>;

fn options_of(texts: &Texts) -> PyResult<Options> {
    let mut options = Options::new();
    for (name, text) in texts {
        options.set(name, text).map_err(errors::from_engine)?;
    }
    Ok(options)
}

#[pymethods]
impl Engine {
    /// Opens a database. `mode` is `r` for reading, `w` for an existing one, `c` to create a missing one, `n` to
    /// replace an existing one with an empty one, or `x` for a new one.
    #[new]
    #[pyo3(signature = (path, mode, options, if_new, design = None, change_design = false, among_other_files = false))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        mode: &str,
        options: Texts,
        if_new: Texts,
        design: Option<DesignArgument>,
        change_design: bool,
        among_other_files: bool,
    ) -> PyResult<Self> {
        let open_mode = match mode {
            "w" => OpenMode::MustExist,
            "x" => OpenMode::MustBeNew,
            _ => OpenMode::CreateIfMissing,
        };
        let mut set = options_of(&options)?.if_new(options_of(&if_new)?).open_mode(open_mode);
        if among_other_files {
            set = set.among_other_files();
        }
        if let Some(DesignArgument(design)) = design {
            set = if change_design { set.design_or_change(design) } else { set.design(design) };
        }
        // Options that are not valid leave the existing database as it is.
        if mode == "n" {
            match py.detach(|| set.destroy(&path)) {
                Ok(()) | Err(Error::NoDatabase { .. }) => {}
                Err(error) => return Err(errors::from_engine(error)),
            }
        }
        let is_read = mode == "r";
        let opened =
            py.detach(|| if is_read { set.open_read_only(&path) } else { set.open(&path) });
        let db = opened.map_err(errors::from_engine)?;
        Ok(Self { db: OfProcess::new(db), is_closed: AtomicBool::new(false) })
    }

    /// Closes the database; a second call does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db.get()?;
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        py.detach(|| db.clone().close()).map_err(errors::from_engine)
    }

    #[getter]
    fn closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    #[getter]
    fn path(&self) -> PyResult<PathBuf> {
        Ok(self.db()?.path().to_owned())
    }

    #[getter]
    fn durability(&self) -> PyResult<String> {
        Ok(self.db()?.durability().to_string())
    }

    #[getter]
    fn io_budget(&self) -> PyResult<String> {
        Ok(self.db()?.io_budget().to_string())
    }

    fn set_io_budget(&self, budget: &str) -> PyResult<()> {
        let budget = budget.parse::<terrane::IoBudget>().map_err(Error::from);
        let budget = budget.map_err(errors::from_engine)?;
        self.db()?.set_io_budget(budget).map_err(errors::from_engine)
    }

    fn keyspaces(&self) -> PyResult<Vec<String>> {
        Ok(self.db()?.keyspaces())
    }

    fn drop_keyspace(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        let db = self.db()?;
        py.detach(|| db.drop_keyspace(name)).map_err(errors::from_engine)
    }

    fn rename_keyspace(&self, py: Python<'_>, name: &str, new_name: &str) -> PyResult<bool> {
        let db = self.db()?;
        py.detach(|| db.rename_keyspace(name, new_name)).map_err(errors::from_engine)
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db()?;
        interrupt::run(py, db, Maintenance::flush_all)
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db()?;
        py.detach(|| db.sync()).map_err(errors::from_engine)
    }

    fn wait_for_compactions(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db()?;
        interrupt::run(py, db, Maintenance::wait_for_compactions)
    }

    fn checkpoint(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let db = self.db()?;
        interrupt::run(py, db, |maintenance| maintenance.checkpoint(&path))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let db = self.db()?;
        let stats = py.detach(|| db.stats());
        view::stats(py, &stats)
    }

    fn events(&self) -> PyResult<Vec<(u64, String)>> {
        let events = self.db()?.events();
        Ok(events.iter().map(|event| (event.number, event.event.to_string())).collect())
    }

    fn changes(&self, since: u64) -> PyResult<Changes> {
        let changes = self.db()?.changes(since).map_err(errors::from_engine)?;
        Ok(Changes::new(changes))
    }
}

/// Removes the files of a closed database, and nothing else.
#[pyfunction]
pub(crate) fn destroy(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    py.detach(|| Options::new().destroy(path)).map_err(errors::from_engine)
}

/// Returns the options of a transaction.
pub(crate) fn transaction_options(
    isolation: Option<&str>,
    durable: Option<&str>,
) -> PyResult<TransactionOptions> {
    let mut options = TransactionOptions::new();
    match isolation {
        None | Some("serializable") => {}
        Some("snapshot") => options = options.isolation(Isolation::Snapshot),
        Some(other) => {
            return Err(errors::invalid(format!(
                "isolation is 'serializable' or 'snapshot', not '{other}'"
            )));
        }
    }
    if let Some(text) = durable {
        options = options.durability(convert::durability(text)?);
    }
    Ok(options)
}

/// Returns the options with their meanings, defaults and values.
#[pyfunction]
pub(crate) fn option_table(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let all = Options::table().into_iter().map(|info| {
        let row = PyDict::new(py);
        row.set_item("name", info.name)?;
        row.set_item("about", info.about)?;
        row.set_item("default", info.default)?;
        row.set_item("accepted", info.accepted)?;
        row.set_item("trade_off", info.trade_off)?;
        row.set_item("takes_effect", info.takes_effect)?;
        Ok(row)
    });
    all.collect()
}
