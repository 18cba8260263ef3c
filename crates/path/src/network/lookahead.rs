//! Links in a row: a packet passes those that are idle at once, ahead of time.
//!
//! A link to which only one delay line leads sees its packets in the order in which they entered that line. If it is idle and
//! has no timer, what becomes of a packet when it gets there is known when it enters the line, and so on behind the link.
//! So it needs no event for each link. Every step has the same time as with events; but the observer hears of different links
//! out of the order of time. A caller that looks at the links at some instants allows packets to go ahead up to the next of them.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_units::{Time, cold_path};

use super::{Hop, Network, Packet};
use crate::medium::Medium;
use crate::observer::Observer;

/// How far packets go ahead of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lookahead {
    /// Up to this instant, exclusive.
    until: Time,
    /// The latest instant at which a packet has passed a link so far.
    reached: Time,
    /// Events that were not needed.
    spared: u64,
    /// By line: when the last packet came out that went ahead. Others that come out at this instant belong to the same event.
    came_out: Vec<Option<Time>>,
}

impl Lookahead {
    /// For so many lines; nothing goes ahead at first.
    pub(crate) fn new(lines: usize) -> Self {
        Self {
            came_out: vec![None; lines],
            ..Self::default()
        }
    }

    /// A packet comes out of a line ahead of time.
    fn go(&mut self, line: usize, due: Time) {
        self.reached = self.reached.max(due);
        self.spared += u64::from(self.came_out[line].replace(due) != Some(due));
    }

    /// A packet comes out of a line with an event.
    fn stay(&mut self, line: usize, due: Time) {
        self.spared -= u64::from(self.came_out[line].take() == Some(due));
    }
}

impl<P: Packet, O: Observer<P>, M: Medium<P, O>> Network<P, O, M> {
    /// Lets packets pass links in a row ahead of time up to `until`, exclusive; [`Time::ZERO`]: none does, as at first. All
    /// links do the same at the same times as without, if they are looked at and changed at `until` and not before, and if the
    /// observer does not depend on the order in which different links call it.
    pub const fn look_ahead(&mut self, until: Time) {
        self.lookahead.until = until;
    }

    /// The latest instant at which a packet has passed a link ahead of time.
    pub const fn looked_ahead(&self) -> Time {
        self.lookahead.reached
    }

    /// Events that were not needed because packets went ahead.
    pub const fn spared_events(&self) -> u64 {
        self.lookahead.spared
    }

    /// A packet enters a line of [`Hop::LineAhead`], and what is behind it as far as it passes that at once.
    #[inline(never)]
    pub(crate) fn enter_ahead(&mut self, mut line: usize, mut packet: P, mut now: Time) {
        loop {
            let due = self.lines[line].due(now);
            let Hop::Link(number) = self.hops[packet.hop() as usize] else {
                unreachable!("a link follows")
            };
            let number = number as usize;
            let link = &mut self.links[number];
            if due >= self.lookahead.until || !self.lines[line].is_empty() || !link.lets_pass(due) {
                self.lookahead.stay(line, due);
                return self.enter_line(line, packet, now);
            }
            self.lookahead.go(line, due);
            packet.set_hop(packet.hop() + 1);
            let left = link.enqueue_idle(packet, due, number, &mut self.observer);
            if link.may_act() {
                cold_path();
                self.note_due(number);
            }
            let Some(passed) = left else { return };
            (packet, now) = (passed, due);
            self.observer.on_departure(number, &packet, now);
            let next = self.hops[packet.hop() as usize];
            packet.set_hop(packet.hop() + 1);
            match next {
                Hop::LineAhead(next) => line = next as usize,
                Hop::Line(next) => return self.enter_line(next as usize, packet, now),
                _ => unreachable!("a line follows"),
            }
        }
    }
}

