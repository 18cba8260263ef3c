//! Python bindings.
#![forbid(unsafe_code)]
use pyo3::prelude::*;

/// The extension module.
#[pymodule]
mod _core {
    use super::*;
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("version", env!("CARGO_PKG_VERSION"))
    }
}
