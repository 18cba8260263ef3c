//! The kernel's tracepoints, in a tracing instance of our own.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::libc::O_NONBLOCK;

use super::packets::{Event, PacketEvent, Reason};
use super::ring::{Entry, Field, PageError, read_page};
use super::{Context, Failure};
use crate::job::Job;

const TRACEFS: &str = "/sys/kernel/tracing";
/// Buffer per processor, which is emptied several times a second.
const BUFFER_KB: &str = "32768";
const PAGE: usize = 4096;

/// Tracing in progress. It is switched off and removed when this is dropped.
pub struct Tracing {
    instance: PathBuf,
    /// By processor: its pages, as a file and the bytes read so far.
    processors: Vec<(File, Vec<u8>)>,
    events: Events,
}

impl Tracing {
    /// Sets up the tracepoints of a job's queues.
    ///
    /// # Errors
    /// The kernel lacks tracing or a tracepoint, or refuses access.
    pub fn begin(job: &Job) -> Result<Self, Failure> {
        let instance = Path::new(TRACEFS).join(format!("instances/sojourn-{}", std::process::id()));
        fs::create_dir(&instance).context(|| format!("tracing in {}", instance.display()))?;
        let mut tracing = Self {
            events: Events::default(),
            processors: Vec::new(),
            instance,
        };
        tracing.set("trace_clock", "mono")?;
        tracing.set("buffer_size_kb", BUFFER_KB)?;
        tracing.enable(job)?;
        tracing.open()?;
        Ok(tracing)
    }

    fn set(&self, file: &str, value: &str) -> Result<(), Failure> {
        let path = self.instance.join(file);
        fs::write(&path, value).context(|| format!("tracing: setting {file} to {value}"))
    }

    fn enable(&mut self, job: &Job) -> Result<(), Failure> {
        let any = |condition: &dyn Fn(&crate::job::ObservedQueue) -> String| {
            let each: Vec<String> = job.bottlenecks.iter().map(condition).collect();
            each.join(" || ")
        };
        let handles = any(&|queue| format!("handle=={:#x}", queue.handle));
        let devices = any(&|queue| format!("name==\"{}\"", queue.device));
        self.events.devices = job.bottlenecks.iter().map(|of| of.device.clone()).collect();
        for (point, kind, filter) in [
            ("net/net_dev_queue", PointKind::Arrival, devices),
            ("qdisc/qdisc_enqueue", PointKind::Enqueue, handles.clone()),
            (
                "qdisc/qdisc_dequeue",
                PointKind::Dequeue,
                format!("({handles}) && packets>0"),
            ),
            ("skb/kfree_skb", PointKind::Free, "protocol==0x800".into()),
        ] {
            let event = format!("events/{point}");
            let format = self.instance.join(&event).join("format");
            let format = fs::read_to_string(format)
                .context(|| format!("the kernel has no tracepoint {point}"))?;
            self.events.add(kind, &format).ok_or_else(|| {
                Failure(format!(
                    "tracepoint {point} has another format than expected"
                ))
            })?;
            self.set(&format!("{event}/filter"), &filter)?;
            self.set(&format!("{event}/enable"), "1")?;
        }
        Ok(())
    }

    fn open(&mut self) -> Result<(), Failure> {
        let folder = self.instance.join("per_cpu");
        let entries = fs::read_dir(&folder).context(|| "tracing: no per_cpu".into())?;
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path().join("trace_pipe_raw")))
            .collect();
        paths.sort();
        for path in paths {
            let file = OpenOptions::new()
                .read(true)
                .custom_flags(O_NONBLOCK)
                .open(&path)
                .context(|| format!("tracing: {}", path.display()))?;
            self.processors.push((file, Vec::new()));
        }
        Ok(())
    }

    /// Reads the events that the kernel has buffered.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn drain(&mut self) -> Result<(), Failure> {
        let mut page = [0; PAGE];
        for (file, pages) in &mut self.processors {
            loop {
                match file.read(&mut page) {
                    Ok(0) => break,
                    Ok(length) => {
                        pages.extend(&page[..length]);
                        pages.resize(pages.len().next_multiple_of(PAGE), 0);
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error).context(|| "reading the trace".into()),
                }
            }
        }
        Ok(())
    }

    /// Stops tracing. Returns all events in order of time, which counts from `zero_ns` of the monotonic clock.
    ///
    /// # Errors
    /// The kernel lost events, or wrote a page that cannot be read.
    pub fn finish(mut self, zero_ns: u64) -> Result<Vec<PacketEvent>, Failure> {
        self.set("tracing_on", "0")?;
        self.drain()?;
        let mut events = Vec::new();
        for (_, pages) in &self.processors {
            for page in pages.chunks(PAGE) {
                let mut take = |entry: Entry<'_>| {
                    let time_ns = entry.time_ns as i64 - zero_ns as i64;
                    events.extend(self.events.read(entry.data, time_ns));
                };
                read_page(page, &mut take).map_err(|error| match error {
                    PageError::Lost => {
                        Failure("the kernel lost trace events: too many packets".into())
                    }
                    PageError::Malformed => {
                        Failure("the kernel's trace has a malformed page".into())
                    }
                })?;
            }
        }
        // A stable sort: events of one processor keep their order.
        events.sort_by_key(|event| event.time_ns);
        Ok(events)
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        self.processors.clear();
        // The kernel removes an instance when nobody reads it; a failure is ignored.
        let _ = OpenOptions::new()
            .write(true)
            .open(self.instance.join("events/enable"))
            .and_then(|mut file| file.write_all(b"0"));
        let _ = fs::remove_dir(&self.instance);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PointKind {
    Arrival,
    Enqueue,
    Dequeue,
    Free,
}

