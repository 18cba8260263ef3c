//! [`Path`] as its users see it.

use core::time::Duration;

use proptest::prelude::*;
use sojourn_path::{Datagram, Delivery, DropReason, Ecn, Event, Path, PathBuilder, Verdict, Way};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn path<T: Send + 'static>(rate: &str, rtt: &str) -> PathBuilder<T> {
    Path::new(rate, rtt).expect("a rate and a time")
}

/// All that arrives by the end.
fn drain<T>(path: &mut Path<T>) -> Vec<Delivery<T>> {
    let mut all = Vec::new();
    while let Some(now) = path.next_event() {
        all.extend(std::iter::from_fn(|| path.poll(now)));
    }
    all
}

#[test]
fn packets_arrive_with_the_instant_at_which_they_did() {
    // 1000 bytes take 1 ms at 8 Mbit/s; a serial line sends one after another.
    let mut path = path("8 Mbit/s", "20 ms").burst(0).build();
    for number in 0..3 {
        path.send(ms(5), Way::Down, Datagram::new(number, 1000));
    }
    path.send(ms(5), Way::Up, Datagram::new(3, 1000));
    // One call, late: each packet still has its own instant.
    let all: Vec<_> = std::iter::from_fn(|| path.poll(ms(1000))).collect();
    let seen: Vec<_> = all
        .iter()
        .map(|out| (out.payload, out.way, out.at))
        .collect();
    let expected = [
        (0, Way::Down, ms(15)),
        (3, Way::Up, ms(15)),
        (1, Way::Down, ms(16)),
        (2, Way::Down, ms(17)),
    ];
    assert_eq!(seen, expected);
    let waited: Vec<_> = all.iter().map(|out| out.sojourn).collect();
    assert_eq!(waited, [ms(0), ms(0), ms(1), ms(2)]);
}

#[test]
fn the_next_event_is_never_before_the_last_call() {
    let mut path = path("8 Mbit/s", "20 ms").build();
    path.send(ms(0), Way::Down, Datagram::new((), 1000));
    path.send(ms(50), Way::Down, Datagram::new((), 1000));
    // The first arrived at 10 ms, before the last call.
    assert_eq!(path.next_event(), Some(ms(50)));
    assert_eq!(path.poll(ms(50)).map(|out| out.at), Some(ms(10)));
    assert_eq!(path.next_event(), Some(ms(60)));
}

#[test]
#[should_panic(expected = "time went back")]
fn time_does_not_go_back() {
    let mut path = path("8 Mbit/s", "20 ms").build();
    path.send(ms(50), Way::Down, Datagram::new((), 1000));
    path.poll(ms(49));
}

#[test]
fn a_packet_is_marked_or_dropped_and_both_are_told() {
    for ecn in [Ecn::Ect0, Ecn::NotEct] {
        let codel = [("ecn", "true"), ("limit", "100 packets")];
        let mut path = path("8 Mbit/s", "20 ms")
            .aqm("codel", codel)
            .expect("CoDel")
            .build();
        for n in 0..1000 {
            path.send(ms(n) / 2, Way::Down, Datagram::new(n, 1000).with_ecn(ecn));
        }
        let arrived = drain(&mut path);
        let events: Vec<Event> = path.verdicts().collect();
        let count = |wanted: fn(&Verdict) -> bool| {
            events.iter().filter(|event| wanted(&event.verdict)).count()
        };
        let dropped = |reason: DropReason| {
            let dropped = |event: &&Event| event.verdict == Verdict::Dropped { reason };
            events.iter().filter(dropped).count()
        };
        let marked = count(|what| *what == Verdict::Marked);
        assert_eq!(count(|what| *what == Verdict::Arrived), 1000);
        assert_eq!(
            count(|what| matches!(what, Verdict::Left { .. })),
            arrived.len()
        );
        assert_eq!(
            arrived.iter().filter(|out| out.ecn == Ecn::Ce).count(),
            marked
        );
        assert!(dropped(DropReason::Overflow) > 0);
        assert_eq!(marked > 0, ecn == Ecn::Ect0);
        assert_eq!(dropped(DropReason::Aqm) > 0, ecn == Ecn::NotEct);
        // The time in the queue that is told is the one that arrives with the packet.
        for event in &events {
            if let Verdict::Left { sojourn } = event.verdict {
                let out = arrived.iter().find(|out| out.number == event.number);
                assert_eq!(out.map(|out| out.sojourn), Some(sojourn));
            }
        }
    }
}

