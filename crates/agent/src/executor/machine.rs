//! One of several machines that carry out a job: what `sojourn --on lab.toml` starts there over ssh.
//!
//! It is told what to do by lines on standard input, and answers by lines on standard output. Two processes, each this
//! program, whose file is removed at once:
//!
//! 1. [`supervise`] notes the machine's settings, waits for the other process and restores them, whatever ended it.
//! 2. [`attend`] does what it is told. Its namespaces have names only in a mount namespace of the two, so that the kernel
//!    removes them with their devices when both have ended.
//!
//! When standard input ends, or says nothing for ten seconds, both clean up and end.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use serde::Deserialize;
use serde_json::{Value, json};

use super::clock::monotonic;
use super::link::Link;
use super::wire::{self, Settings, Wire};
use super::{Context, Failure, execute, interrupts, namespace, release, sandbox};
use crate::job::{Attachment, Job};

/// Held by the current run, also by one with `--on host`.
const LOCK: &str = "/run/sojourn-host.lock";
const TRACEFS: &str = "/sys/kernel/tracing";
/// How long standard input may be silent.
const PATIENCE: Duration = Duration::from_secs(10);
/// The namespace in which the kernel's parts are looked for.
const LOOKING: &str = "sj-look";

/// A line of standard input.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Told {
    /// Tell about the machine: which of these disciplines and congestion controls its kernel lacks.
    Look {
        disciplines: Vec<String>,
        controls: Vec<String>,
    },
    /// Tell the time.
    Clock,
    /// Put the interfaces up, without offloads.
    Prepare,
    /// Count the bytes that pass the interfaces in this time.
    Quiet { ms: u64 },
    /// Count the datagrams of a probe.
    Listen { at: Attachment, ms: u64 },
    /// Send the datagrams of a probe.
    Send { at: Attachment, bps: u64, ms: u64 },
    /// Carry out a part of a job, from the line `begin` on.
    Run(Box<Job>),
    /// The time at which it begins.
    Begin(u64),
}

fn say(value: &Value) {
    let mut out = io::stdout().lock();
    // Nobody hears it if the connection has ended, which standard input tells too.
    let _ = writeln!(out, "{value}").and_then(|()| out.flush());
}

/// Runs [`attend`] and restores the machine afterwards.
///
/// # Errors
/// The user is not root, another run is in progress, or the kernel refuses.
pub fn supervise(wires: &[String]) -> Result<u8, Failure> {
    remove_self();
    if !geteuid().is_root() {
        return Err(Failure("needs root: use ssh = \"root@…\"".into()));
    }
    let lock = File::create(LOCK).context(|| LOCK.into())?;
    let Ok(_lock) = Flock::lock(lock, FlockArg::LockExclusiveNonblock) else {
        return Err(Failure("another run is in progress there".into()));
    };
    let blocking = || "blocking signals".to_owned();
    let mut signals = interrupts();
    signals.add(Signal::SIGHUP);
    signals.thread_block().context(blocking)?;
    unshare(CloneFlags::CLONE_NEWNS).context(|| "keeping mounts apart".into())?;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>)
        .context(|| "keeping mounts apart".into())?;
    sandbox::own_run_folder()?;
    if !Path::new(TRACEFS).join("instances").exists() {
        // A kernel without tracing is told of when it is looked at.
        let _ = mount(
            Some("nodev"),
            TRACEFS,
            Some("tracefs"),
            MsFlags::empty(),
            None::<&str>,
        );
    }
    let before = Settings::take(wires);
    let child = Command::new("/proc/self/exe")
        .arg("attend")
        .args(wires)
        .spawn();
    let mut child = child.context(|| "starting the agent".into())?;
    let status = child.wait();
    before.restore();
    // Left only by an agent that was killed.
    let _ = fs::remove_dir(format!("{TRACEFS}/instances/sojourn-{}", child.id()));
    Ok(u8::from(!status.is_ok_and(|status| status.success())))
}

/// Removes this program's file and its folder, if they were made to be run once.
fn remove_self() {
    let Ok(file) = std::env::current_exe() else {
        return;
    };
    let folder = file.parent().unwrap_or_else(|| Path::new("/"));
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("sojourn-agent.") {
        // It runs without its file.
        let _ = fs::remove_file(&file).and_then(|()| fs::remove_dir(folder));
    }
}

/// Does what standard input tells, until it ends.
///
/// # Errors
/// The kernel refuses.
pub fn attend(wires: &[String]) -> Result<(), Failure> {
    set_pdeathsig(Signal::SIGTERM).context(|| "asking for a signal".into())?;
    let (tell, told) = channel();
    thread::spawn(move || hear(&tell));
    say(&json!({ "hello": env!("CARGO_PKG_VERSION") }));
    while let Ok(line) = told.recv() {
        match answer(&line, wires, &told) {
            Ok(value) => say(&value),
            Err(failure) => say(&json!({ "error": failure.0 })),
        }
    }
    Ok(())
}