/// A tracepoint and the fields of it that are read.
struct Point {
    kind: PointKind,
    packet: Field,
    /// Arrival: bytes. Free: the reason.
    number: Option<Field>,
    /// Arrival: the device.
    name: Option<Field>,
}

/// The enabled tracepoints, by the number that the kernel assigned to each.
#[derive(Default)]
struct Events {
    points: HashMap<u64, Point>,
    devices: Vec<String>,
    reasons: HashMap<u64, Reason>,
}

impl Events {
    fn add(&mut self, kind: PointKind, format: &str) -> Option<()> {
        let id = format
            .lines()
            .find_map(|line| line.strip_prefix("ID:"))?
            .trim();
        let field = |name| Field::find(format, name);
        let (number, name) = match kind {
            PointKind::Arrival => (Some(field("len")?), Some(field("name")?)),
            PointKind::Free => (field("reason"), None),
            PointKind::Enqueue | PointKind::Dequeue => (None, None),
        };
        if kind == PointKind::Free {
            self.reasons = reasons(format);
        }
        let point = Point {
            kind,
            packet: field("skbaddr")?,
            number,
            name,
        };
        self.points.insert(id.parse().ok()?, point);
        Some(())
    }

    fn read(&self, data: &[u8], time_ns: i64) -> Option<PacketEvent> {
        let id = u64::from(u16::from_le_bytes(data.get(..2)?.try_into().ok()?));
        let point = self.points.get(&id)?;
        let number = || point.number?.number(data);
        let event = match point.kind {
            PointKind::Arrival => {
                let name = point.name?.text(data)?;
                let queue = self.devices.iter().position(|device| device == name)?;
                Event::Arrival {
                    queue: queue as u8,
                    bytes: number()? as u32,
                }
            }
            PointKind::Enqueue => Event::Enqueue,
            PointKind::Dequeue => Event::Dequeue,
            PointKind::Free => {
                let reason = number().and_then(|number| self.reasons.get(&number));
                Event::Free(reason.copied().unwrap_or(Reason::Unknown))
            }
        };
        Some(PacketEvent {
            time_ns,
            packet: point.packet.number(data)?,
            event,
        })
    }
}

/// The drop reasons that distinguish an algorithm's drop from an overflow, by number, from the `format` file's `{ 6,
/// "QDISC_OVERLIMIT" }`. Kernels before 6.14 have only QDISC_DROP.
fn reasons(format: &str) -> HashMap<u64, Reason> {
    let entry = |text: &str| -> Option<(u64, Reason)> {
        let (number, rest) = text.split_once(',')?;
        let reason = match rest.split('"').nth(1)? {
            "QDISC_OVERLIMIT" => Reason::Overflow,
            "QDISC_CONGESTED" => Reason::Aqm,
            _ => return None,
        };
        Some((number.trim().parse().ok()?, reason))
    };
    format.split('{').filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drop_reasons_are_used_if_the_kernel_distinguishes_them() {
        let old = r#"print fmt: "%s", __print_symbolic(REC->reason, { 2, "NOT_SPECIFIED" }, { 40, "QDISC_DROP" })"#;
        assert!(reasons(old).is_empty());
        let new = r#"__print_symbolic(REC->reason, { 77, "QDISC_OVERLIMIT" }, { 78, "QDISC_CONGESTED" })"#;
        assert_eq!(
            reasons(new),
            HashMap::from([(77, Reason::Overflow), (78, Reason::Aqm)])
        );
    }
}
