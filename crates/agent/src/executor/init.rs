//! Being the first process of a virtual machine: the machine is there for one run.
//!
//! The initial file system holds this program as `/init`, the job as `/job.json`, the tools, and modules in the order
//! in which they are to be loaded: `/modules/` before the run, `/modules-late/` after it. Those for the way out come
//! late, so that nothing outside of the machine's own time takes part in the run. The recording leaves by the first
//! virtio serial port; what the host is to know meanwhile goes to the console, in lines that begin with `@`.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{sleep, spawn, yield_now};
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use nix::unistd::pause;

use super::setup::load_module;
use super::{Context, Failure, execute, tools};
use crate::job::Job;

/// How much longer than the job the machine may take, in its own time, before it counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// The port of a service that no machine of ours has (RFC 863).
const DISCARD: u16 = 9;

/// After which a generator seeded at boot takes a new seed: a second, or half the time since boot if that is longer.
const RESEED: Duration = Duration::from_secs(5);

/// Runs the machine from beginning to end.
pub fn main() {
    let done = prepare().and_then(|mut console| {
        let line = match run(&mut console) {
            // What was written may still be on its way: the host ends the machine once it has all.
            Ok(length) => format!("@done {length}"),
            Err(failure) => format!("@failed {failure}"),
        };
        writeln!(console, "{line}").context(|| "writing to the console".into())?;
        if line.starts_with("@done") {
            pause();
        }
        Ok(())
    });
    if let Err(failure) = done {
        // The kernel's own standard error, if there is one.
        eprintln!("@failed {failure}");
    }
    // Powering off does not return; if it fails, the kernel panics as its first process ends, which ends the machine.
    let _ = reboot(RebootMode::RB_POWER_OFF);
}

fn prepare() -> Result<File, Failure> {
    for (kind, place) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/tmp"),
        ("tmpfs", "/run"),
        ("tracefs", "/sys/kernel/tracing"),
    ] {
        fs::create_dir_all(place).context(|| format!("creating {place}"))?;
        mount(
            Some(kind),
            place,
            Some(kind),
            MsFlags::empty(),
            None::<&str>,
        )
        .context(|| format!("mounting {place}"))?;
    }
    OpenOptions::new()
        .write(true)
        .open("/dev/console")
        .context(|| "opening the console".into())
}

/// Makes the run and sends its recording; returns the recording's length.
fn run(console: &mut File) -> Result<usize, Failure> {
    load_modules("/modules")?;
    let job = fs::read("/job.json").context(|| "reading the job".into())?;
    let job: Job = serde_json::from_slice(&job).context(|| "reading the job".into())?;
    let over = watch_over(&job);
    seed_randomness(job.seed)?;
    connect_once()?;
    let mut progress = |seconds: u64| {
        // Nobody is told, then; the run goes on.
        let _ = writeln!(console, "@second {seconds}");
    };
    progress(0);
    let recording = execute(&job, &mut progress)?;
    // From here on the machine waits for the host, in time that it skips: the host's patience counts.
    over.store(true, Ordering::Relaxed);
    let bytes = recording
        .to_bytes()
        .context(|| "writing the recording".into())?;
    load_modules("/modules-late")?;
    let writing = || format!("writing {} bytes of results", bytes.len());
    open_port()?.write_all(&bytes).context(writing)?;
    Ok(bytes.len())
}

/// Makes the machine's first connection, to where nobody listens. It has the kernel draw 256 kB of random numbers for its
/// choice of ports, some 6 ms of the machine's time, in which the first flow of a run would begin late.
fn connect_once() -> Result<(), Failure> {
    tools::run(None, "ip", &["link", "set", "lo", "up"])?;
    match TcpStream::connect((Ipv4Addr::LOCALHOST, DISCARD)) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
        outcome => outcome
            .map(drop)
            .context(|| "connecting for the first time".into()),
    }
}

/// Lets the kernel's random numbers follow from the seed: a machine in its own time has no other source of chance. What
/// is written joins the pool; the generator takes from that when its last seed is over a second old (crng_reseed).
fn seed_randomness(seed: u64) -> Result<(), Failure> {
    fs::write("/dev/urandom", seed.to_le_bytes()).context(|| "seeding the kernel".into())?;
    sleep(RESEED);
    let mut drawn = [0; 8];
    let mut source = File::open("/dev/urandom").context(|| "seeding the kernel".into())?;
    source
        .read_exact(&mut drawn)
        .context(|| "seeding the kernel".into())
}

fn load_modules(folder: &str) -> Result<(), Failure> {
    let entries = fs::read_dir(folder).context(|| format!("reading {folder}"))?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    paths.iter().try_for_each(|path| load_module(path))
}

/// The port appears a moment after its driver, when the host gets round to it. Asleep, the machine would skip that moment.
fn open_port() -> Result<File, Failure> {
    let opening = || "opening the port for results".to_owned();
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let devices = fs::read_dir("/dev").context(opening)?;
        let port = devices
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.to_string_lossy().starts_with("/dev/vport"));
        if let Some(path) = port {
            return OpenOptions::new().write(true).open(path).context(opening);
        }
        yield_now();
    }
    Err(Failure("the machine has no port for results".into()))
}

/// Ends the machine if the run is not over after its patience. Set what is returned once it is: an idle machine skips
/// that time at once.
fn watch_over(job: &Job) -> Arc<AtomicBool> {
    let limit = Duration::from_nanos(job.duration_ns) + PATIENCE;
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    spawn(move || {
        sleep(limit);
        if !is_over.load(Ordering::Relaxed) {
            let seconds = limit.as_secs();
            let line = format!("@failed the guest hangs: not done after {seconds} s of its time\n");
            // Nobody is told, then; the machine ends all the same.
            let _ = fs::write("/dev/console", line);
            let _ = reboot(RebootMode::RB_POWER_OFF);
        }
    });
    over
}
