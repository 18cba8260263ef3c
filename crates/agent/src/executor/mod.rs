//! The executor: builds a job's network, sends its traffic, records what happened.
//!
//! | module | what is there |
//! | --- | --- |
//! | `setup`, `namespace`, `link`, `generic`, `socket` | load kernel modules; build the network and remove it, by netlink |
//! | `session` | the run: a loop that lets flows act when they are due |
//! | `traffic/` | the flows, a file per transport |
//! | `tracing`, `ring`, `packets` | the kernel's tracepoints, and the fate of each packet from them |
//! | `tap` | the flow of each packet |
//! | `diag` | TCP_INFO |
//! | `clock` | the time of the run |
//! | [`path`] | a run whose packets pass Sojourn's own path |
//! | [`shell`], `ends`, `outside` | a program with its network behind that path; servers outside the machine |
//! | `foreign` | disciplines whose algorithm runs in another process |
//! | `live` | whoever watches either |
//! | [`machine`], `wire` | one of several machines that carry out a job: told what to do by lines; its interfaces |
//! | [`sandbox`] | namespaces that end with their last process, for both |
//! | `load` | checks whether the processors kept up |
//! | `radio`, `nl80211` | a run on the kernel's Wi-Fi queues |
//! | [`init`] | the first process of a virtual machine |

mod clock;
mod diag;
mod ends;
mod foreign;
mod generic;
pub mod init;
mod link;
mod live;
mod load;
pub mod machine;
mod namespace;
mod nl80211;
mod outside;
mod packets;
pub mod path;
mod radio;
mod ring;
pub mod sandbox;
mod session;
mod setup;
pub mod shell;
mod socket;
mod tap;
mod tracing;
mod traffic;
mod wire;

use std::fmt;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::utsname::uname;
use sojourn_units::Way;

use crate::job::{Flow, Job};
use crate::recording::Recording;
pub use session::interrupts;
use setup::Network;

/// Why a run failed, in one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure(pub String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Adds to a failure the operation that failed.
trait Context<T> {
    /// Puts `doing` before the failure.
    fn context(self, doing: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn context(self, doing: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|error| Failure(format!("{}: {error}", doing())))
    }
}

/// Open files that a run needs besides its flows'.
const OWN_FILES: u64 = 256;
/// Files that a flow may have open: a listener, and both ends of the connections of a browser's page.
const FILES_PER_FLOW: u64 = 16;
/// Linux's own bound of that limit (fs.nr_open).
const MOST_FILES: u64 = 1 << 20;

/// Raises the limit of open files, which is 1024 unless raised, to what the flows need.
fn allow_files(flows: &[Flow]) -> Result<(), Failure> {
    let raising = || "raising the limit of open files".to_owned();
    let (now, most) = getrlimit(Resource::RLIMIT_NOFILE).context(raising)?;
    let wanted = (OWN_FILES + FILES_PER_FLOW * flows.len() as u64).min(MOST_FILES);
    if wanted <= now {
        return Ok(());
    }
    setrlimit(Resource::RLIMIT_NOFILE, wanted, most.max(wanted)).context(raising)
}

/// Carries out a job. `begin` is told when the run can begin, on the monotonic clock, and returns when it begins. Calls
/// `progress` once a second with the seconds done so far.
///
/// # Errors
/// The kernel does not support the job; everything that was set up is removed again.
pub fn execute(
    job: &Job,
    begin: impl FnOnce(u64) -> Result<u64, Failure>,
    progress: &mut dyn FnMut(u64),
) -> Result<Recording, Failure> {
    if job.version != env!("CARGO_PKG_VERSION") {
        let (theirs, ours) = (&job.version, env!("CARGO_PKG_VERSION"));
        return Err(Failure(format!(
            "the job has version {theirs}, the agent {ours}"
        )));
    }
    allow_files(&job.flows)?;
    let network = Network::build(job)?;
    let mut recording = session::run(job, begin, progress)?;
    let (lost, impaired) = network.lost_on_wires()?;
    let impaired = impaired.into_iter();
    let impaired = impaired.map(|(way, lost)| (0, way == Way::Up, lost, None));
    recording.impaired = impaired.collect();
    if lost > 0 {
        recording.faults.push(format!(
            "{lost} packets were lost in netem delays, whose limit is too small"
        ));
    }
    // Under memory pressure receivers shrink their windows.
    if network.counted("TCPMemoryPressures")? > 0 {
        recording.faults.push(
            "TCP was under memory pressure: receivers limited their windows to a few segments"
                .into(),
        );
    }
    recording.timeouts = network.counted("TCPTimeouts")?;
    let oversize = recording
        .packets
        .iter()
        .filter(|row| row.bytes > job.frame)
        .count();
    if oversize > 0 {
        let frame = job.frame;
        recording.faults.push(format!(
            "{oversize} packets larger than {frame} B arrived at a queue: segmentation offload was on"
        ));
    }
    recording.kernel = release()?;
    Ok(recording)
}

/// The kernel's release.
fn release() -> Result<String, Failure> {
    let name = uname().context(|| "asking for the kernel's release".into())?;
    Ok(name.release().to_string_lossy().into_owned())
}
