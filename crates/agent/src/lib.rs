//! Experiments on the Linux kernel's own queue disciplines and TCP.
//!
//! The agent is one static program. It builds an experiment's network out of namespaces, sends its traffic over real
//! sockets, and records what became of every packet from the kernel's tracepoints. It does so as the first process of
//! a virtual machine, or as root on a running kernel.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`compile`] | an experiment's arm as a [`Job`], or why Linux cannot run it |
//! | [`job`] | what the agent is told |
//! | [`disciplines`] | disciplines as `tc` words, and their counters |
//! | [`topology`] | the network as `ip` and `tc` commands |
//! | `executor` | the agent at work; on Linux only |
//! | [`recording`] | what it hands back |
//! | `replay` | a recording told to the probes and meters that every backend has |
//! | `capture` | headers of packets as a pcapng file |
//! | [`summary`] | a recording as results |

mod capture;
pub mod compile;
pub mod disciplines;
#[cfg(target_os = "linux")]
pub mod executor;
pub mod job;
pub mod recording;
mod replay;
pub mod summary;
pub mod topology;

pub use compile::{job as compile_job, notes as compile_notes};
pub use disciplines::Refusal;
pub use job::Job;
pub use recording::Recording;
pub use summary::{LinuxRun, summarise};
