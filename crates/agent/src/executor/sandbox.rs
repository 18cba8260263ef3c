//! Namespaces that end with their last process: whatever kills it, nothing is left on the host.
//!
//! Three processes, each this program:
//!
//! 1. [`apart`] makes the namespaces and waits, for as long as the process that started it lives. Without root they belong to a
//!    user namespace, in which it is root.
//! 2. [`inside`]: the first process of a process namespace. When it ends, the kernel kills all others in it, and removes
//!    devices, network namespaces and mounts, which nothing else refers to.
//! 3. [`plain`] becomes the user's program, with the user's own rights.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getegid, geteuid, getppid, pipe};

use super::{Context, Failure};

/// The first argument of a job with traffic of its own.
pub const PATH: &str = "path";
/// This program.
const SELF: &str = "/proc/self/exe";
/// A shell's exit status of a process that a signal has ended is this, plus the signal's number.
const BY_SIGNAL: u8 = 128;

/// The signals that are passed on, and those of the terminal, which every process gets by itself.
pub const PASSED_ON: [Signal; 4] = [
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];
const OF_TERMINAL: [Signal; 2] = [Signal::SIGINT, Signal::SIGQUIT];

/// All of them, and that of a child that ends. They are blocked, and read when it is time.
pub fn handled() -> SigSet {
    let others = [Signal::SIGCHLD].into_iter().chain(OF_TERMINAL);
    PASSED_ON.into_iter().chain(others).collect()
}

fn block() -> Result<(), Failure> {
    handled()
        .thread_block()
        .context(|| "blocking signals".into())
}

/// The exit status of a process as a shell has it; `None` if it has not ended.
pub fn status_of(status: WaitStatus) -> Option<u8> {
    match status {
        WaitStatus::Exited(_, code) => Some(code as u8),
        WaitStatus::Signaled(_, signal, _) => Some(BY_SIGNAL + signal as u8),
        _ => None,
    }
}

/// Runs this program with `arguments` in namespaces of its own; returns its exit status. `parent`: the process that started this
/// one, without which it ends. Without [`PATH`] it keeps the network of the machine for now.
///
/// # Errors
/// The kernel refuses.
pub fn apart(parent: i32, arguments: &[OsString]) -> Result<u8, Failure> {
    set_pdeathsig(Signal::SIGKILL).context(|| "asking for a signal".into())?;
    if getppid().as_raw() != parent {
        return Err(Failure(
            "the process that started the agent has ended".into(),
        ));
    }
    block()?;
    let (user, group) = (geteuid(), getegid());
    if !user.is_root() {
        unshare(CloneFlags::CLONE_NEWUSER).context(|| {
            "this system allows no user namespaces without root (kernel.unprivileged_userns_clone, user.max_user_namespaces)".into()
        })?;
        map(&format!("0 {user} 1"), &format!("0 {group} 1"))?;
    }
    let mut own = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID;
    own.set(
        CloneFlags::CLONE_NEWNET,
        arguments.first().is_some_and(|first| first == PATH),
    );
    unshare(own).context(|| "creating namespaces".into())?;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>)
        .context(|| "keeping mounts apart".into())?;
    // The other end is this process's alone: it closes when this process ends.
    let (line, _held) = pipe().context(|| "opening a pipe".into())?;
    fcntl(&line, FcntlArg::F_SETFD(FdFlag::empty())).context(|| "opening a pipe".into())?;
    fcntl(&_held, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).context(|| "opening a pipe".into())?;
    let mut command = Command::new(SELF);
    command.arg("inside").arg(line.as_raw_fd().to_string());
    command
        .args([user.to_string(), group.to_string()])
        .args(arguments);
    let child = command.spawn().context(|| "starting the agent".into())?;
    drop(line);
    let child = Pid::from_raw(child.id() as i32);
    loop {
        let signal = handled().wait().context(|| "waiting for signals".into())?;
        if PASSED_ON.contains(&signal) {
            // It may have ended.
            let _ = kill(child, signal);
        } else if signal == Signal::SIGCHLD {
            let found = waitpid(child, Some(WaitPidFlag::WNOHANG));
            if let Some(status) = status_of(found.context(|| "waiting for the agent".into())?) {
                return Ok(status);
            }
        }
    }
}

