//! The agent as the first process of a machine that exists for one run: an emulated one, or User-Mode Linux.
//!
//! The initial file system holds this program as `/init`, the job as `/job.json` or `/wifi.json`, and modules in the order
//! in which to load them: `/modules/` before the run, `/modules-late/` after it. The modules for output are loaded
//! late, so that nothing that depends on the host's time takes part in the run. The recording is written to the first
//! virtio serial port, or to a folder of the host where the kernel has `hostfs`. Messages to the host during the run are
//! lines on the console that begin with `@`.

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

use super::clock::{JIFFY_NS, ROUND_NS};
use super::link::Link;
use super::setup::load_module;
use super::{Context, Failure, execute, radio};
use crate::job::Job;
use crate::wifi::WifiJob;

/// The machine counts as hung if it takes this much longer than the job, measured by the machine's clock.
const PATIENCE: Duration = Duration::from_secs(120);

/// A port on which none of the machines listens (RFC 863).
const DISCARD: u16 = 9;

/// After this time a generator seeded at boot takes a new seed; the kernel waits for a second, or half the time since
/// boot if that is longer.
const RESEED: Duration = Duration::from_secs(5);

/// Pages of 4 KiB that TCP may have: below pressure, at it, and at most. The hosts of a network share this machine's
/// gibibyte, of which a kernel gives TCP a sixteenth until it limits windows; each would have a machine of its own.
const TCP_PAGES: &str = "131072 131072 196608";

/// The job of a run on Wi-Fi queues, in place of `/job.json`.
const WIFI_JOB: &str = "/wifi.json";

/// What this machine is for.
enum Told {
    Run(Job),
    Wifi(WifiJob),
}

impl Told {
    const fn seed(&self) -> u64 {
        match self {
            Self::Run(job) => job.seed,
            Self::Wifi(job) => job.seed,
        }
    }

    const fn duration_ns(&self) -> u64 {
        match self {
            Self::Run(job) => job.duration_ns,
            Self::Wifi(job) => job.duration_ns,
        }
    }
}

/// Runs the machine from start to end.
pub fn main() {
    let done = prepare().and_then(|mut console| {
        let (line, in_transit) = match run(&mut console) {
            Ok((length, in_transit)) => (format!("@done {length}"), in_transit),
            Err(failure) => (format!("@failed {failure}"), false),
        };
        writeln!(console, "{line}").context(|| "writing to the console".into())?;
        if in_transit {
            // The host ends the machine once it has everything.
            pause();
        }
        Ok(())
    });
    if let Err(failure) = done {
        // Standard error, which the kernel may have opened.
        eprintln!("@failed {failure}");
    }
    // Powering off does not return. If it fails, the kernel panics when its first process ends, which ends the
    // machine.
    let _ = reboot(RebootMode::RB_POWER_OFF);
}

fn prepare() -> Result<File, Failure> {
    for (kind, path) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/tmp"),
        ("tmpfs", "/run"),
        ("tracefs", "/sys/kernel/tracing"),
    ] {
        fs::create_dir_all(path).context(|| format!("creating {path}"))?;
        mount(Some(kind), path, Some(kind), MsFlags::empty(), None::<&str>)
            .context(|| format!("mounting {path}"))?;
    }
    OpenOptions::new()
        .write(true)
        .open("/dev/console")
        .context(|| "opening the console".into())
}

