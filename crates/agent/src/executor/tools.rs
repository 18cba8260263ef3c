//! Runs `ip`, `tc` and `ethtool`.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use super::namespace::within;
use super::{Context, Failure};

/// The folders of administration tools.
const PLACES: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// The path of a tool.
///
/// # Errors
/// It is not installed.
pub fn find(tool: &str) -> Result<PathBuf, Failure> {
    PLACES
        .iter()
        .map(|place| Path::new(place).join(tool))
        .find(|path| path.exists())
        .ok_or_else(|| Failure(format!("{tool} is not installed")))
}

/// Runs a tool in a namespace and returns its output.
///
/// # Errors
/// It is missing, cannot be started or reports an error.
pub fn run(namespace: Option<&str>, tool: &str, arguments: &[&str]) -> Result<String, Failure> {
    let mut command = Command::new(find(tool)?);
    command.args(arguments).stdin(Stdio::null());
    let output = within(namespace, || {
        command.output().context(|| format!("running {tool}"))
    })?;
    checked(output, &format!("{tool} {}", arguments.join(" ")))
}

/// Lets `ip` or `tc` execute commands in a namespace, in one process.
///
/// # Errors
/// As [`run`].
pub fn batch(namespace: Option<&str>, tool: &str, lines: &[String]) -> Result<(), Failure> {
    let mut child = within(namespace, || spawn(tool, &["-batch", "-"], Stdio::piped()))?;
    feed(&mut child, &(lines.join("\n") + "\n"))?;
    let output = child
        .wait_with_output()
        .context(|| format!("running {tool}"))?;
    checked(output, &format!("{tool}: {}", lines.join("; "))).map(drop)
}

fn spawn(tool: &str, arguments: &[&str], out: Stdio) -> Result<Child, Failure> {
    Command::new(find(tool)?)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(out)
        .stderr(Stdio::piped())
        .spawn()
        .context(|| format!("running {tool}"))
}

fn feed(child: &mut Child, text: &str) -> Result<(), Failure> {
    let pipe = child.stdin.as_mut();
    // The pipe is open until `wait` closes it.
    pipe.map_or(Ok(()), |pipe| pipe.write_all(text.as_bytes()))
        .context(|| "writing to a tool".into())
}

fn checked(output: Output, what: &str) -> Result<String, Failure> {
    let complaint = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let complaint = complaint.split_whitespace().collect::<Vec<_>>().join(" ");
        return Err(Failure(format!("{what}: {complaint}")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A `tc` process that waits for commands, so that each takes effect at once.
pub struct WaitingTc {
    child: Child,
    /// Its output so far, which may exceed a pipe's buffer. The file has no name, so it never remains.
    output: File,
}

impl WaitingTc {
    /// Starts the process in a namespace; `number` distinguishes it from others.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(namespace: &str, number: usize) -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("sojourn-tc-{}-{number}", std::process::id()));
        let creating = || format!("creating {}", path.display());
        let output = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .context(creating)?;
        fs::remove_file(&path).context(creating)?;
        let out = output.try_clone().context(creating)?;
        let child = within(Some(namespace), || {
            spawn("tc", &["-s", "-batch", "-"], Stdio::from(out))
        })?;
        Ok(Self { child, output })
    }

    /// Sends it a command.
    ///
    /// # Errors
    /// The process has ended.
    pub fn tell(&mut self, command: &str) -> Result<(), Failure> {
        feed(&mut self.child, &format!("{command}\n"))
    }

    /// Waits until all commands are executed; returns their output.
    ///
    /// # Errors
    /// One of them failed.
    pub fn finish(mut self) -> Result<String, Failure> {
        let finished = self
            .child
            .wait_with_output()
            .context(|| "running tc".into())?;
        checked(finished, "tc")?;
        let reading = || "reading what tc printed".to_owned();
        let mut printed = String::new();
        self.output.rewind().context(reading)?;
        self.output.read_to_string(&mut printed).context(reading)?;
        Ok(printed)
    }
}
