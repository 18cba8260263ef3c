use super::*;
use crate::cc::by_name;

/// Both ends after a handshake without loss or delay.
fn connected(client: &str, server: &str) -> [Endpoint; 2] {
    connected_as(&Config::default(), client, server)
}

fn connected_as(config: &Config, client: &str, server: &str) -> [Endpoint; 2] {
    let mut ends = [
        Endpoint::connect(config.clone(), &by_name(client), Seq(1000)),
        Endpoint::listen(config.clone(), &by_name(server), Seq(2000)),
    ];
    for turn in 0..4 {
        let (from, to) = (turn % 2, 1 - turn % 2);
        while let Some(sent) = ends[from].poll(Time::ZERO) {
            ends[to].on_segment(&sent.segment, Arrival::NotEct, Time::ZERO);
        }
    }
    assert!(ends.iter().all(Endpoint::is_established));
    ends
}

/// The segments of a file of 100 bytes, closed before the handshake: who sends, and the segment.
fn transfer() -> Vec<(usize, Segment)> {
    let config = Config::default();
    let reno = &by_name("reno");
    let mut ends = [
        Endpoint::connect(config.clone(), reno, Seq(1000)),
        Endpoint::listen(config, reno, Seq(2000)),
    ];
    ends[0].write(100);
    ends[0].close();
    let mut sent = Vec::new();
    for turn in 0..8 {
        let (from, to) = (turn % 2, 1 - turn % 2);
        let now = Time::from_millis(turn as u64);
        while let Some(transmit) = ends[from].poll(now) {
            sent.push((from, transmit.segment));
            ends[to].on_segment(&transmit.segment, Arrival::NotEct, now);
        }
        if ends[to].peer_has_closed() {
            ends[to].close();
        }
    }
    assert!(ends.iter().all(Endpoint::is_closed));
    sent
}

/// RFC 9293 §3.5 and §3.6: the last segment of a handshake is an acknowledgement alone, and the last segment of a
/// connection acknowledges the peer's FIN.
#[test]
fn a_transfer_begins_and_ends_with_an_acknowledgement_alone() {
    let sent = transfer();
    let setups = sent
        .iter()
        .filter(|(_, segment)| segment.flags.contains(Flags::SYN));
    assert_eq!(setups.count(), 2);
    assert_eq!((sent[2].0, sent[2].1.len), (0, 0));
    let (from, last) = sent[sent.len() - 1];
    let fin = sent
        .iter()
        .rfind(|(from, _)| *from == 1)
        .map(|(_, segment)| segment.end());
    assert_eq!((from, last.sequence_len(), Some(last.ack)), (0, 0, fin));
}

/// A connection opened over an empty path has the round trip of that path as its first sample, at both ends, and sends
/// its data next.
#[test]
fn a_connection_opened_before_begins_with_data() {
    let rtt = Duration::from_millis(50);
    let config = Arc::new(Config {
        accecn: true,
        ecn: true,
        ..Config::default()
    });
    let mut ends = Endpoint::connected(
        &config,
        &by_name("cubic"),
        [Seq(1), Seq(2)],
        rtt,
        Time::ZERO,
    );
    for end in &mut ends {
        assert!(end.is_established() && end.poll(Time::ZERO).is_none());
        assert_eq!(end.sender().smoothed_rtt(), Some(rtt));
        assert_eq!(end.next_timer(), None);
    }
    ends[0].write(8);
    let sent = ends[0].poll(Time::ZERO).expect("data").segment;
    assert_eq!((sent.seq, sent.len), (Seq(2), 8));
}

