//! Asks the kernel to run this thread as soon as it has something to do.

#![expect(unsafe_code, reason = "nix has no sched_setscheduler")]

use nix::errno::Errno;
use nix::libc::{self, SCHED_FIFO, SCHED_RESET_ON_FORK, c_int};
use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::prctl::set_timerslack;

/// Priorities above those of other programs, and below those of the kernel that are more urgent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Priority {
    /// Of the path, which all packets pass.
    Path = 10,
    /// Of programs that send and receive the traffic of an experiment.
    Traffic = 5,
}

/// Asks for SCHED_FIFO for the calling thread, for exact timers, and that its memory stays in place. Returns what the user should
/// know if the first is refused; the others only help.
pub fn ask_for_real_time(priority: Priority) -> Option<String> {
    let _ = set_timerslack(1);
    let _ = mlockall(MlockAllFlags::MCL_CURRENT);
    ask_for_fifo(priority)
}

/// As [`ask_for_real_time`], but only asks for SCHED_FIFO.
pub fn ask_for_fifo(priority: Priority) -> Option<String> {
    // The kernel's struct sched_param. Its call, as musl's function of this name refuses all.
    let parameters: c_int = priority as c_int;
    // SAFETY: the number lives through the call, which only reads it.
    let done = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            0,
            SCHED_FIFO | SCHED_RESET_ON_FORK,
            &raw const parameters,
        )
    };
    Errno::result(done).err().map(|errno| {
        format!(
            "SCHED_FIFO was refused ({}), so that packets are later on a busy machine; root has it, or a limit: ulimit -r {}",
            errno.desc(),
            Priority::Path as i32
        )
    })
}
