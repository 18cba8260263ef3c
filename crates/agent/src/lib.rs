//! Experiments on the Linux kernel's own queue disciplines and TCP.
//!
//! The agent is one static program. It builds an experiment's network from namespaces, sends its traffic over real
//! sockets, and records the fate of every packet from the kernel's tracepoints. It runs as the first process of a
//! virtual machine, or as root on a running kernel.
//!
//! The Linux backend is this crate, the folder `python/sojourn/linux`, which starts machines and the agent, and
//! `crates/python/src/linux.rs`, which connects the two.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`compile`] | compiles an experiment's arm to a [`Job`], or refuses what Linux cannot run |
//! | `job` | the input of the agent |
//! | [`decision`] | the messages between a queue and its algorithm in another process |
//! | [`disciplines`] | disciplines as options of the kernel, and their counters |
//! | [`shaper`], `netem` | HTB and netem, which make a link |
//! | [`hosts`], [`ports`] | the hosts of an experiment's paths, and the ends of its links |
//! | [`topology`] | the network as steps that build it |
//! | [`parts`] | a job on several machines: the part of each, and the recording of all from theirs |
//! | `netlink` | the bytes of netlink messages |
//! | `executor` | carries out a job; on Linux only |
//! | [`recording`] | the output of the agent |
//! | `replay` | feeds a recording to the probes and meters of all backends |
//! | `appeared` | what to measure of flows that appeared during a run |
//! | `capture` | packet headers as a pcapng file |
//! | [`summary`] | computes the results from a recording |
//! | [`wifi`] | the input and output of a run on the kernel's Wi-Fi queues |

mod appeared;
mod capture;
pub mod compile;
pub mod decision;
pub mod disciplines;
#[cfg(target_os = "linux")]
pub mod executor;
pub mod hosts;
mod job;
mod netem;
mod netlink;
pub mod parts;
pub mod ports;
pub mod recording;
mod replay;
pub mod shaper;
pub mod summary;
pub mod topology;
pub mod wifi;

pub use compile::{
    check_links as check_path_links, check_parts, job as compile_job, notes as compile_notes,
    path_job as compile_path_job,
};
pub use disciplines::Refusal;
pub use job::{Job, PathJob, ShellJob};
pub use recording::Recording;
#[cfg(target_os = "linux")]
pub use sojourn_datapath::scheduling;
pub use summary::{LinuxRun, summarise};