/// Carries out the run and writes its recording. Returns the recording's length, and whether it may still be in transit.
fn run(console: &mut File) -> Result<(usize, bool), Failure> {
    load_modules("/modules")?;
    let reading = || "reading the job".into();
    let (path, is_wifi) = match fs::exists(WIFI_JOB).context(reading)? {
        true => (WIFI_JOB, true),
        false => ("/job.json", false),
    };
    let job = fs::read(path).context(reading)?;
    let job = match is_wifi {
        true => Told::Wifi(serde_json::from_slice(&job).context(reading)?),
        false => Told::Run(serde_json::from_slice(&job).context(reading)?),
    };
    let over = watch_over(job.duration_ns());
    fs::write("/proc/sys/net/ipv4/tcp_mem", TCP_PAGES)
        .context(|| "giving TCP half of the memory".into())?;
    seed_randomness(job.seed())?;
    connect_once()?;
    let mut progress = |seconds: u64| {
        // If this fails, the host gets no progress; the run continues.
        let _ = writeln!(console, "@second {seconds}");
    };
    progress(0);
    let bytes = match job {
        Told::Run(job) => execute(&job, Ok, &mut progress)?
            .to_bytes()
            .context(|| "writing the recording".into())?,
        Told::Wifi(job) => radio::execute(&job, &mut progress)?,
    };
    // From here on the machine waits for the host, in time that it skips, so the host's own timeout applies.
    over.store(true, Ordering::Relaxed);
    load_modules("/modules-late")?;
    let writing = || format!("writing {} bytes of results", bytes.len());
    match folder_of_host()? {
        Some(folder) => {
            let mut file = File::create(folder.join("recording")).context(writing)?;
            file.write_all(&bytes).context(writing)?;
            file.sync_all().context(writing)?;
            Ok((bytes.len(), false))
        }
        None => {
            open_port()?.write_all(&bytes).context(writing)?;
            Ok((bytes.len(), true))
        }
    }
}

/// The host's folder for results, if this kernel is a program on the host (User-Mode Linux). The kernel's command line
/// names the folder.
fn folder_of_host() -> Result<Option<PathBuf>, Failure> {
    let known =
        fs::read_to_string("/proc/filesystems").context(|| "reading /proc/filesystems".into())?;
    if !known.contains("hostfs") {
        return Ok(None);
    }
    let path = "/results";
    fs::create_dir_all(path).context(|| format!("creating {path}"))?;
    let (kind, flags) = (Some("hostfs"), MsFlags::empty());
    mount(kind, path, kind, flags, None::<&str>).context(|| format!("mounting {path}"))?;
    Ok(Some(path.into()))
}

/// Makes the machine's first connection, to a port where nobody listens. The kernel then draws 256 kB of random
/// numbers to choose ports, which takes some 6 ms of the machine's time and would delay the first flow of a run.
fn connect_once() -> Result<(), Failure> {
    Link::open(None)?.loopback_up()?;
    match TcpStream::connect((Ipv4Addr::LOCALHOST, DISCARD)) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
        outcome => outcome
            .map(drop)
            .context(|| "connecting for the first time".into()),
    }
}

/// Makes the kernel's random numbers depend on the seed only: a machine with virtual time has no other source of
/// randomness. The bytes written join the pool; the generator takes a new seed from it when its last one is over a
/// second old (crng_reseed). Then it waits for a random number of ticks: the timer
/// of PIE runs since the set-up, and shall not be in step with the run.
fn seed_randomness(seed: u64) -> Result<(), Failure> {
    fs::write("/dev/urandom", seed.to_le_bytes()).context(|| "seeding the kernel".into())?;
    sleep(RESEED);
    let mut drawn = [0; 8];
    let mut source = File::open("/dev/urandom").context(|| "seeding the kernel".into())?;
    source
        .read_exact(&mut drawn)
        .context(|| "seeding the kernel".into())?;
    sleep(Duration::from_nanos(
        u64::from(drawn[0]) * JIFFY_NS % ROUND_NS,
    ));
    Ok(())
}

fn load_modules(folder: &str) -> Result<(), Failure> {
    let entries = fs::read_dir(folder).context(|| format!("reading {folder}"))?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    paths.iter().try_for_each(|path| load_module(path))
}

/// Opens the port, which appears some time after its driver was loaded, depending on the host. Waits busily: the
/// virtual time would skip a sleep.
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

/// Ends the machine if the run is not over in time. The caller sets the returned flag when it is; an idle machine then
/// skips the remaining time at once.
fn watch_over(duration_ns: u64) -> Arc<AtomicBool> {
    let limit = Duration::from_nanos(duration_ns) + PATIENCE;
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    spawn(move || {
        sleep(limit);
        if !is_over.load(Ordering::Relaxed) {
            let seconds = limit.as_secs();
            let line = format!("@failed the guest hangs: not done after {seconds} s of its time\n");
            // If this fails, the host gets no message; the machine ends all the same.
            let _ = fs::write("/dev/console", line);
            let _ = reboot(RebootMode::RB_POWER_OFF);
        }
    });
    over
}
