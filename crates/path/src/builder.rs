//! A network from links and the stages of routes.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sojourn_aqm::Qdisc;
use sojourn_units::{Duration, Rate, Time};

use crate::delay_line::DelayLine;
use crate::event_queue::EventQueue;
use crate::impair::{Impair, Impairment};
use crate::link::{Link, LinkConfig};
use crate::medium::Medium;
use crate::network::lookahead::{self, Lookahead};
use crate::network::{AccessLink, Hop, Network, Packet, Route};
use crate::observer::Observer;
use crate::wire::Wire;

/// A stage of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Stage {
    /// The queue of a link, by the number that [`Builder::add_link`] gave.
    Link(usize),
    /// Propagation.
    Delay(Duration),
    /// A host's access link, by the number that [`Builder::add_access`] gave. Only at the beginning.
    Access(usize),
    /// An impairment, by the number that [`Builder::add_impairment`] gave. It acts on the delays that follow it, up to the next
    /// stage; packets stay in order among those of the same delay.
    Impaired(usize),
    /// Propagation that can change, by the number that [`Builder::add_wire`] gave.
    Wire(usize),
    /// The headers get longer by so many bytes, as those of the next link are.
    ChangeBytes(i32),
    /// A queue of a shared medium: the medium's number in the list given to [`Builder::build_with_media`], and the entry,
    /// the medium's number for the queue.
    Shared(u16, u16),
}

/// A network being built.
#[derive(Debug)]
pub struct Builder<P> {
    links: Vec<Link<P>>,
    /// The delay of each delay line and the hop behind it. Routes with the same delay before the same hop share a line, so
    /// that their packets stay in order.
    lines: Vec<(Duration, Hop)>,
    accesses: Vec<Rate>,
    wires: Vec<WirePlan>,
    impairments: Vec<Impairment<P>>,
    hops: Vec<Hop>,
    departures_first: bool,
}

/// A wire to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct WirePlan {
    delay: Duration,
    impairment: Option<usize>,
    /// What follows, of a wire that [`Stage::Impaired`] has made.
    next: Option<Hop>,
}