#[test]
fn flows_between_ipv6_addresses_have_queues_of_their_own() {
    let mut path = path("8 Mbit/s", "20 ms")
        .aqm("fq_codel", [])
        .expect("FQ-CoDel")
        .build();
    let client = "[2001:db8::1]:50000"
        .parse::<std::net::SocketAddr>()
        .expect("an address");
    let server = |n: u16| {
        format!("[2001:db8:{n:x}::1]:443")
            .parse()
            .expect("an address")
    };
    let flow = |n| (server(n), client);
    for _ in 0..20 {
        path.send(
            ms(0),
            Way::Down,
            Datagram::new("bulk", 1000).with_flow(flow(1)),
        );
    }
    path.send(
        ms(1),
        Way::Down,
        Datagram::new("call", 200).with_flow(flow(2)),
    );
    let place = drain(&mut path)
        .iter()
        .position(|out| out.payload == "call");
    assert!(place.expect("it arrived") < 5, "{place:?}");
}

#[test]
fn the_rate_and_the_delay_change_while_it_runs() {
    let mut path = path("8 Mbit/s", "20 ms").burst(0).build();
    for number in 0..3 {
        path.send(ms(0), Way::Down, Datagram::new(number, 1000));
    }
    path.set_rate(Way::Down, "4 Mbit/s").expect("a rate");
    // The first packet has left and takes its millisecond still; then the second leaves and takes two.
    path.poll(ms(1));
    path.set_delay(ms(40)).expect("a time");
    let at: Vec<_> = drain(&mut path).iter().map(|out| out.at).collect();
    assert_eq!(at, [ms(10), ms(11), ms(23)]);
    // A shorter delay does not let packets overtake.
    path.send(ms(100), Way::Up, Datagram::new(3, 1000));
    path.set_delay("2 ms").expect("a time");
    path.send(ms(101), Way::Up, Datagram::new(4, 1000));
    let at: Vec<_> = drain(&mut path)
        .iter()
        .map(|out| (out.payload, out.at))
        .collect();
    assert_eq!(at, [(3, ms(120)), (4, ms(120))]);
}

#[test]
fn an_error_names_the_key_and_what_is_accepted() {
    fn told<T: std::fmt::Debug>(wrong: Result<T, sojourn_path::PathError>) -> String {
        wrong.expect_err("it is wrong").to_string()
    }
    let new = |rate, rtt| Path::<()>::new(rate, rtt);
    let begins = |text: String, with: &str| assert!(text.starts_with(with), "{text}");
    begins(
        told(new("20 Mbt", "40 ms")),
        "rate: got \"20 Mbt\"; must be a rate above zero like \"10 Mbit/s\"",
    );
    begins(
        told(new("20 Mbit/s", "40")),
        "rtt: got \"40\"; must be a time",
    );
    let path = || new("20 Mbit/s", "40 ms").expect("a path");
    begins(
        told(path().aqm("kodel", [])),
        "aqm: got \"kodel\"; must be one of pfifo, ",
    );
    begins(
        told(path().aqm("codel", [("tagret", "5 ms")])),
        "tagret: codel has no such key; it has limit, ecn, target, interval",
    );
    begins(
        told(path().aqm("codel", [("target", "5")])),
        "target: got \"5\"; must be a time like",
    );
    begins(
        told(path().aqm("pie", [("target", "60 s")])),
        "target: got \"60 s\"; must be above 0 and at most 10 s",
    );
    begins(
        told(path().build().set_rate(Way::Up, "1 Mbit/s")),
        "rate: this direction has no link",
    );
}

