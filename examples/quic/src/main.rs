//! QUIC stacks through queues: `quic [quinn|noq]` prints what each queue does to a download, beside Sojourn's own TCP under the
//! same CUBIC; `quic [quinn|noq] repeat N` runs each queue N times and counts the different schedules.

mod noq;
mod quinn;
mod tcp;
mod tls;

use std::hash::{DefaultHasher, Hasher};
use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use sojourn_path::{Datagram, Delivery, Endpoint, Impair, Path, PathError, Verdict, Way};

use crate::tls::Certificate;

/// A packet that was sent, without what it carries: when, and which way.
type Sent = (Duration, Way, Datagram<()>);

/// Runs of a queue for the time that it takes.
const TIMED: usize = 10;

const LENGTH: Duration = Duration::from_secs(10);

/// A queue to try.
struct Case {
    name: &'static str,
    aqm: &'static str,
    keys: &'static [(&'static str, &'static str)],
    /// Data is ECT(1), as an L4S stack's.
    ect1: bool,
    /// Loss and jitter behind the queue.
    impaired: bool,
}

const CASES: [Case; 6] = [
    Case { name: "drop-tail", aqm: "pfifo", keys: &[("limit", "100 packets")], ect1: false, impaired: false },
    Case { name: "CoDel", aqm: "codel", keys: &[("ecn", "true")], ect1: false, impaired: false },
    Case { name: "CAKE", aqm: "cake", keys: &[], ect1: false, impaired: false },
    Case { name: "DualPI2, ECT(0)", aqm: "dualpi2", keys: &[], ect1: false, impaired: false },
    Case { name: "DualPI2, ECT(1)", aqm: "dualpi2", keys: &[], ect1: true, impaired: false },
    Case { name: "CAKE, 0.1 % loss, 3 ms jitter", aqm: "cake", keys: &[], ect1: false, impaired: true },
];

impl Case {
    fn path<T: Clone + Send + 'static>(&self) -> Result<Path<T>, PathError> {
        let mut path = Path::new("20 Mbit/s", "40 ms")?.aqm(self.aqm, self.keys.iter().copied())?.seed(7);
        if self.impaired {
            path = path.impair(Way::Down, Impair::new().loss(0.001).jitter("3 ms"))?;
        }
        Ok(path.build())
    }
}

/// A stack: makes a server that sends without end and a client that reads.
#[derive(Clone, Copy)]
enum Stack {
    Quinn,
    Noq,
}

/// What a run gives.
struct Outcome {
    /// Payload received.
    bytes: u64,
    /// How often the sender was told of congestion; some of that is of one episode.
    signals: u64,
    sojourn_ms: Vec<f64>,
    marked: u64,
    dropped: u64,
    lost: u64,
    /// A hash of every packet's instants, direction, size and mark.
    schedule: u64,
    /// What was sent, when and which way.
    sent: Vec<Sent>,
    cpu: Duration,
}

/// Passes calls on, and notes what is sent and what arrives.
struct Noting<'a, E> {
    inner: &'a mut E,
    way: Way,
    sent: Vec<Sent>,
    sojourn_ms: Vec<f64>,
    schedule: DefaultHasher,
}

impl<'a, E> Noting<'a, E> {
    fn new(inner: &'a mut E, way: Way) -> Self {
        Self { inner, way, sent: Vec::new(), sojourn_ms: Vec::new(), schedule: DefaultHasher::new() }
    }
}

impl<E: Endpoint<Vec<u8>>> Endpoint<Vec<u8>> for Noting<'_, E> {
    fn transmit(&mut self, now: Duration) -> Option<Datagram<Vec<u8>>> {
        let packet = self.inner.transmit(now)?;
        self.sent.push((now, self.way, packet.clone().map(drop)));
        Some(packet)
    }

    fn receive(&mut self, packet: Delivery<Vec<u8>>) {
        for number in [packet.sent.as_nanos() as u64, packet.at.as_nanos() as u64, u64::from(packet.bytes)] {
            self.schedule.write_u64(number);
        }
        self.schedule.write_u8(packet.ecn as u8);
        self.sojourn_ms.push(packet.sojourn.as_secs_f64() * 1e3);
        self.inner.receive(packet);
    }

    fn timeout(&mut self) -> Option<Duration> {
        self.inner.timeout()
    }

    fn on_timeout(&mut self, now: Duration) {
        self.inner.on_timeout(now);
    }
}

fn run(stack: Stack, case: &Case, certificate: &Certificate) -> Result<Outcome, PathError> {
    match stack {
        Stack::Quinn => {
            let (mut server, mut client) = quinn::pair(certificate, case.ect1, 1);
            let outcome = drive(case, &mut server, &mut client)?;
            Ok(Outcome { bytes: client.received, signals: server.signals(), ..outcome })
        }
        Stack::Noq => {
            let (mut server, mut client) = noq::pair(certificate, case.ect1, 1);
            let outcome = drive(case, &mut server, &mut client)?;
            Ok(Outcome { bytes: client.received, signals: server.signals(), ..outcome })
        }
    }
}