/// As Linux's write() and close(): what the window allows is sent before the close is known, so the FIN is a packet of
/// its own (tcp_send_fin) unless data is left. In 6.1 it and the last segment then pass the full window of 2.
#[test]
fn a_fin_goes_alone_if_all_data_has_left() {
    let first_flight = |bytes, kernel| {
        let config = Config {
            mss: 1000,
            initial_window: 2,
            kernel,
            ..Config::default()
        };
        let reno = &by_name("reno");
        let mut ends = [
            Endpoint::connect(config.clone(), reno, Seq(1000)),
            Endpoint::listen(config, reno, Seq(2000)),
        ];
        ends[0].write(bytes);
        ends[0].close();
        for (from, to) in [(0, 1), (1, 0)] {
            let setup = ends[from].poll(Time::ZERO).expect("a handshake").segment;
            ends[to].on_segment(&setup, Arrival::NotEct, Time::ZERO);
        }
        let sent = std::iter::from_fn(|| ends[0].poll(Time::ZERO));
        sent.skip(1)
            .map(|sent| (sent.segment.len, sent.segment.flags.contains(Flags::FIN)))
            .collect::<Vec<_>>()
    };
    let (whole, short, alone) = ((1000, false), (500, false), (0, true));
    for kernel in [Kernel::V6_1, Kernel::V6_12, Kernel::V7_3] {
        assert_eq!(first_flight(500, kernel), [short, alone]);
        assert_eq!(first_flight(2700, kernel)[..2], [whole, whole]);
    }
    assert_eq!(first_flight(1500, Kernel::V6_1), [whole, short, alone]);
    for kernel in [Kernel::V6_12, Kernel::V7_3] {
        assert_eq!(first_flight(1500, kernel), [whole, short]);
    }
    assert_eq!(
        first_flight(2700, Kernel::V6_1),
        [whole, whole, (700, true)]
    );
    assert_eq!(first_flight(2700, Kernel::V7_3), [whole, whole]);
}

/// As in Linux's TCPTimeouts, timeouts of SYN, SYN-ACK and data count; that of a tail loss probe does not.
#[test]
fn timeouts_of_handshake_and_data_are_counted() {
    let fire = |end: &mut Endpoint, what: &str| {
        while end.poll(Time::ZERO).is_some() {}
        let due = end.next_timer().expect(what);
        end.on_timer(due);
    };
    let reno = &by_name("reno");
    let mut client = Endpoint::connect(Config::default(), reno, Seq(1000));
    fire(&mut client, "a SYN is out");
    assert_eq!(client.timeouts(), 1);

    let mut server = Endpoint::listen(Config::default(), reno, Seq(2000));
    let syn = client
        .poll(Time::from_millis(1000))
        .expect("the SYN is retransmitted");
    server.on_segment(&syn.segment, Arrival::NotEct, Time::from_millis(1000));
    fire(&mut server, "a SYN-ACK is out");
    assert_eq!(server.timeouts(), 1);

    let [mut client, _] = connected("reno", "reno");
    client.write(1);
    let probe_and_two_timeouts = 3;
    for _ in 0..probe_and_two_timeouts {
        fire(&mut client, "data is out");
    }
    assert_eq!(client.timeouts(), 2);
}

/// With tcp_syn_linear_timeouts = 4 the first five timeouts are 1 s, the next ones 2, 4, … s. There are ten
/// retransmissions: these 4 and tcp_syn_retries = 6.
#[test]
fn since_6_5_the_first_five_retransmissions_of_a_syn_are_a_second_apart() {
    let reno = &by_name("reno");
    let config = Config {
        kernel: Kernel::V7_3,
        clock: crate::config::Clock::Exact,
        ..Config::default()
    };
    let mut client = Endpoint::connect(config, reno, Seq(1000));
    let mut sent = Vec::new();
    let mut now = Time::ZERO;
    while let Some(syn) = client.poll(now) {
        assert!(syn.segment.flags.contains(Flags::SYN));
        sent.push(now.as_nanos() / 1_000_000_000);
        now = client.next_timer().expect("a SYN is out");
        client.on_timer(now);
    }
    assert_eq!(sent, [0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67]);
    assert!(client.has_failed());
}

