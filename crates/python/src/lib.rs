//! The Python bindings, module `sojourn._core`. They convert arguments, call the other crates and convert the results;
//! they contain no other logic.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`plan`] | a parsed experiment file, and its runs |
//! | [`sweep`] | a sweep too large for memory |
//! | [`run_spec`] | one run as a value, and its monitor |
//! | [`session`] | one run, driven step by step |
//! | [`vector`] | many runs in step, for a controller that learns |
//! | [`path`] | a bottleneck around packets of Python's own |
//! | [`run`] | the results of a run |
//! | [`replay`] | replays a recorded queue through a discipline |
//! | [`linux`] | the input and the output of the agent on Linux |
//! | [`own`] | users' algorithms, written in Python |
//! | [`decider`] | such algorithms decide about packets in another process |
//! | [`lists`] | the names accepted in a file, as JSON |
//! | [`errors`] | Rust errors as Python exceptions |

use pyo3::prelude::*;

#[cfg(unix)]
mod decider;
mod errors;
mod linux;
mod lists;
mod own;
mod path;
mod plan;
mod replay;
mod run;
mod run_spec;
mod session;
mod sweep;
mod vector;

/// Asks the kernel for huge pages: runs with thousands of flows are spread over many small ones, and finding these takes
/// up to a third of the time where the kernel gives huge pages only on request.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The compiled core: reads experiment files and runs them.
#[pymodule]
mod _core {
    use super::*;

    #[cfg(unix)]
    #[pymodule_export]
    use decider::Decider;
    #[pymodule_export]
    use errors::{Cancelled, ExperimentError, RunError};
    #[pymodule_export]
    use linux::{
        linux_job, linux_joined, linux_modules, linux_notes, linux_parts, linux_run, path_check,
        path_job, shell_job,
    };
    #[pymodule_export]
    use lists::{
        congestion_controls_json, design_json, disciplines_json, metrics_json, network_json,
        quantity, schema_json, traffic_json, units_json,
    };
    #[pymodule_export]
    use own::{
        AckView, Algorithm, PacketView, QueueView, SampleView, WindowView, register_aqm,
        register_congestion_control, unregister_aqm, unregister_congestion_control,
    };
    #[pymodule_export]
    use path::{Delivery, Path};
    #[pymodule_export]
    use plan::Plan;
    #[pymodule_export]
    use replay::Recording;
    #[pymodule_export]
    use run::Run;
    #[pymodule_export]
    use run_spec::{Monitor, RunSpec, run_each};
    #[pymodule_export]
    use session::Session;
    #[pymodule_export]
    use sweep::Sweep;
    #[pymodule_export]
    use vector::Vector;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // IPython and Jupyter show this in place of a traceback.
        let line = c"lambda self: [f'ExperimentError: {self}']";
        let line = module.py().eval(line, None, None)?;
        let error = module.getattr("ExperimentError")?;
        error.setattr("_render_traceback_", line)?;
        module.add("version", env!("CARGO_PKG_VERSION"))
    }
}
