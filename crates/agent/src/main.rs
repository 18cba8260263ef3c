//! The agent's program: the first process of a virtual machine, or `sojourn-agent run JOB RECORDING` as root. With `apart` it makes
//! namespaces of its own, in which it carries packets itself: of a job, or of a program. With `machine` it is told by lines.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use serde::de::DeserializeOwned;
use sojourn_agent::Recording;
use sojourn_agent::executor::{Failure, execute, init, interrupts, machine, path, sandbox, shell};

const USAGE: &str = "usage: sojourn-agent run JOB RECORDING (as root), or as the init of a virtual machine; \
    sojourn-agent machine INTERFACE …; sojourn-agent apart PARENT path JOB RECORDING; sojourn-agent apart PARENT shell JOB RECORDING PROGRAM …";

fn main() -> ExitCode {
    // A program's arguments need not be text.
    let given: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&str> = given
        .iter()
        .map(|word| word.to_str().unwrap_or(""))
        .collect();
    if std::process::id() == 1 && words.first() != Some(&"inside") {
        init::main();
        return ExitCode::FAILURE;
    }
    let done = match words[..] {
        ["--version"] => {
            println!("sojourn-agent {}", env!("CARGO_PKG_VERSION"));
            Ok(0)
        }
        ["run", job, recording] => run(job, recording).map(|()| 0),
        ["machine", ref wires @ ..] => machine::supervise(&names(wires)),
        ["attend", ref wires @ ..] => machine::attend(&names(wires)).map(|()| 0),
        ["apart", parent, ..] => {
            number(parent).and_then(|parent| sandbox::apart(parent, &given[2..]))
        }
        ["inside", line, _, _, sandbox::PATH, job, recording] => sandbox::inside(line)
            .and_then(|()| carry(job, recording))
            .map(|()| 0),
        ["inside", line, user, group, "shell", job, recording, _, ..] => sandbox::inside(line)
            .and_then(|()| Ok((number(user)?, number(group)?)))
            .and_then(|user| run_program(job, recording, user, &given[7..])),
        ["plain", user, group, _, ..] => {
            number(user).and_then(|user| Err(sandbox::plain(user, number(group)?, &given[3..])))
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            eprintln!("sojourn-agent: {failure}");
            ExitCode::from(if words.first() == Some(&"plain") {
                NOT_FOUND
            } else {
                1
            })
        }
    }
}

/// A shell's exit status of a program that cannot be started.
const NOT_FOUND: u8 = 127;

fn number<T: std::str::FromStr>(text: &str) -> Result<T, Failure> {
    text.parse().map_err(|_| Failure(USAGE.into()))
}

fn names(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Reads a job.
fn told<T: DeserializeOwned>(job: &str) -> Result<T, Failure> {
    let text = fs::read(job)?;
    serde_json::from_slice(&text).map_err(|error| Failure(format!("{job}: {error}")))
}

/// Writes a recording; it is there in whole or not at all.
fn keep(done: &Recording, recording: &str) -> Result<(), Failure> {
    let bytes = done
        .to_bytes()
        .map_err(|error| Failure(error.to_string()))?;
    let partial = Path::new(recording).with_extension("partial");
    fs::write(&partial, bytes)?;
    Ok(fs::rename(partial, recording)?)
}

/// Carries out a job whose packets pass Sojourn's own path.
fn carry(job: &str, recording: &str) -> Result<(), Failure> {
    let job = told(job)?;
    sandbox::own_run_folder()?;
    let done = path::execute(&job, &mut |seconds| println!("@second {seconds}"))?;
    keep(&done, recording)
}

/// Runs a program behind Sojourn's own path; returns its exit status.
fn run_program(
    job: &str,
    recording: &str,
    user: (u32, u32),
    program: &[OsString],
) -> Result<u8, Failure> {
    let (status, done) = shell::execute(&told(job)?, user, program)?;
    keep(&done, recording)?;
    Ok(status)
}

fn run(job: &str, recording: &str) -> Result<(), Failure> {
    let job = told(job)?;
    // End if the process that waits for the recording is killed.
    set_pdeathsig(Signal::SIGTERM).map_err(|error| Failure(error.to_string()))?;
    // Signals are blocked here; the run notices them and cleans up.
    interrupts()
        .thread_block()
        .map_err(|error| Failure(error.to_string()))?;
    let done = execute(&job, Ok, &mut |seconds| println!("@second {seconds}"))?;
    keep(&done, recording)
}