impl<P: Packet> Builder<P> {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self {
            links: Vec::new(),
            lines: Vec::new(),
            accesses: Vec::new(),
            wires: Vec::new(),
            impairments: Vec::new(),
            hops: Vec::new(),
            departures_first: false,
        }
    }

    /// At the same instant links act before delay lines: a packet leaves a queue before another arrives there, as on a
    /// kernel in virtual time, whose timers are never late. See [`crate::EventSource`].
    pub const fn departures_first(&mut self) {
        self.departures_first = true;
    }

    /// Adds one direction of a link with its discipline; returns its number, counted from 0.
    pub fn add_link(&mut self, qdisc: Box<dyn Qdisc<P> + Send>, config: LinkConfig) -> usize {
        self.links.push(Link::new(qdisc, config));
        self.links.len() - 1
    }

    /// Adds a host's access link with this rate; returns its number, counted from 0.
    pub fn add_access(&mut self, rate: Rate) -> usize {
        self.accesses.push(rate);
        self.accesses.len() - 1
    }

    /// Adds propagation that can change while the network runs; returns its number, counted from 0.
    pub fn add_wire(&mut self, delay: Duration) -> usize {
        self.add_impaired_wire(delay, None)
    }

    /// As [`Builder::add_wire`], with an impairment by its number.
    pub fn add_impaired_wire(&mut self, delay: Duration, impairment: Option<usize>) -> usize {
        self.wires.push(WirePlan {
            delay,
            impairment,
            next: None,
        });
        self.wires.len() - 1
    }

    /// Adds an impairment whose draws follow from `seed`; returns its number, counted from 0. `copy` makes the copies of packets
    /// that arrive twice.
    pub fn add_impairment(&mut self, impair: Impair, seed: u64, copy: fn(&P) -> P) -> usize {
        self.impairments.push(Impairment::new(impair, seed, copy));
        self.impairments.len() - 1
    }

    /// Makes the delay line with this delay that ends a route, unless there is one. At the same instant lines act in the
    /// order in which they were made.
    pub fn reserve_last_line(&mut self, delay: Duration) {
        self.line(delay, Hop::End);
    }

    /// Adds a route. Consecutive delays are added up. A delay of zero is left out unless the route begins with it.
    pub fn add_route(&mut self, stages: &[Stage]) -> Route {
        let begin = self.hops.len();
        let mut hops = Vec::new();
        let mut delay = None;
        // From the end: a delay line is identified by its delay and the stage that follows it.
        let mut next = Hop::End;
        if stages.iter().any(|stage| self.damages(stage)) {
            next = Hop::Inspect;
            hops.push(next);
        }
        for (index, stage) in stages.iter().enumerate().rev() {
            if let Stage::Delay(span) = stage {
                let sum = delay.unwrap_or(Duration::ZERO) + *span;
                delay = (!sum.is_zero() || index == 0).then_some(sum);
                continue;
            }
            if let Stage::Impaired(impairment) = stage {
                let wire = self.impaired(*impairment, delay.take(), next);
                next = Hop::Wire(wire as u32);
                hops.push(next);
                continue;
            }
            self.delayed(&mut hops, delay.take(), next);
            next = match *stage {
                Stage::Link(link) => Hop::Link(link as u32),
                Stage::Access(access) => Hop::Access(access as u32),
                Stage::Wire(wire) => Hop::Wire(wire as u32),
                Stage::Impaired(_) => unreachable!("it has taken the delay"),
                Stage::ChangeBytes(by) => Hop::ChangeBytes(by),
                Stage::Shared(medium, entry) => {
                    Hop::Shared(u32::from(medium) << 16 | u32::from(entry))
                }
                Stage::Delay(_) => unreachable!("it was summed up"),
            };
            hops.push(next);
        }
        self.delayed(&mut hops, delay, next);
        self.hops.extend(hops.into_iter().rev());
        self.hops.push(Hop::End);
        Route(begin as u32)
    }

    /// True if packets may be damaged at a stage, and are lost then at the end of the route.
    fn damages(&self, stage: &Stage) -> bool {
        let impairment = match *stage {
            Stage::Impaired(impairment) => Some(impairment),
            Stage::Wire(wire) => self.wires[wire].impairment,
            _ => None,
        };
        impairment.is_some_and(|number| self.impairments[number].impair.damages())
    }

    /// The wire with this impairment and delay before what is next.
    fn impaired(&mut self, impairment: usize, delay: Option<Duration>, next: Hop) -> usize {
        let plan = WirePlan {
            delay: delay.unwrap_or(Duration::ZERO),
            impairment: Some(impairment),
            next: Some(next),
        };
        let known = self.wires.iter().position(|known| *known == plan);
        known.unwrap_or_else(|| {
            self.wires.push(plan);
            self.wires.len() - 1
        })
    }

    /// Puts a line before what is next, if there is a delay.
    fn delayed(&mut self, hops: &mut Vec<Hop>, delay: Option<Duration>, next: Hop) {
        if let Some(delay) = delay {
            hops.push(Hop::Line(self.line(delay, next) as u32));
        }
    }

    fn line(&mut self, delay: Duration, next: Hop) -> usize {
        let known = self.lines.iter().position(|line| *line == (delay, next));
        known.unwrap_or_else(|| {
            self.lines.push((delay, next));
            self.lines.len() - 1
        })
    }

    /// The network, seen by `observer`.
    pub fn build<O: Observer<P>>(self, observer: O) -> Network<P, O> {
        self.build_with_media(observer, Vec::new())
    }

    /// The network with shared media, seen by `observer`.
    pub fn build_with_media<O, M>(self, observer: O, media: Vec<M>) -> Network<P, O, M>
    where
        O: Observer<P>,
        M: Medium<P, O>,
    {
        let mut lines: Vec<DelayLine<P>> = Vec::new();
        lines.extend(self.lines.iter().map(|(delay, _)| DelayLine::new(*delay)));
        let mut accesses = Vec::new();
        // Each access link and each wire has a line of its own. These lines come after the shared ones.
        for rate in &self.accesses {
            lines.push(DelayLine::new(Duration::ZERO));
            accesses.push(AccessLink {
                rate: *rate,
                free: Time::ZERO,
                line: lines.len() - 1,
            });
        }
        let mut wires = Vec::new();
        for plan in self.wires {
            let overtaking = |number: usize| self.impairments[number].impair.reorder.is_some();
            let mut last = lines.len();
            lines.push(DelayLine::new(Duration::ZERO));
            let first = last;
            if plan.impairment.is_some_and(overtaking) {
                last += 1;
                lines.push(DelayLine::new(Duration::ZERO));
            }
            wires.push(Wire::new(plan.delay, plan.impairment, [first, last]));
        }
        let mut hops = self.hops;
        // What goes ahead assumes that arrivals come first.
        if !self.departures_first {
            lookahead::mark(&mut hops, |line| !self.lines[line as usize].0.is_zero());
        }
        let sources = lines.len() + self.links.len() + media.len();
        let lookahead = Lookahead::new(lines.len());
        let mut network = Network {
            events: if self.departures_first {
                EventQueue::links_first(lines.len(), self.links.len(), sources)
            } else {
                EventQueue::new(sources)
            },
            links: self.links,
            media,
            lines,
            accesses,
            wires,
            impairments: self.impairments,
            hops,
            observer,
            delivered: VecDeque::new(),
            lookahead,
        };
        for number in 0..network.links.len() {
            network.note_due(number);
        }
        let before = network.lines.len() + network.links.len();
        for (number, medium) in network.media.iter().enumerate() {
            network.events.set(before + number, medium.due());
        }
        network
    }
}