fn drive<E: Endpoint<Vec<u8>>>(case: &Case, server: &mut E, client: &mut E) -> Result<Outcome, PathError> {
    let mut path = case.path()?;
    let began = cpu_time();
    let (mut down, mut up) = (Noting::new(server, Way::Down), Noting::new(client, Way::Up));
    path.drive((&mut down, &mut up), LENGTH);
    let cpu = cpu_time() - began;
    let counts = path.counts(Way::Down);
    let mut sent = down.sent;
    sent.extend(up.sent);
    sent.sort_by_key(|(at, _, _)| *at);
    Ok(Outcome {
        bytes: 0,
        signals: 0,
        sojourn_ms: up.sojourn_ms,
        marked: counts.marked,
        dropped: counts.dropped,
        lost: counts.lost,
        schedule: up.schedule.finish() ^ down.schedule.finish().rotate_left(1),
        sent,
        cpu,
    })
}

/// The time that the path takes for the same packets without the stacks.
fn path_alone(case: &Case, sent: &[Sent]) -> Result<Duration, PathError> {
    let mut spent = Duration::ZERO;
    for _ in 0..TIMED {
        let mut path = case.path()?;
        // What a path moves of a payload is a `Vec`'s three words; its buffer is made and freed by the stack.
        let packet = |(at, way, packet): &Sent| (*at, *way, packet.clone().map(|()| [0_usize; 3]));
        let packets: Vec<_> = sent.iter().map(packet).collect();
        let began = cpu_time();
        for (at, way, packet) in packets {
            path.send(at, way, packet);
            while path.poll(at).is_some() {}
        }
        spent += cpu_time() - began;
        assert!(path.verdicts().any(|event| matches!(event.verdict, Verdict::Left { .. })));
    }
    Ok(spent / TIMED as u32)
}

/// The processor time of this thread, on Linux; elsewhere, the time.
fn cpu_time() -> Duration {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let of_thread = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = of_thread.and_then(|text| text.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| BEGAN.elapsed(), Duration::from_nanos)
}

/// A percentile; NaN if there is nothing.
fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1) as f64;
    sorted.get((last * share) as usize).copied().unwrap_or(f64::NAN)
}

fn table(stack: Stack) -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "{:<30} {:<4} {:>8} {:>8} {:>8} {:>7} {:>7} {:>5} {:>7} {:>8} {:>8}",
        "queue", "", "Mbit/s", "p50 ms", "p95 ms", "marked", "dropped", "lost", "signals", "pair ms", "path ms"
    );
    for case in &CASES {
        let mut ours = run(stack, case, &tls::ED25519)?;
        // The clock of processor time is coarse: several runs count.
        for _ in 1..TIMED {
            ours.cpu += run(stack, case, &tls::ED25519)?.cpu;
        }
        let alone = path_alone(case, &ours.sent)?;
        let goodput = ours.bytes as f64 * 8.0 / LENGTH.as_secs_f64() / 1e6;
        let (p50, p95) = (percentile(&ours.sojourn_ms, 0.5), percentile(&ours.sojourn_ms, 0.95));
        let (marked, dropped, lost, cpu) =
            (ours.marked, ours.dropped, ours.lost, ours.cpu.as_secs_f64() * 1e3 / TIMED as f64);
        let (signals, alone) = (ours.signals, alone.as_secs_f64() * 1e3);
        println!(
            "{:<30} QUIC {goodput:>8.2} {p50:>8.1} {p95:>8.1} {marked:>7} {dropped:>7} {lost:>5} {signals:>7} {cpu:>8.1} {alone:>8.1}",
            case.name
        );
        if !case.ect1 {
            let tcp = tcp::download(case.aqm, case.keys, case.impaired, LENGTH)?;
            println!(
                "{:<30} TCP  {:>8.2} {:>8.1} {:>8.1} {:>7} {:>7} {:>5}",
                "", tcp.goodput_mbps, tcp.p50_ms, tcp.p95_ms, tcp.marked, tcp.dropped, tcp.lost
            );
        }
    }
    Ok(())
}

fn repeat(stack: Stack, runs: usize) -> Result<(), Box<dyn std::error::Error>> {
    println!("{:<30} {:>24} {:>24}", "different schedules of", "an Ed25519 certificate", "an ECDSA certificate");
    for case in &CASES {
        let mut different = [0, 0];
        for (different, certificate) in different.iter_mut().zip([&tls::ED25519, &tls::ECDSA]) {
            let mut schedules = std::collections::BTreeSet::new();
            for _ in 0..runs {
                schedules.insert(run(stack, case, certificate)?.schedule);
            }
            *different = schedules.len();
        }
        let [ed25519, ecdsa] = different.map(|different| format!("{different} in {runs} runs"));
        println!("{:<30} {ed25519:>24} {ecdsa:>24}", case.name);
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (stack, rest) = match words.split_first() {
        None => (Stack::Quinn, &[][..]),
        Some((&"quinn", rest)) => (Stack::Quinn, rest),
        Some((&"noq", rest)) => (Stack::Noq, rest),
        Some(_) => return usage(),
    };
    let done = match rest {
        [] => table(stack),
        ["repeat", runs] => match runs.parse() {
            Ok(runs) => repeat(stack, runs),
            Err(_) => return usage(),
        },
        _ => return usage(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: quic [quinn|noq] [repeat N]");
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stack_moves_data_through_every_queue_by_the_same_schedule_each_time() {
        for stack in [Stack::Quinn, Stack::Noq] {
            for case in &CASES {
                let [one, other] = [0, 1].map(|_| run(stack, case, &tls::ED25519).expect("the case is good"));
                assert_eq!(one.schedule, other.schedule, "{}", case.name);
                assert!(one.bytes > 5_000_000, "{}: {}", case.name, one.bytes);
            }
        }
    }
}
