//! A value as a buffer, without a copy.

use std::ffi::c_int;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::Bytes;
use crate::forks::OfProcess;

/// A value that shares the memory of the database: the block or the memtable that holds it stays in memory
/// while the object lives. `memoryview(value)`, `numpy.frombuffer(value)` and `file.write(value)` read it
/// without a copy; `bytes(value)` copies it.
#[pyclass(frozen, module = "terrane", name = "Value")]
pub(crate) struct Value {
    value: OfProcess<terrane::Value>,
}

impl Value {
    pub(crate) fn new(value: terrane::Value) -> Self {
        Self { value: OfProcess::new(value) }
    }
}

#[pymethods]
impl Value {
    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.value.get()?))
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.value.get()?.len())
    }

    fn __eq__(&self, other: Bytes<'_>) -> PyResult<bool> {
        Ok(**self.value.get()? == *other.as_ref())
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<terrane.Value of {} bytes>", self.value.get()?.len()))
    }

    /// Lends the bytes; `slf` stays alive until the buffer is released.
    ///
    /// # Safety
    /// `view` points to a buffer that the interpreter wants filled, as the buffer protocol says.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let bytes: &[u8] = slf.get().value.get()?;
        let length = ffi::Py_ssize_t::try_from(bytes.len())
            .map_err(|_| PyBufferError::new_err("the value is too long for a buffer"))?;
        let start = bytes.as_ptr().cast_mut().cast();
        // SAFETY: `view` is valid because the interpreter passed it. The bytes neither move nor change while
        // the object lives, because the class is frozen and the engine pins them, and the view holds a
        // reference to the object. It is read-only, so nobody writes through `start`.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, 1, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
