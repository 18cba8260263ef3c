//! Network namespaces, by name: created, entered and deleted as `ip netns` does (ip-netns(8)).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

use super::{Context, Failure};

/// The folder of the namespaces.
const NAMED: &str = "/run/netns";
/// The namespace of this thread.
const OWN: &str = "/proc/thread-self/ns/net";

fn path_of(name: &str) -> PathBuf {
    Path::new(NAMED).join(name)
}

/// A namespace as a file.
///
/// # Errors
/// There is no such namespace.
pub fn handle_of(name: &str) -> Result<File, Failure> {
    File::open(path_of(name)).context(|| format!("entering namespace {name}"))
}

/// Creates a namespace.
///
/// # Errors
/// The name is taken, or the kernel refuses.
pub fn create(name: &str) -> Result<(), Failure> {
    let creating = || format!("creating namespace {name}");
    let path = new_file(name).context(creating)?;
    let home = File::open(OWN).context(creating)?;
    unshare(CloneFlags::CLONE_NEWNET).context(creating)?;
    let kept = keep_own(&path);
    setns(&home, CloneFlags::CLONE_NEWNET).context(|| "leaving a namespace".into())?;
    kept.context(creating)
}

/// Gives this thread's own namespace a name.
///
/// # Errors
/// The name is taken, or the kernel refuses.
pub fn name_own(name: &str) -> Result<(), Failure> {
    let naming = || format!("naming namespace {name}");
    let path = new_file(name).context(naming)?;
    keep_own(&path).context(naming)
}

/// Creates the file at which a namespace is kept under its name.
fn new_file(name: &str) -> io::Result<PathBuf> {
    fs::create_dir_all(NAMED)?;
    share_folder()?;
    let path = path_of(name);
    File::create_new(&path)?;
    Ok(path)
}

fn keep_own(path: &Path) -> nix::Result<()> {
    mount(
        Some(OWN),
        path,
        None::<&str>,
        MsFlags::MS_BIND,
        None::<&str>,
    )
}

/// Makes a mount in the folder of namespaces visible in all mount namespaces, and so its removal too. The folder has to be
/// a mount itself for that.
fn share_folder() -> nix::Result<()> {
    let shared = || {
        let flags = MsFlags::MS_SHARED | MsFlags::MS_REC;
        mount(None::<&str>, NAMED, None::<&str>, flags, None::<&str>)
    };
    shared().or_else(|_| {
        let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
        mount(Some(NAMED), NAMED, None::<&str>, flags, None::<&str>)?;
        shared()
    })
}

/// Deletes a namespace, with all devices in it.
///
/// # Errors
/// There is no such namespace, or the kernel refuses.
pub fn delete(name: &str) -> Result<(), Failure> {
    let deleting = || format!("deleting namespace {name}");
    let path = path_of(name);
    // A namespace that could not be mounted is only a file.
    let _ = umount2(&path, MntFlags::MNT_DETACH);
    fs::remove_file(&path).context(deleting)
}

/// Runs `work` with this thread in namespace `name` (`None` for its current one), and returns to the original one.
/// Sockets created by `work` stay in that namespace.
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
    let home = File::open(OWN).context(|| format!("entering namespace {name}"))?;
    let there = handle_of(name)?;
    setns(&there, CloneFlags::CLONE_NEWNET).context(|| format!("entering namespace {name}"))?;
    let done = work();
    setns(&home, CloneFlags::CLONE_NEWNET).context(|| "leaving a namespace".into())?;
    done
}
