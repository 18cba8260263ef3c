//! Runs code inside a network namespace.

use std::fs::File;
use std::path::Path;

use nix::sched::{CloneFlags, setns};

use super::{Context, Failure};

/// The folder of the namespaces of `ip netns`.
const NAMED: &str = "/run/netns";

/// Runs `work` with this thread in namespace `name` (`None` for its current one), and returns to the original one.
/// Sockets and processes created by `work` stay in that namespace.
///
/// # Errors
/// As `work`, or the namespace cannot be entered.
pub fn within<T>(
    name: Option<&str>,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(name) = name else {
        return work();
    };
    let entering = || format!("entering namespace {name}");
    let home = File::open("/proc/thread-self/ns/net").context(entering)?;
    let there = File::open(Path::new(NAMED).join(name)).context(entering)?;
    setns(&there, CloneFlags::CLONE_NEWNET).context(entering)?;
    let done = work();
    setns(&home, CloneFlags::CLONE_NEWNET).context(|| "leaving a namespace".into())?;
    done
}
