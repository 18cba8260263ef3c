//! A link with a trace beside the algorithm of mahimahi's link, written here from its description (Netravali et al. 2015,
//! section 4; mm-link(1)): every line of the trace is an opportunity to deliver 1500 bytes; what a packet leaves of it, the
//! next ones use; a packet that needs more takes the following opportunities, too, and leaves by the last of them; what nobody
//! uses is lost; the trace repeats after its last time.

use std::collections::VecDeque;

use sojourn_aqm::fifo::DropTail;
use sojourn_aqm::{Datagram, Limit, Single};
use sojourn_path::observer::NoObserver;
use sojourn_path::random::Stream;
use sojourn_path::{Link, LinkConfig};
use sojourn_units::{Capacity, Time, Trace};

const MS: u64 = 1_000_000;
/// Packets that fit in the queue.
const LIMIT: usize = 200;
const OPPORTUNITY: i64 = 1500;
const SPAN_MS: u64 = 60_000;

/// A packet: when it comes, in ns, and its bytes.
type Came = (u64, u32);

/// Opportunities, in ms, whose number in each millisecond follows a rate in Mbit/s.
fn trace(span_ms: u64, mut mbps: impl FnMut(u64) -> f64) -> Vec<u64> {
    let (mut times, mut credit) = (Vec::new(), 0.0);
    for ms in 1..=span_ms {
        credit += mbps(ms) * 1000.0 / 8.0 / OPPORTUNITY as f64;
        while credit >= 1.0 {
            credit -= 1.0;
            times.push(ms);
        }
    }
    times.push(span_ms);
    times
}

/// Six kinds of links, four of each.
fn traces() -> Vec<(String, Vec<u64>)> {
    let mut all = Vec::new();
    for number in 0..4 {
        let mut random = Stream::new(number);
        let scale = [0.5, 1.0, 2.0, 4.0][number as usize];
        let mut add = |kind: &str, times| all.push((format!("{kind} {number}"), times));
        add("constant", trace(1000, |_| 12.0 * scale));
        add("slow", trace(1200, |_| 0.1 * scale));
        let mut log = 0.0;
        add(
            "LTE",
            trace(20_000, |_| {
                log = (log + 0.05 * random.normals().0).clamp(-1.5, 1.5);
                6.0 * scale * libm::exp(log) * -libm::log(random.uniform())
            }),
        );
        let on = |ms: u64| if ms % 1000 < 600 { 10.0 * scale } else { 0.0 };
        add("on-off", trace(5000, on));
        let mut rate = 0.0;
        add(
            "satellite",
            trace(45_000, |ms| {
                if ms % 15_000 == 1 {
                    rate = scale * (5.0 + 20.0 * random.uniform());
                }
                if ms % 15_000 < 80 { 0.0 } else { rate }
            }),
        );
        // A radio that sends all that is due every 20 ms at once.
        let bursts = trace(2000, |_| 5.0 * scale).into_iter();
        add("bursts", bursts.map(|ms| ms.div_ceil(20) * 20).collect());
    }
    all
}

/// Packets of several sizes, at nine tenths of the trace's mean rate, with pauses and bursts. None comes at a whole millisecond,
/// where mahimahi and this link would have to agree who is first.
fn arrivals(times: &[u64], seed: u64) -> Vec<Came> {
    let mut random = Stream::new(100 + seed);
    let mean_gap = times[times.len() - 1] as f64 * MS as f64 / times.len() as f64;
    let (mut now, mut all) = (0.0, Vec::new());
    while now < (SPAN_MS * MS) as f64 {
        let bytes = [40, 300, 576, 1000, 1500, 1500][random.up_to(5) as usize];
        now +=
            -libm::log(random.uniform()) * mean_gap * f64::from(bytes) / OPPORTUNITY as f64 / 0.9;
        let at = now as u64;
        all.push((at + u64::from(at % MS == 0), bytes));
    }
    all
}

/// When each packet leaves by mahimahi's algorithm; `None`: there was no room.
fn described(times: &[u64], came: &[Came]) -> Vec<Option<u64>> {
    let period = times[times.len() - 1];
    let mut opportunities =
        (0..).flat_map(|turn| times.iter().map(move |ms| (turn * period + ms) * MS));
    let mut left = vec![None; came.len()];
    let mut queue = VecDeque::new();
    let mut transit: Option<(usize, i64)> = None;
    let mut next = 0;
    while next < came.len() || !queue.is_empty() || transit.is_some() {
        let now = opportunities.next().expect("a trace has no end");
        while next < came.len() && came[next].0 < now {
            if queue.len() < LIMIT {
                queue.push_back(next);
            }
            next += 1;
        }
        let mut worth = OPPORTUNITY;
        while worth > 0 {
            let first = |at: usize| (at, i64::from(came[at].1));
            let Some((packet, needs)) = transit.take().or_else(|| queue.pop_front().map(first))
            else {
                break;
            };
            let sent = needs.min(worth);
            worth -= sent;
            match needs - sent {
                0 => left[packet] = Some(now),
                rest => transit = Some((packet, rest)),
            }
        }
    }
    left
}

/// When each packet leaves the link.
fn ours(times: &[u64], came: &[Came]) -> Vec<Option<u64>> {
    let text: String = times.iter().map(|ms| format!("{ms}\n")).collect();
    let trace = Trace::parse("trace", &text).expect("a trace");
    let mut config = LinkConfig::new(Capacity::Trace(trace));
    config.overhead = 0;
    let mut link = Link::new(
        Box::new(Single::new(DropTail, Limit::Packets(LIMIT as u64))),
        config,
    );
    let mut left = vec![None; came.len()];
    let mut serve = |link: &mut Link<Datagram<usize>>, until: Time| {
        while link.wake() < until {
            let now = link.wake();
            while let Some(packet) = link.serve(now, 0, &mut NoObserver) {
                left[packet.payload] = Some(now.as_nanos());
            }
        }
    };
    for (number, (at, bytes)) in came.iter().enumerate() {
        let now = Time::from_nanos(*at);
        serve(&mut link, now);
        let packet = Datagram::new(number, *bytes);
        if !link.is_idle() {
            link.enqueue(packet, now, 0, &mut NoObserver);
        } else if let Some(packet) = link.enqueue_idle(packet, now, 0, &mut NoObserver) {
            link.hold(packet, now);
        }
    }
    serve(&mut link, Time::MAX);
    left
}

#[test]
fn packets_leave_when_they_do_by_mahimahis_algorithm() {
    let traces = traces();
    assert_eq!(traces.len(), 24);
    for (seed, (name, times)) in traces.into_iter().enumerate() {
        let came = arrivals(&times, seed as u64);
        let (should, is) = (described(&times, &came), ours(&times, &came));
        assert!(is.iter().flatten().count() > 400, "{name}");
        assert!(should == is, "{name}: packets leave at other times");
    }
}

#[test]
fn a_packet_that_comes_with_an_opportunity_uses_it() {
    let came = [(5 * MS, 1000), (5 * MS, 1000), (5 * MS, 1000)];
    let left = ours(&[5, 10, 12], &came);
    assert_eq!(left, [5, 10, 10].map(|ms| Some(ms * MS)));
}