/// Maps the user and the group of a new user namespace.
fn map(user: &str, group: &str) -> Result<(), Failure> {
    let writing = || "naming the user of a user namespace".to_owned();
    fs::write("/proc/self/setgroups", "deny").context(writing)?;
    fs::write("/proc/self/uid_map", user).context(writing)?;
    fs::write("/proc/self/gid_map", group).context(writing)
}

/// To be called first by the first process of the namespaces. `line`: the pipe that closes when the process that started it ends.
///
/// # Errors
/// That process has ended, or the kernel refuses.
pub fn inside(line: &str) -> Result<(), Failure> {
    set_pdeathsig(Signal::SIGKILL).context(|| "asking for a signal".into())?;
    let number: i32 = line
        .parse()
        .context(|| "reading the number of a pipe".into())?;
    let own = File::open(format!("/proc/self/fd/{number}")).context(|| "opening a pipe".into())?;
    nix::unistd::close(number).context(|| "closing a pipe".into())?;
    let mut files = [PollFd::new(own.as_fd(), PollFlags::POLLIN)];
    poll(&mut files, PollTimeout::ZERO).context(|| "polling a pipe".into())?;
    if files[0].revents().is_some_and(|found| !found.is_empty()) {
        return Err(Failure(
            "the process that started the agent has ended".into(),
        ));
    }
    block()?;
    // Processes as this namespace numbers them. Some containers do not allow it; then programs see the outer numbers.
    let _ = mount(
        Some("proc"),
        "/proc",
        Some("proc"),
        MsFlags::empty(),
        None::<&str>,
    );
    Ok(())
}

/// Puts a folder of the agent's own in the place of /run, where namespaces have names.
///
/// # Errors
/// The kernel refuses.
pub fn own_run_folder() -> Result<(), Failure> {
    mount(
        Some("tmpfs"),
        "/run",
        Some("tmpfs"),
        MsFlags::empty(),
        None::<&str>,
    )
    .context(|| "mounting /run".into())
}

/// Becomes a program with the rights of this user and group. Returns only if that fails.
pub fn plain(user: u32, group: u32, program: &[OsString]) -> Failure {
    let become_it = || -> Result<Failure, Failure> {
        if user != 0 {
            unshare(CloneFlags::CLONE_NEWUSER).context(|| "giving up rights".into())?;
            map(&format!("{user} 0 1"), &format!("{group} 0 1"))?;
        }
        SigSet::all()
            .thread_unblock()
            .context(|| "unblocking signals".into())?;
        let Some((name, arguments)) = program.split_first() else {
            return Err(Failure("there is no program".into()));
        };
        let error = Command::new(name).args(arguments).exec();
        Ok(Failure(format!("{}: {error}", name.to_string_lossy())))
    };
    become_it().unwrap_or_else(|failure| failure)
}

/// The command that becomes a program by [`plain`].
pub fn as_plain((user, group): (u32, u32), program: &[OsString]) -> Command {
    let mut command = Command::new(SELF);
    command
        .arg("plain")
        .args([user.to_string(), group.to_string()])
        .args(program);
    command
}

/// A new network namespace, which lives as long as this file.
///
/// # Errors
/// The kernel refuses.
pub fn network_namespace() -> Result<OwnedFd, Failure> {
    const OWN: &str = "/proc/thread-self/ns/net";
    let creating = || "creating a network namespace".to_owned();
    let home = File::open(OWN).context(creating)?;
    unshare(CloneFlags::CLONE_NEWNET).context(creating)?;
    let made = File::open(OWN).context(creating);
    nix::sched::setns(&home, CloneFlags::CLONE_NEWNET).context(creating)?;
    Ok(made?.into())
}
