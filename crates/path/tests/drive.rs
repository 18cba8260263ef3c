//! [`Path::drive`] around endpoints with timers of their own.

use core::time::Duration;

use sojourn_path::{Datagram, Delivery, Endpoint, Path, Way};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Answers each packet, and sends one of its own every `every`.
struct Talker {
    every: Duration,
    due: Duration,
    answers: u32,
    heard: Vec<(Duration, &'static str)>,
}

impl Talker {
    fn new(every: Duration) -> Self {
        Self {
            every,
            due: every,
            answers: 0,
            heard: Vec::new(),
        }
    }
}

impl Endpoint<&'static str> for Talker {
    fn transmit(&mut self, now: Duration) -> Option<Datagram<&'static str>> {
        if self.answers > 0 {
            self.answers -= 1;
            return Some(Datagram::new("answer", 100));
        }
        (now >= self.due).then(|| {
            self.due += self.every;
            Datagram::new("call", 100)
        })
    }

    fn receive(&mut self, packet: Delivery<&'static str>) {
        self.answers += u32::from(packet.payload == "call");
        self.heard.push((packet.at, packet.payload));
    }

    fn timeout(&mut self) -> Option<Duration> {
        Some(self.due)
    }

    fn on_timeout(&mut self, now: Duration) {
        assert_eq!(now, self.due, "a timer is called when it is due");
    }
}

#[test]
fn two_talk_and_hear_each_other_at_the_right_instants() {
    let mut path = Path::new("1 Gbit/s", "20 ms").expect("a path").build();
    let (mut server, mut client) = (Talker::new(ms(1000)), Talker::new(ms(30)));
    path.drive((&mut server, &mut client), ms(60));
    // The client calls at 30 ms; the server answers at once.
    assert_eq!(server.heard, [(ms(40), "call")]);
    assert_eq!(client.heard, [(ms(50), "answer")]);
    // What is due at the end itself belongs to the next call, before which the path may change.
    assert_eq!((path.now(), client.due), (ms(60), ms(60)));
    path.set_delay("40 ms").expect("a time");
    path.drive((&mut server, &mut client), ms(101));
    assert_eq!(server.heard[1..], [(ms(80), "call")]);
    assert_eq!(client.heard[1..], [(ms(100), "answer")]);
}

#[test]
fn driving_in_parts_is_driving_at_once() {
    let run = |parts: u64| {
        let mut path = Path::new("1 Mbit/s", "33 ms").expect("a path").build();
        let (mut server, mut client) = (Talker::new(ms(3)), Talker::new(ms(7)));
        for part in 1..=parts {
            path.drive((&mut server, &mut client), ms(600 * part / parts));
        }
        (server.heard, client.heard, path.counts(Way::Down))
    };
    assert_eq!(run(1), run(6));
    assert_eq!(run(1), run(100));
}

#[test]
#[should_panic(expected = "a timer stays due")]
fn a_timer_that_stays_due_is_told() {
    struct Stuck;
    impl Endpoint<()> for Stuck {
        fn transmit(&mut self, _: Duration) -> Option<Datagram<()>> {
            None
        }
        fn receive(&mut self, _: Delivery<()>) {}
        fn timeout(&mut self) -> Option<Duration> {
            Some(ms(5))
        }
        fn on_timeout(&mut self, _: Duration) {}
    }
    let mut path = Path::new("1 Mbit/s", "33 ms").expect("a path").build();
    path.drive((&mut Stuck, &mut Stuck), ms(10));
}