/// Marks the lines before links that packets may pass ahead of time: they take time, no other hop leads to the link, and none
/// but the link to the line behind it.
pub(crate) fn mark(hops: &mut [Hop], takes_time: impl Fn(u32) -> bool) {
    // `None`: the beginning of a route.
    let mut before: Vec<(Hop, Option<Hop>)> = Vec::new();
    for (index, hop) in hops.iter().enumerate() {
        let previous = index.checked_sub(1).map(|index| hops[index]);
        let pair = (*hop, previous.filter(|previous| *previous != Hop::End));
        if matches!(hop, Hop::Link(_) | Hop::Line(_)) && !before.contains(&pair) {
            before.push(pair);
        }
    }
    let leads_alone = |first: Hop, next: Hop| {
        let mut to = before.iter().filter(|(hop, _)| *hop == next);
        to.next() == Some(&(next, Some(first))) && to.next().is_none()
    };
    let is_ahead: Vec<bool> = (hops.windows(3))
        .map(|hops| {
            let [
                line @ Hop::Line(number),
                link @ Hop::Link(_),
                next @ Hop::Line(_),
            ] = *hops
            else {
                return false;
            };
            takes_time(number) && leads_alone(line, link) && leads_alone(link, next)
        })
        .collect();
    for (hop, is_ahead) in hops.iter_mut().zip(is_ahead) {
        if let (Hop::Line(line), true) = (*hop, is_ahead) {
            *hop = Hop::LineAhead(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::collections::BTreeMap;

    use proptest::prelude::*;
    use sojourn_aqm::fifo::DropTail;
    use sojourn_aqm::{Datagram, DropReason, Limit, Single};
    use sojourn_units::{Duration, Rate};

    use super::*;
    use crate::network::Hosts;
    use crate::{Builder, LinkConfig, Stage};

    type Told = (&'static str, u32, Time);

    /// What each link tells, in its order.
    #[derive(Default)]
    struct Log(BTreeMap<usize, Vec<Told>>);

    impl Log {
        fn note(&mut self, link: usize, what: &'static str, packet: &Datagram<u32>, now: Time) {
            self.0
                .entry(link)
                .or_default()
                .push((what, packet.payload, now));
        }
    }

    impl Observer<Datagram<u32>> for Log {
        fn on_arrival(&mut self, link: usize, packet: &Datagram<u32>, now: Time) {
            self.note(link, "came", packet, now);
        }
        fn on_dequeue(&mut self, link: usize, packet: &mut Datagram<u32>, now: Time) {
            self.note(link, "dequeued", packet, now);
        }
        fn on_departure(&mut self, link: usize, packet: &Datagram<u32>, now: Time) {
            self.note(link, "left", packet, now);
        }
        fn on_drop(
            &mut self,
            link: usize,
            packet: Datagram<u32>,
            _: DropReason,
            _: Duration,
            now: Time,
        ) {
            self.note(link, "dropped", &packet, now);
        }
    }

    #[derive(Default)]
    struct Arrived(Vec<(u32, Time)>);

    impl Hosts<Datagram<u32>, Log> for Arrived {
        fn deliver(
            &mut self,
            packet: Datagram<u32>,
            now: Time,
            _: &mut Network<Datagram<u32>, Log>,
        ) {
            self.0.push((packet.payload, now));
        }
    }

    #[derive(Clone, Debug)]
    struct Hop {
        mbps: u64,
        burst: u64,
        limit: u64,
        delay_us: u64,
        others: bool,
    }

    #[derive(PartialEq, Debug)]
    struct Ran {
        arrived: Vec<(u32, Time)>,
        /// How much each link had told when it was looked at.
        seen: Vec<usize>,
        log: BTreeMap<usize, Vec<Told>>,
        events: u64,
        spared: u64,
    }

    /// Packets over links in a row, and others over single links. The caller looks at the links at multiples of `every_us`.
    fn run(row: &[Hop], gaps: &[u64], every_us: u64, ahead: bool) -> Ran {
        let mut builder = Builder::new();
        let mut stages = Vec::new();
        let mut others = Vec::new();
        for hop in row {
            let config = LinkConfig {
                burst: hop.burst,
                ..LinkConfig::of_rate(Rate::from_mbps(hop.mbps))
            };
            let qdisc = Single::new(DropTail, Limit::Packets(hop.limit));
            let link = Stage::Link(builder.add_link(Box::new(qdisc), config));
            let delay = Stage::Delay(Duration::from_micros(hop.delay_us));
            stages.extend([link, delay]);
            if hop.others {
                others.push(builder.add_route(&[link, delay]));
            }
        }
        let whole = builder.add_route(&stages);
        let mut network = builder.build(Log::default());
        let mut arrived = Arrived::default();
        let (mut now, mut events, mut seen) = (Time::ZERO, 0, Vec::new());
        let mut sends = Vec::new();
        for (number, gap) in gaps.iter().enumerate() {
            now += Duration::from_micros(*gap);
            sends.push((now, number as u32));
        }
        let mut looks = Time::ZERO;
        for (at, number) in sends.into_iter().chain([(Time::from_secs(60), u32::MAX)]) {
            // As the engine: what is looked at, or sent, ends what may go ahead.
            loop {
                let stop = at.min(looks);
                network.look_ahead(if ahead { stop } else { Time::ZERO });
                while let (Some(source), due) = network.next_before(stop) {
                    network.act(source, due, &mut arrived);
                    events += 1;
                }
                if stop == at {
                    break;
                }
                seen.extend(network.observer.0.values().map(Vec::len));
                looks += Duration::from_micros(every_us);
                if looks > Time::from_secs(2) {
                    looks = Time::MAX;
                }
            }
            if number < u32::MAX {
                network.look_ahead(if ahead { looks } else { Time::ZERO });
                let route = if others.is_empty() || number % 3 > 0 {
                    whole
                } else {
                    others[number as usize % others.len()]
                };
                network.send(Datagram::new(number, 200 + number % 7 * 200), route, at);
            }
        }
        assert_eq!(network.packets(), 0, "all have arrived or were dropped");
        Ran {
            arrived: arrived.0,
            seen,
            events,
            spared: network.spared_events(),
            log: network.observer.0,
        }
    }

    fn hop() -> impl Strategy<Value = Hop> {
        (
            prop::sample::select(vec![2_u64, 8, 20, 100]),
            prop::sample::select(vec![0_u64, 1600, 1600, 5000]),
            1_u64..12,
            prop::sample::select(vec![0_u64, 300, 1000]),
            prop::bool::weighted(0.2),
        )
            .prop_map(|(mbps, burst, limit, delay_us, others)| Hop {
                mbps,
                burst,
                limit,
                delay_us,
                others,
            })
    }

    proptest! {
        /// Everything happens at its time, and as many events are counted as without.
        #[test]
        fn packets_that_go_ahead_change_nothing(
            row in prop::collection::vec(hop(), 2..8),
            gaps in prop::collection::vec(prop_oneof![Just(0_u64), 0_u64..3000], 1..120),
            every_us in prop::sample::select(vec![250_u64, 1000, 7000]),
        ) {
            let mut with = run(&row, &gaps, every_us, true);
            with.events += core::mem::take(&mut with.spared);
            prop_assert_eq!(with, run(&row, &gaps, every_us, false));
        }
    }

    /// Ten links in a row, the first of them the slowest: a packet needs one event, not ten.
    #[test]
    fn a_packet_passes_faster_links_at_once() {
        let slow = Hop {
            mbps: 8,
            burst: 1600,
            limit: 100,
            delay_us: 1000,
            others: false,
        };
        let mut row = vec![
            Hop {
                mbps: 20,
                ..slow.clone()
            };
            10
        ];
        row[0] = slow;
        let told = run(&row, &[1400; 20], 1_000_000, true);
        assert_eq!(told.arrived.len(), 20);
        assert_eq!(
            told.arrived[0].1,
            Time::from_micros(1400) + Duration::from_millis(10)
        );
        assert_eq!((told.events, told.spared), (20, 20 * 9));
    }
}