/// A call: after so many microseconds, what.
#[derive(Clone, Debug)]
enum Call {
    Send { down: bool, bytes: u32, flow: u16 },
    Rate(u64),
    Delay(u64),
    Poll,
}

fn calls() -> impl Strategy<Value = Vec<(u64, Call)>> {
    let call = prop_oneof![
        8 => (any::<bool>(), 40_u32..2000, 0_u16..5)
            .prop_map(|(down, bytes, flow)| Call::Send { down, bytes, flow }),
        1 => (1_u64..50).prop_map(Call::Rate),
        1 => (0_u64..50).prop_map(Call::Delay),
        2 => Just(Call::Poll),
    ];
    proptest::collection::vec((0_u64..3000, call), 1..200)
}

fn played(aqm: &str, calls: &[(u64, Call)], polls: bool) -> (Vec<Delivery<u16>>, Vec<Event>) {
    let mut path = path("10 Mbit/s", "20 ms")
        .aqm(aqm, [("limit", "20 packets")])
        .and_then(|path| path.up("2 Mbit/s", aqm))
        .expect("disciplines")
        .build();
    let mut now = Duration::ZERO;
    let mut all = Vec::new();
    let (mut sent, mut called) = ([0; 2], now);
    for (after, call) in calls {
        now += Duration::from_micros(*after);
        match call {
            Call::Send { down, bytes, flow } => {
                let way = if *down { Way::Down } else { Way::Up };
                let addresses = format!("10.0.0.{flow}:1").parse().expect("an address");
                let to = "10.1.0.1:2".parse().expect("an address");
                let packet = Datagram::new(*flow, *bytes).with_ecn(Ecn::Ect0);
                path.send(now, way, packet.with_flow((addresses, to)));
                sent[way as usize] += 1;
            }
            // Both hold from the last call's instant on.
            Call::Rate(_) | Call::Delay(_) => all.extend(path.poll(now)),
            Call::Poll if polls => all.extend(std::iter::from_fn(|| path.poll(now))),
            Call::Poll => {}
        }
        match call {
            Call::Rate(mbps) => path
                .set_rate(Way::Down, &*format!("{mbps} Mbit/s"))
                .expect("a rate"),
            Call::Delay(delay) => path.set_delay(ms(*delay)).expect("a time"),
            _ => {}
        }
        if polls || !matches!(call, Call::Poll) {
            called = now;
        }
        assert!(path.next_event().is_none_or(|at| at >= called));
        let counts = [Way::Down, Way::Up].map(|way| path.counts(way));
        assert_eq!(counts.map(|counts| counts.sent), sent);
        let ended: u64 = counts.iter().map(|of| of.delivered + of.dropped).sum();
        assert_eq!(sent.iter().sum::<u64>(), ended + path.packets());
    }
    all.extend(drain(&mut path));
    assert_eq!(path.packets(), 0);
    (all, path.verdicts().collect())
}

proptest! {
    /// Sent = delivered + dropped + under way at every call, in both directions. To poll in between changes nothing. Packets of a
    /// flow stay in order, and arrive in the order of their instants.
    #[test]
    fn no_packet_is_lost_uncounted(calls in calls(), aqm in prop_oneof!["pfifo", "codel", "fq_codel", "pie", "cake", "dualpi2"]) {
        let (all, events) = played(&aqm, &calls, true);
        prop_assert_eq!(&(all.clone(), events), &played(&aqm, &calls, false));
        prop_assert!(all.is_sorted_by_key(|out| out.at));
        for way in [Way::Down, Way::Up] {
            for flow in 0..5 {
                let of = all.iter().filter(|out| out.way == way && out.payload == flow);
                prop_assert!(of.is_sorted_by_key(|out| out.number));
            }
        }
    }
}
