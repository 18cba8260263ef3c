//! Builds the network and removes it; loads kernel modules.

use std::collections::BTreeMap;
use std::fs;

use nix::kmod::{ModuleInitFlags, finit_module};

use sojourn_datapath::tun::{self, Tun};
use sojourn_units::Way;

use super::link::{Link, PREFIX, attach, connect, detach, index, kind};
use super::namespace::{self, within};
use super::{Context, Failure};
use crate::job::{Action, Interface, Job, Step};
use crate::netem;
use crate::netlink::{attribute, number};

/// The network of a job. It is removed when this is dropped.
pub struct Network<'a> {
    job: &'a Job,
    /// The sysctls of the agent's own namespace before the setup, which are restored at the end.
    original: Vec<(String, String)>,
    /// The TUN devices, in the order of the steps that made them.
    pub tuns: Vec<Tun>,
}

impl<'a> Network<'a> {
    /// Builds the network.
    ///
    /// # Errors
    /// The kernel refuses a step; the part already built is removed.
    pub fn build(job: &'a Job) -> Result<Self, Failure> {
        let mut network = Self {
            job,
            original: Vec::new(),
            tuns: Vec::new(),
        };
        for step in &job.setup {
            if let (None, Action::Sysctl(values)) = (&step.namespace, &step.action) {
                for (key, _) in values {
                    network.original.push((key.clone(), read_sysctl(key)?));
                }
            }
            match &step.action {
                Action::Tun(port) => network.tuns.push(tun(port, false)?),
                _ => carry_out(step)?,
            }
        }
        Ok(network)
    }

    /// The packets dropped by all netems: by those that only delay, and by those that impair a direction. The queues under
    /// test did not cause these losses.
    ///
    /// # Errors
    /// The kernel refuses to show its disciplines.
    pub fn lost_on_wires(&self) -> Result<(u64, BTreeMap<Way, u64>), Failure> {
        let (mut in_delays, mut impaired) = (0, BTreeMap::new());
        for namespace in &self.job.namespaces {
            for (_, handle, described) in Link::open(Some(namespace))?.disciplines()? {
                let netem = kind(&described) == Some("netem");
                let Some(lost) = drops(&described).filter(|_| netem) else {
                    continue;
                };
                match netem::impairs(handle) {
                    Some(way) => *impaired.entry(way).or_insert(0) += lost,
                    None => in_delays += lost,
                }
            }
        }
        Ok((in_delays, impaired))
    }

    /// The sum over all namespaces of one of the kernel's extended TCP counters (`/proc/net/netstat`).
    ///
    /// # Errors
    /// A namespace's counters cannot be read.
    pub fn counted(&self, counter: &str) -> Result<u64, Failure> {
        let read = || Ok(fs::read_to_string("/proc/thread-self/net/netstat")?);
        self.job.namespaces.iter().try_fold(0, |sum, namespace| {
            let text = within(Some(namespace), read)?;
            let count = extended_counter(&text, counter)
                .ok_or_else(|| Failure(format!("the kernel does not count {counter}")))?;
            Ok(sum + count)
        })
    }
}

/// The drops of a described discipline: TCA_STATS2, TCA_STATS_QUEUE, drops.
fn drops(described: &[u8]) -> Option<u64> {
    number::<4>(attribute(attribute(described, 7)?, 3)?, 8)
}

/// A counter by its name from `/proc/net/netstat`, where a line of values follows each line of names.
fn extended_counter(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split(' ').position(|word| word == name)?;
    values.split(' ').nth(at)?.parse().ok()
}

impl Drop for Network<'_> {
    fn drop(&mut self) {
        for step in &self.job.setup {
            if let Action::Attach(attachment) = &step.action {
                // As below.
                let _ = detach(attachment);
            }
        }
        for name in self.job.namespaces.iter().rev() {
            // Namespaces that were not yet created are missing; ignore that.
            let _ = namespace::delete(name);
        }
        for (key, value) in &self.original {
            // Ignore errors: writing this key has succeeded before.
            let _ = sysctl(key, value);
        }
    }
}

/// Makes a TUN device with its address, and puts it up. `large`: its host may hand over large frames.
///
/// # Errors
/// The kernel refuses.
pub fn tun(port: &Interface, large: bool) -> Result<Tun, Failure> {
    let namespace = Some(port.namespace.as_str());
    let made = within(namespace, || {
        Tun::open(&port.device, large).context(|| format!("opening {}", tun::FILE))
    })?;
    let setting = || format!("setting up {}", port.device);
    let (link, index) = (Link::open(namespace)?, index(namespace, &port.device)?);
    link.address(index, port.address, PREFIX).context(setting)?;
    link.up_with(index, port.mtu, tun::QUEUE).context(setting)?;
    Ok(made)
}

fn carry_out(step: &Step) -> Result<(), Failure> {
    let namespace = step.namespace.as_deref();
    match &step.action {
        Action::Namespace(name) => {
            namespace::create(name)?;
            Link::open(Some(name))?.loopback_up()
        }
        Action::Connect(ends) => connect(ends),
        Action::Attach(attachment) => attach(attachment),
        Action::Tun(port) => tun(port, false).map(drop),
        Action::Route(route) => Link::open(namespace)?.route(route),
        Action::Add(scheduler) => Link::open(namespace)?.add(namespace, scheduler),
        Action::Sysctl(values) => within(namespace, || {
            values
                .iter()
                .try_for_each(|(key, value)| sysctl(key, value))
        }),
        Action::SysctlIfKnown(values) => within(namespace, || {
            let mut known = values.iter().filter(|(key, _)| is_known(key));
            known.try_for_each(|(key, value)| sysctl(key, value))
        }),
    }
}

fn is_known(key: &str) -> bool {
    fs::metadata(format!("/proc/sys/{key}")).is_ok_and(|about| !about.permissions().readonly())
}

/// Sets a value below /proc/sys and reads it back.
fn sysctl(key: &str, value: &str) -> Result<(), Failure> {
    fs::write(format!("/proc/sys/{key}"), value)
        .context(|| format!("this kernel refuses {key} = {value}"))?;
    let now = read_sysctl(key)?;
    if now.split_whitespace().eq(value.split_whitespace()) {
        return Ok(());
    }
    Err(Failure(format!(
        "{key} is {now} after it was set to {value}"
    )))
}

fn read_sysctl(key: &str) -> Result<String, Failure> {
    let value =
        fs::read_to_string(format!("/proc/sys/{key}")).context(|| format!("reading {key}"))?;
    Ok(value.trim().to_owned())
}

/// Loads the module in a file. A module that is already loaded is no error.
///
/// # Errors
/// The kernel refuses it.
pub fn load_module(path: &std::path::Path) -> Result<(), Failure> {
    let what = || format!("loading module {}", path.display());
    let file = fs::File::open(path).context(what)?;
    match finit_module(&file, c"", ModuleInitFlags::empty()) {
        Ok(()) | Err(nix::errno::Errno::EEXIST) => Ok(()),
        Err(error) => Err(error).context(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_stands_below_its_name() {
        let text = "TcpExt: SyncookiesSent TCPMemoryPressures PAWSActive\nTcpExt: 7 3 9\n\
                    IpExt: InNoRoutes TCPMemoryPressures\nIpExt: 1 2\n";
        assert_eq!(extended_counter(text, "TCPMemoryPressures"), Some(3));
        assert_eq!(extended_counter(text, "TCPMemory"), None);
    }
}