/// RFC 8257 §3.2: when the marking changes while an acknowledgement is delayed, that goes with the old echo, and another
/// with the new one. So an end that has nothing else to send may owe two.
#[test]
fn a_change_of_the_marking_ends_in_two_acknowledgements() {
    let config = Config {
        quickack: false,
        ..Config::default()
    };
    let [mut sender, mut receiver] = connected_as(&config, "dctcp", "dctcp");
    sender.write(crate::UNLIMITED);
    let mut echoes = |ecn, at| {
        let now = Time::from_millis(at);
        let sent = sender.poll(now).expect("the window has room").segment;
        receiver.on_segment(&sent, ecn, now);
        let mut echoes = Vec::new();
        while receiver.is_idle() && receiver.has_to_send() {
            let mut answer = Segment::default();
            receiver.acknowledge_into(&mut answer, now);
            sender.on_segment(&answer, Arrival::NotEct, now);
            echoes.push(answer.flags.contains(Flags::ECE));
        }
        echoes
    };
    assert_eq!(echoes(Arrival::Ect0, 100), [], "it is delayed");
    assert_eq!(echoes(Arrival::Ce, 101), [false, true]);
}

/// RFC 9331 §4.1, §4.2: only ends with accurate feedback send ECT(1).
#[test]
fn only_a_connection_with_accurate_feedback_sends_ect1() {
    for (client, server, ect1) in [
        ("prague", "prague", true),
        ("prague", "dctcp", false),
        ("dctcp", "dctcp", false),
        ("reno", "prague", false),
    ] {
        let sends = connected(client, server).map(|end| end.sends_ect1());
        assert_eq!(sends, [ect1; 2], "{client} to {server}");
    }
}

/// What both ends send while the first sends data and later the second, whose sending half is there from the handshake on if
/// `early`, and the second's estimates at the end.
fn answered_late(early: bool) -> (Vec<(usize, Time, Segment)>, String) {
    let config = Config::default();
    let cubic = &by_name("cubic");
    let mut ends = [
        Endpoint::connect(config.clone(), cubic, Seq(1000)),
        Endpoint::listen(config, cubic, Seq(2000)),
    ];
    ends[0].write(100_000);
    let mut sent = Vec::new();
    for turn in 0..60 {
        let (from, to) = (turn % 2, 1 - turn % 2);
        let now = Time::from_millis(20 * turn as u64);
        match turn {
            3 if early => assert!(ends[1].sender().smoothed_rtt().is_some()),
            40 => ends[1].write(50_000),
            _ => {}
        }
        ends.iter_mut().for_each(|end| end.on_timer(now));
        while let Some(Transmit { mut segment, .. }) = ends[from].poll(now) {
            segment.window += 100 * turn as u32; // the first end's offers change before the second sends
            sent.push((from, now, segment));
            ends[to].on_segment(&segment, Arrival::NotEct, now);
        }
    }
    let sender = ends[1].sender();
    let estimates = (sender.smoothed_rtt(), sender.timeout(), sender.cwnd());
    (sent, format!("{estimates:?}"))
}

#[test]
fn a_sending_half_made_late_is_like_one_made_early() {
    let (sent, estimates) = answered_late(false);
    let bytes = |of| -> u32 {
        let segments = sent.iter().filter(|(from, ..)| *from == of);
        segments.map(|(.., segment)| u32::from(segment.len)).sum()
    };
    assert_eq!((bytes(0), bytes(1)), (100_000, 50_000));
    assert_eq!((sent, estimates), answered_late(true));
}

/// There may be hundreds of thousands of ends, most of which only receive.
#[test]
fn an_end_that_only_receives_has_no_sender() {
    let mut ends = connected("cubic", "cubic");
    ends[0].write(10_000);
    while let Some(sent) = ends[0].poll(Time::ZERO) {
        ends[1].on_segment(&sent.segment, Arrival::NotEct, Time::ZERO);
    }
    assert_eq!(ends[1].received(), 10_000);
    assert!(ends[0].half.sender().is_some() && ends[1].half.sender().is_none());
}
