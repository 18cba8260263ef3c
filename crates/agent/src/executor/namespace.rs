//! Doing things inside a network namespace.

use std::fs::File;
use std::path::Path;

use nix::sched::{CloneFlags, setns};

use super::{Context, Failure};

/// Where `ip netns` keeps its namespaces.
const NAMED: &str = "/run/netns";

/// Runs `work` with this thread in namespace `name` (`None`: where it is), and comes back. What `work` creates,
/// sockets and programs, stays there.
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
