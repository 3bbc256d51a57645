//! Designs as values.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};
use terrane_policy::catalogue;

use crate::errors;

/// How a tree is organised: its write buffer, compaction strategy and filters, as text such as
/// `tiering T=4; filter=5`.
#[pyclass(frozen, module = "terrane", name = "Design")]
pub(crate) struct Design {
    pub(crate) design: terrane::Design,
}

impl Design {
    pub(crate) fn new(design: terrane::Design) -> Self {
        Self { design }
    }
}

#[pymethods]
impl Design {
    #[new]
    #[pyo3(signature = (text = None, **settings))]
    fn parse(text: Option<&str>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut text = text.unwrap_or(catalogue::DEFAULT).to_owned();
        for (name, value) in settings.into_iter().flatten() {
            text.push_str(&format!("; {}={}", name.str()?.to_str()?, value.str()?.to_str()?));
        }
        terrane_lab::input::spec::parse(&text).map(Self::new).map_err(errors::from_lab)
    }

    /// The layout of the levels, such as `tiering`.
    #[getter]
    fn layout(&self) -> String {
        self.design.strategy.eagerness.to_string()
    }

    /// Every setting by name, as text.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let parameters = PyDict::new(py);
        for (name, value) in self.design.settings() {
            parameters.set_item(name, value)?;
        }
        Ok(parameters)
    }

    /// Returns the design with other settings.
    #[pyo3(signature = (**settings))]
    fn replace(&self, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::parse(Some(&self.design.to_string()), settings)
    }

    /// Returns the settings in which two designs differ, with the values of each.
    fn differences(&self, other: &Self) -> Vec<(String, String, String)> {
        let differences = self.design.differences(&other.design).into_iter();
        differences
            .map(|one| (one.key.unwrap_or("layout").to_owned(), one.first, one.second))
            .collect()
    }

    fn __str__(&self) -> String {
        self.design.summary()
    }

    fn __repr__(&self) -> String {
        format!("terrane.Design('{}')", self.design.summary())
    }

    /// A string never equals a design: several strings can describe one design, although they differ and
    /// have different hashes.
    fn __eq__(&self, other: &Bound<'_, Self>) -> bool {
        self.design == other.get().design
    }

    /// A design is copied and pickled as its text.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (String,)) {
        (slf.get_type(), (slf.get().design.to_string(),))
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.design.to_string().hash(&mut hasher);
        hasher.finish()
    }
}

/// A design, or its text.
pub(crate) struct DesignArgument(pub(crate) terrane::Design);

impl<'a, 'py> FromPyObject<'a, 'py> for DesignArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(design) = object.cast::<Design>() {
            return Ok(Self(design.get().design.clone()));
        }
        let text = object.cast::<PyString>()?;
        Design::parse(Some(text.to_str()?), None).map(|parsed| Self(parsed.design))
    }
}

/// Returns the names of designs with their descriptions.
#[pyfunction]
pub(crate) fn design_names() -> Vec<(&'static str, &'static str)> {
    catalogue::ALL.iter().map(|entry| (entry.name, entry.about)).collect()
}