/// Passes on the lines of standard input. Ends the run in progress when there are no more. An empty line is a sign of life.
fn hear(tell: &Sender<String>) {
    let mut input = BufReader::new(io::stdin());
    let patience = PollTimeout::try_from(PATIENCE).unwrap_or(PollTimeout::MAX);
    loop {
        if input.buffer().is_empty() {
            let stdin = io::stdin();
            let mut files = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
            if poll(&mut files, patience).is_ok_and(|ready| ready == 0) {
                let silent = PATIENCE.as_secs();
                say(&json!({ "error": format!("has heard nothing for {silent} s") }));
                break;
            }
        }
        let mut line = String::new();
        match input.read_line(&mut line) {
            Ok(length) if length > 0 => {}
            _ => break,
        }
        if !line.trim().is_empty() && tell.send(line).is_err() {
            break;
        }
    }
    let _ = kill(Pid::this(), Signal::SIGTERM);
}

fn read(line: &str) -> Result<Told, Failure> {
    serde_json::from_str(line).map_err(|error| Failure(format!("reading a line: {error}")))
}

fn answer(line: &str, wires: &[String], told: &Receiver<String>) -> Result<Value, Failure> {
    Ok(match read(line)? {
        Told::Look {
            disciplines,
            controls,
        } => look(wires, &disciplines, &controls)?,
        Told::Clock => json!({ "clock": monotonic()? }),
        Told::Prepare => {
            wires.iter().try_for_each(|wire| wire::prepare(wire))?;
            json!({ "prepared": true })
        }
        Told::Quiet { ms } => {
            let passing = |wire: &String| wire::passing(wire, Duration::from_millis(ms));
            json!({ "passing": wires.iter().map(passing).collect::<Result<Vec<_>, _>>()? })
        }
        Told::Listen { at, ms } => {
            let ready = || say(&json!({ "listening": true }));
            json!({ "probed": wire::listen(&at, Duration::from_millis(ms), ready)? })
        }
        Told::Send { at, bps, ms } => {
            json!({ "probed": wire::send(&at, bps, Duration::from_millis(ms))? })
        }
        Told::Run(job) => run(&job, told)?,
        Told::Begin(_) => return Err(Failure("nothing waits to begin".into())),
    })
}

/// Carries out a part of a job; its recording follows the answer.
fn run(job: &Job, told: &Receiver<String>) -> Result<Value, Failure> {
    let begin = |earliest: u64| {
        say(&json!({ "ready": earliest }));
        loop {
            let line = told.recv().map_err(|_| Failure("interrupted".into()))?;
            match read(&line)? {
                Told::Clock => say(&json!({ "clock": monotonic()? })),
                Told::Begin(zero) => return Ok(zero),
                _ => return Err(Failure("a run waits to begin".into())),
            }
        }
    };
    let done = execute(job, begin, &mut |second| say(&json!({ "second": second })))?;
    let bytes = done
        .to_bytes()
        .map_err(|error| Failure(error.to_string()))?;
    say(&json!({ "recording": bytes.len() }));
    let mut out = io::stdout().lock();
    out.write_all(&bytes)?;
    out.flush()?;
    Ok(json!({ "done": true }))
}

fn look(wires: &[String], disciplines: &[String], controls: &[String]) -> Result<Value, Failure> {
    namespace::create(LOOKING)?;
    let lacking = lacking(disciplines, controls);
    namespace::delete(LOOKING)?;
    let mut states = serde_json::Map::new();
    for wire in wires {
        states.insert(wire.clone(), json!(Wire::of(wire)?));
    }
    let seen = json!({ "kernel": release()?, "lacking": lacking?, "wires": states });
    Ok(json!({ "seen": seen }))
}

/// What the kernel lacks, by the names of its modules. Asking loads the modules that there are.
fn lacking(disciplines: &[String], controls: &[String]) -> Result<Vec<String>, Failure> {
    let link = Link::open(Some(LOOKING))?;
    let mut lacking = Vec::new();
    for kind in disciplines {
        if !link.has_discipline(kind) {
            lacking.push(format!("sch_{kind}"));
        }
    }
    for kind in ["veth", "macvlan"] {
        if !link.has_device(kind) {
            lacking.push(kind.into());
        }
    }
    let known = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    for control in controls {
        let loaded = fs::read_to_string(known).unwrap_or_default();
        let is_known = || loaded.split_whitespace().any(|name| name == control);
        if !is_known() && !super::traffic::has_congestion_control(control) {
            lacking.push(format!("tcp_{control}"));
        }
    }
    if !Path::new(TRACEFS)
        .join("events/qdisc/qdisc_enqueue")
        .exists()
    {
        lacking.push("the tracepoint qdisc_enqueue".into());
    }
    Ok(lacking)
}
