//! Turns arbitrary bytes into a path, its impairments and its traffic, plays that and checks it after every step. For property
//! tests and for fuzzing.

use core::time::Duration;

use sojourn_path::impair::{Jitter, Shape};
use sojourn_path::{Datagram, Delivery, Ecn, Impair, Path, Verdict, Way};

const AQMS: [&str; 12] = [
    "pfifo", "bfifo", "codel", "pie", "fq_codel", "fq_pie", "cake", "dualpi2", "red", "sfq",
    "choke", "cobalt",
];
const RATES: [&str; 5] = [
    "100 kbit/s",
    "1 Mbit/s",
    "10 Mbit/s",
    "1 Gbit/s",
    "1 Tbit/s",
];
const RTTS: [&str; 4] = ["0 ms", "1 us", "40 ms", "1 s"];
const SPREADS: [&str; 4] = ["0 ms", "1 us", "3 ms", "1 s"];
const BUFFERS: [&str; 4] = ["1 packets", "10 packets", "1000 packets", "1 B"];

/// Bytes as numbers; zeros when they are used up.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.next()) % choices.len()]
    }

    /// 0, 1, or a number between.
    fn share(&mut self) -> f64 {
        match self.next() {
            0 => 0.0,
            255 => 1.0,
            other => f64::from(other) / 1000.0,
        }
    }

    /// From nothing to some seconds, most often short.
    fn span(&mut self) -> Duration {
        let (exponent, mantissa) = (self.next() % 34, u64::from(self.next()));
        Duration::from_nanos((mantissa << exponent) >> 8)
    }

    fn impair(&mut self) -> Option<Impair> {
        let which = self.next();
        if which < 128 {
            return None;
        }
        let mut impair = Impair::new();
        if which & 1 != 0 {
            impair = impair.loss(self.share());
        }
        if which & 2 != 0 {
            impair = impair.bursts(self.share(), self.share(), self.share(), self.share());
        }
        if which & 4 != 0 {
            let shape = self.of(&[Shape::Normal, Shape::Uniform, Shape::Pareto]);
            let jitter = Jitter::new(self.span().into(), self.span().into(), shape);
            impair = match self.next() {
                0..=127 => impair.jitter(self.of(&SPREADS)),
                _ => impair.jitter_of(jitter),
            };
        }
        if which & 8 != 0 {
            impair = impair.reorder(self.share(), self.of(&SPREADS));
        }
        if which & 16 != 0 {
            impair = impair.duplicate(self.share());
        }
        if which & 32 != 0 {
            impair = impair.corrupt(self.share());
        }
        if which & 64 != 0 {
            impair = impair.deliver_damaged();
        }
        if self.next() >= 192 {
            let mut from = Duration::ZERO;
            let steps: Vec<_> = (0..self.next() % 8)
                .map(|_| {
                    from += self.span() + Duration::from_nanos(1);
                    (from, self.span())
                })
                .collect();
            impair = impair.delays(steps);
        }
        Some(impair)
    }

    /// A path that is not refused, if these bytes mean one.
    fn path(&mut self) -> Option<Path<u32>> {
        let limit = self.of(&BUFFERS);
        let mut builder = Path::new(self.of(&RATES), self.of(&RTTS)).ok()?;
        builder = builder.aqm(self.of(&AQMS), [("limit", limit)]).ok()?;
        if self.next() % 2 == 1 {
            builder = builder.up(self.of(&RATES), self.of(&AQMS)).ok()?;
        }
        for way in [Way::Down, Way::Up] {
            if let Some(impair) = self.impair() {
                builder = builder.impair(way, impair).ok()?;
            }
        }
        Some(builder.seed(self.next().into()).build())
    }
}

/// What was seen of a path from outside.
#[derive(Default, PartialEq, Debug)]
struct Seen {
    delivered: Vec<Delivery<u32>>,
    /// By direction: dropped, marked, lost, duplicated.
    told: [[u64; 4]; 2],
    steps: u64,
}

impl Seen {
    /// Every packet is where it should be, once.
    fn check(&mut self, path: &mut Path<u32>, polled: bool) {
        for event in path.verdicts() {
            let told = &mut self.told[event.way as usize];
            match event.verdict {
                Verdict::Dropped { .. } => told[0] += 1,
                Verdict::Marked => told[1] += 1,
                Verdict::Lost => told[2] += 1,
                Verdict::Duplicated => told[3] += 1,
                _ => {}
            }
        }
        let mut there = 0;
        for (way, told) in [Way::Down, Way::Up].into_iter().zip(self.told) {
            let counts = path.counts(way);
            assert_eq!(
                [
                    counts.dropped,
                    counts.marked,
                    counts.lost,
                    counts.duplicated
                ],
                told,
                "{way:?}"
            );
            if polled {
                let delivered = self.delivered.iter().filter(|out| out.way == way).count() as u64;
                assert_eq!(counts.delivered, delivered, "{way:?}");
            }
            there +=
                counts.sent + counts.duplicated - counts.delivered - counts.dropped - counts.lost;
        }
        assert_eq!(
            path.packets(),
            there,
            "sent + duplicated = delivered + dropped + lost + under way"
        );
        assert!(path.next_event().is_none_or(|at| at >= path.now()));
    }

    fn poll(&mut self, path: &mut Path<u32>, now: Duration) {
        while let Some(out) = path.poll(now) {
            assert!(
                out.sent <= out.at && out.at <= now && out.sojourn <= out.at - out.sent,
                "{out:?}"
            );
            let last = self.delivered.last().map_or(Duration::ZERO, |last| last.at);
            assert!(out.at >= last, "{out:?} before {last:?}");
            self.delivered.push(out);
        }
    }
}

fn once(bytes: &[u8]) -> Option<Seen> {
    let mut bytes = Bytes(bytes);
    let mut path = bytes.path()?;
    let (mut seen, mut now) = (Seen::default(), Duration::ZERO);
    while !bytes.0.is_empty() && seen.steps < 2000 {
        seen.steps += 1;
        let action = bytes.next();
        match action {
            0..=199 => {
                let way = bytes.of(&[Way::Down, Way::Down, Way::Up]);
                let size = bytes.of(&[0, 60, 1500, 1500, 9000]);
                let ecn = bytes.of(&[Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
                let flow = sojourn_path::FlowKey::numbered(u32::from(action % 4));
                let packet = Datagram::new(size, size).with_ecn(ecn).with_flow(flow);
                path.send(now, way, packet);
            }
            200..=229 => now += bytes.span(),
            230..=249 => seen.poll(&mut path, now),
            250..=252 => {
                let _ = path.set_rate(bytes.of(&[Way::Down, Way::Up]), bytes.of(&RATES));
            }
            _ => path.set_delay(bytes.of(&RTTS)).expect("a time"),
        }
        seen.check(&mut path, false);
    }
    let mut turns = 0;
    while let Some(next) = path.next_event() {
        seen.poll(&mut path, next);
        turns += 1;
        assert!(turns < 1_000_000, "it does not become empty: {path:?}");
    }
    seen.check(&mut path, true);
    assert_eq!(path.packets(), 0);
    assert!(seen.delivered.iter().all(|out| out.payload == out.bytes));
    Some(seen)
}

/// Plays these bytes twice: both times are the same.
pub fn play(bytes: &[u8]) {
    assert_eq!(once(bytes), once(bytes));
}
