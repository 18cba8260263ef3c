//! Links, delay lines, shared media and the routes over them.
//!
//! A route is a list of hops, made when the network is built. All routes stand in one table, and every packet carries the
//! index of its next hop in it. So sending a packet on takes one look-up.

mod bursts;
pub(crate) mod lookahead;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

use sojourn_aqm::{SettingError, Settings};
use sojourn_units::{Duration, Rate, Time, cold_path};

use self::lookahead::Lookahead;
use crate::delay_line::DelayLine;
use crate::event_queue::EventQueue;
use crate::impair::{Fate, Impairment};
use crate::link::Link;
use crate::medium::{Medium, NoMedium};
use crate::observer::Observer;
use crate::wire::Wire;

/// A packet that a network can carry.
pub trait Packet: sojourn_aqm::Packet {
    /// The index of its next hop in the table of routes. Undefined before the packet is sent.
    fn hop(&self) -> u32;

    /// Sets the index of its next hop.
    fn set_hop(&mut self, hop: u32);

    /// Adds `by` to its size: the headers of the next link are longer by so many bytes.
    fn change_bytes(&mut self, by: i32);

    /// Notes that it was damaged, by the number of the impairment. False: it cannot be noted, and the packet is lost at once.
    fn set_damaged(&mut self, _impairment: u16) -> bool {
        false
    }

    /// The impairment that damaged it.
    fn damaged(&self) -> Option<u16> {
        None
    }
}

impl<T> Packet for sojourn_aqm::Datagram<T> {
    fn hop(&self) -> u32 {
        self.hop
    }
    fn set_hop(&mut self, hop: u32) {
        self.hop = hop;
    }
    fn change_bytes(&mut self, by: i32) {
        self.bytes = self.bytes.saturating_add_signed(by);
    }
    fn set_damaged(&mut self, impairment: u16) -> bool {
        self.damaged = Some(impairment);
        true
    }
    fn damaged(&self) -> Option<u16> {
        self.damaged
    }
}

/// The hosts at the ends of routes.
pub trait Hosts<P, O, M = NoMedium> {
    /// Takes a packet that reached the end of its route. The host may send its answer within this call.
    fn deliver(&mut self, packet: P, now: Time, network: &mut Network<P, O, M>);

    /// True if [`Hosts::expect`] is to be called.
    #[inline(always)]
    fn expects(&self) -> bool {
        false
    }

    /// Is told of the packet that comes out of a delay line after the one that is delivered, so that what it concerns can be
    /// fetched.
    fn expect(&self, _packet: &P) {}

    /// Is called after a shared medium has acted: hosts that wait for room there may send.
    fn after_medium(&mut self, _now: Time, _network: &mut Network<P, O, M>) {}

    /// As [`Hosts::deliver`], of the first packet of what may be a burst. Returns the rest of that, whose packets are still
    /// queued.
    #[inline(always)]
    fn deliver_first(&mut self, packet: P, now: Time, network: &mut Network<P, O, M>) -> Option<P> {
        self.deliver(packet, now, network);
        None
    }
}

/// A route, by the index of its first hop in the table of routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route(pub(crate) u32);

/// A hop of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hop {
    /// Into the queue of a link, by its number.
    Link(u32),
    /// Into a delay line, by its number.
    Line(u32),
    /// The same before a link that packets may pass ahead of time: see [`lookahead`].
    LineAhead(u32),
    /// Over a host's access link, by its number.
    Access(u32),
    /// No time passes; the headers get longer by so many bytes.
    ChangeBytes(i32),
    /// Onto a wire, by its number.
    Wire(u32),
    /// Before the end: a packet that was damaged is lost here.
    Inspect,
    /// Into a queue of a shared medium: 65,536 times the medium's number plus the entry, the medium's number for the queue.
    Shared(u32),
    /// The end.
    End,
}

/// The access link of a host, before the first queue. Packets leave it one after another; it is never full.
pub(crate) struct AccessLink {
    pub rate: Rate,
    /// When the last packet has left.
    pub free: Time,
    /// The line, with a delay of zero, in which packets wait until they have left.
    pub line: usize,
}

impl AccessLink {
    /// Sends a packet; returns when it has left.
    fn send(&mut self, bytes: u32, now: Time) -> Time {
        self.free = self.free.max(now) + self.rate.tx_time(bytes.into());
        self.free
    }
}

/// A part of the network that acts: a delay line, a link or a shared medium. At the same instant lines act before links and
/// links before media; among themselves they act in the order of their numbers.
///
/// Packets clocked by acknowledgements arrive at a busy queue at the very instants at which others leave it. On a machine
/// with Linux they arrive some ten microseconds earlier. So here arrivals precede departures that a timer triggers, unless
/// [`crate::Builder::departures_first`] is called. A departure that an arrival allows happens with that arrival, before the
/// next: see [`Link::is_idle`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventSource(usize);

/// A network. Built by a [`crate::Builder`].
pub struct Network<P, O, M = NoMedium> {
    pub(crate) links: Vec<Link<P>>,
    pub(crate) media: Vec<M>,
    pub(crate) lines: Vec<DelayLine<P>>,
    pub(crate) accesses: Vec<AccessLink>,
    pub(crate) wires: Vec<Wire>,
    pub(crate) impairments: Vec<Impairment<P>>,
    pub(crate) hops: Vec<Hop>,
    pub(crate) events: EventQueue,
    /// Sees the packets.
    pub observer: O,
    /// Packets that have reached their ends, for [`Network::poll`].
    pub(crate) delivered: VecDeque<P>,
    pub(crate) lookahead: Lookahead,
}

impl<P, O, M> fmt::Debug for Network<P, O, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("links", &self.links)
            .field("hops", &self.hops)
            .finish_non_exhaustive()
    }
}

impl<P: Packet, O: Observer<P>, M: Medium<P, O>> Network<P, O, M> {
    /// Sends a packet over a route. Returns when it has left its host: `now`, or later over an access link.
    #[inline(always)]
    pub fn send(&mut self, mut packet: P, route: Route, now: Time) -> Time {
        packet.set_hop(route.0 + 1);
        match self.hops[route.0 as usize] {
            Hop::Link(link) => self.enter_link(link as usize, packet, now),
            Hop::Line(line) => self.enter_line(line as usize, packet, now),
            first => {
                cold_path();
                return self.send_otherwise(packet, first, now);
            }
        }
        now
    }

    /// Sends a packet over a route that begins with an access link, with longer headers or with a shared medium, or has no
    /// hops at all.
    #[cold]
    fn send_otherwise(&mut self, mut packet: P, first: Hop, now: Time) -> Time {
        match first {
            Hop::Access(access) => {
                let access = &mut self.accesses[access as usize];
                let (line, left) = (access.line, access.send(packet.bytes(), now));
                self.enter_line(line, packet, left);
                return left;
            }
            Hop::ChangeBytes(by) => {
                packet.change_bytes(by);
                if let Some(packet) = self.forward(packet, now) {
                    self.delivered.push_back(packet);
                }
            }
            Hop::LineAhead(line) => self.enter_ahead(line as usize, packet, now),
            Hop::Shared(queue) => self.enter_medium(queue, packet, now),
            Hop::Wire(wire) => self.enter_wire(wire, packet, now),
            Hop::End => self.delivered.push_back(packet),
            Hop::Link(_) | Hop::Line(_) | Hop::Inspect => unreachable!("it is the usual case"),
        }
        now
    }

    /// Sends a packet to its next hop. Returns it if that is the end of its route.
    #[inline(always)]
    fn forward(&mut self, mut packet: P, now: Time) -> Option<P> {
        let at = packet.hop();
        match self.hops[at as usize] {
            Hop::End => return Some(packet),
            Hop::Link(link) => {
                packet.set_hop(at + 1);
                self.enter_link(link as usize, packet, now);
            }
            Hop::Line(line) => {
                packet.set_hop(at + 1);
                self.enter_line(line as usize, packet, now);
            }
            Hop::LineAhead(line) => {
                cold_path();
                packet.set_hop(at + 1);
                self.enter_ahead(line as usize, packet, now);
            }
            // One arm per kind, so that a jump table leads to each.
            Hop::ChangeBytes(by) => {
                cold_path();
                packet.set_hop(at + 1);
                packet.change_bytes(by);
                return self.forward_changed(packet, now);
            }
            Hop::Shared(queue) => {
                cold_path();
                packet.set_hop(at + 1);
                self.enter_medium(queue, packet, now);
            }
            Hop::Wire(wire) => {
                cold_path();
                packet.set_hop(at + 1);
                self.enter_wire(wire, packet, now);
            }
            Hop::Inspect => {
                cold_path();
                packet.set_hop(at + 1);
                return self.inspect(packet, now);
            }
            Hop::Access(_) => unreachable!("an access link begins its route"),
        }
        None
    }

    #[cold]
    fn forward_changed(&mut self, packet: P, now: Time) -> Option<P> {
        self.forward(packet, now)
    }

    #[cold]
    fn enter_wire(&mut self, wire: u32, mut packet: P, now: Time) {
        let wire = &mut self.wires[wire as usize];
        let Some(number) = wire.impairment else {
            let (line, due) = wire.enter(false, wire.delay, now);
            return self.enter_line(line, packet, due);
        };
        let impairment = &mut self.impairments[number];
        let Fate::Travels {
            damaged,
            duplicated,
            overtakes,
            delay,
        } = impairment.fate(now)
        else {
            return self.observer.on_loss(number, packet, now);
        };
        if damaged && !packet.set_damaged(number as u16) {
            return self.observer.on_loss(number, packet, now);
        }
        let (line, due) = wire.enter(overtakes, delay.beyond(wire.delay), now);
        let copy = duplicated.then(|| (impairment.copy)(&packet));
        self.enter_line(line, packet, due);
        if let Some(copy) = copy {
            self.observer.on_duplicate(number, &copy, now);
            self.enter_line(line, copy, due);
        }
    }

    /// A packet at the end of its route, where a damaged one is lost.
    #[cold]
    fn inspect(&mut self, packet: P, now: Time) -> Option<P> {
        match packet.damaged() {
            Some(impairment) => {
                self.observer.on_loss(impairment.into(), packet, now);
                None
            }
            None => self.forward(packet, now),
        }
    }

    #[cold]
    fn enter_medium(&mut self, queue: u32, packet: P, now: Time) {
        let (number, entry) = ((queue >> 16) as usize, queue as u16);
        let medium = &mut self.media[number];
        medium.enter(entry, packet, now, &mut self.observer);
        let source = self.lines.len() + self.links.len() + number;
        self.events.set(source, medium.due());
    }

    #[inline(always)]
    fn enter_link(&mut self, number: usize, packet: P, now: Time) {
        let link = &mut self.links[number];
        if link.is_idle() {
            self.enter_idle_link(number, packet, now);
        } else {
            link.enqueue(packet, now, number, &mut self.observer);
        }
    }

    /// A packet arrives at an idle link. If it may leave at once and a delay line is next, it enters the line now, which
    /// saves an event.
    #[inline(never)]
    fn enter_idle_link(&mut self, number: usize, packet: P, now: Time) {
        let link = &mut self.links[number];
        let left = link.enqueue_idle(packet, now, number, &mut self.observer);
        let left = left.and_then(|packet| match self.hops[packet.hop() as usize] {
            Hop::Line(_) | Hop::LineAhead(_) if !link.has_device_queue() => Some(packet),
            _ => {
                link.hold(packet, now);
                None
            }
        });
        if link.may_act() {
            self.note_due(number);
        }
        if let Some(packet) = left {
            self.observer.on_departure(number, &packet, now);
            self.forward(packet, now);
        }
    }

    /// Notes when a link acts next.
    #[inline(never)]
    pub(crate) fn note_due(&mut self, number: usize) {
        let due = self.links[number].find_due();
        self.events.set(self.lines.len() + number, due);
    }

    #[inline(always)]
    pub(crate) fn enter_line(&mut self, number: usize, packet: P, now: Time) {
        if let Some(due) = self.lines[number].push(packet, now) {
            self.events.set(number, due);
        }
    }

    /// The source of the next event and when, if that is before `at`; otherwise `None` and `at`.
    #[inline(always)]
    pub fn next_before(&self, at: Time) -> (Option<EventSource>, Time) {
        let (source, at) = self.events.first_before(at);
        (source.map(EventSource), at)
    }

    /// Lets a source act at the instant that [`Network::next_before`] returned.
    ///
    /// When it acts next is known, and noted, before its packet is sent on: the hosts' answers do not change it.
    pub fn act(&mut self, source: EventSource, now: Time, hosts: &mut impl Hosts<P, O, M>) {
        let EventSource(source) = source;
        if source < self.lines.len() {
            loop {
                let (packet, next) = self.lines[source].pop();
                self.events.set(source, next);
                if hosts.expects() {
                    self.tell_of_next(source, hosts);
                }
                if let Some(packet) = packet.and_then(|packet| self.forward(packet, now)) {
                    hosts.deliver(packet, now, self);
                }
                if next > now {
                    return;
                }
            }
        }
        let number = source - self.lines.len();
        if number >= self.links.len() {
            cold_path();
            return self.act_on_medium(number - self.links.len(), now, hosts);
        }
        if self.act_on_link(number, now, hosts) {
            self.act_on_link_again(number, now, hosts);
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_of_next(&self, line: usize, hosts: &impl Hosts<P, O, M>) {
        if let Some(packet) = self.lines[line].first() {
            hosts.expect(packet);
        }
    }

    /// Lets a link act once. True if it acts again at this instant.
    #[inline(always)]
    fn act_on_link(&mut self, number: usize, now: Time, hosts: &mut impl Hosts<P, O, M>) -> bool {
        let link = &mut self.links[number];
        let left = if link.wake() <= now {
            link.serve(now, number, &mut self.observer)
        } else {
            cold_path();
            link.on_timer(now, number, &mut self.observer);
            None
        };
        let wake = link.wake();
        let due = link.find_due();
        self.events.set(self.lines.len() + number, due);
        let Some(packet) = left else {
            return false;
        };
        self.observer.on_departure(number, &packet, now);
        if self.hops[packet.hop() as usize] == Hop::End {
            if let Some(rest) = hosts.deliver_first(packet, now, self) {
                self.links[number].put_back(rest);
            }
        } else {
            let packet = self.first_of(number, packet);
            if let Some(packet) = self.forward(packet, now) {
                hosts.deliver(packet, now, self);
            }
        }
        wake <= now
    }

    /// Apart, as what a loop needs only sometimes would be computed before it.
    #[cold]
    #[inline(never)]
    fn act_on_link_again(&mut self, number: usize, now: Time, hosts: &mut impl Hosts<P, O, M>) {
        while self.act_on_link(number, now, hosts) {}
    }

    #[cold]
    fn act_on_medium(&mut self, number: usize, now: Time, hosts: &mut impl Hosts<P, O, M>) {
        self.media[number].act(now, &mut self.observer);
        while let Some(packet) = self.media[number].leaves() {
            if let Some(packet) = self.forward(packet, now) {
                hosts.deliver(packet, now, self);
            }
        }
        let source = self.lines.len() + self.links.len() + number;
        self.events.set(source, self.media[number].due());
        hosts.after_medium(now, self);
    }

    /// Gives the discipline of a link other parameters; see [`sojourn_aqm::Qdisc::change`].
    ///
    /// # Errors
    /// As there.
    pub fn change(&mut self, link: usize, settings: &Settings) -> Result<(), SettingError> {
        self.links[link].change(settings)?;
        self.note_due(link);
        Ok(())
    }

    /// Sets the rate of a link from now on; see [`Link::set_rate`].
    pub fn set_rate(&mut self, link: usize, rate: Rate, now: Time) -> bool {
        self.links[link].set_rate(rate, now)
    }

    /// Sets the propagation delay of a wire from now on, by its number; see [`crate::Builder::add_wire`]. Packets stay in
    /// order: one that would overtake arrives with the last before it.
    pub fn set_delay(&mut self, wire: usize, delay: Duration) {
        self.wires[wire].delay = delay;
    }

    /// The links, by number.
    pub fn links(&self) -> &[Link<P>] {
        &self.links
    }

    /// The shared media, by number.
    pub fn media(&self) -> &[M] {
        &self.media
    }

    /// The shared media, to change what they measure.
    pub fn media_mut(&mut self) -> &mut [M] {
        &mut self.media
    }

    /// Packets on their way: in queues, in device queues, in shared media and in delay lines.
    pub fn packets(&self) -> u64 {
        let queued = self.links.iter().map(Link::packets);
        let travelling = self.lines.iter().map(|line| line.packets() as u64);
        let shared = self.media.iter().map(Medium::packets);
        queued.chain(travelling).chain(shared).sum::<u64>() + self.delivered.len() as u64
    }

    /// When to call [`Network::poll`] next; `None`: only after a packet is sent.
    pub fn next_event(&self) -> Option<Time> {
        if !self.delivered.is_empty() {
            return Some(Time::ZERO);
        }
        let (source, at) = self.next_before(Time::MAX);
        source.map(|_| at)
    }

    /// Handles what is due by `now`, and returns a packet that has reached the end of its route. Call it until it returns
    /// `None`. For callers whose hosts do not answer at the same instant.
    pub fn poll(&mut self, now: Time) -> Option<P> {
        struct Collect<P>(VecDeque<P>);
        impl<P, O, M> Hosts<P, O, M> for Collect<P> {
            fn deliver(&mut self, packet: P, _now: Time, _network: &mut Network<P, O, M>) {
                self.0.push_back(packet);
            }
        }
        let mut collect = Collect(core::mem::take(&mut self.delivered));
        while collect.0.is_empty() {
            let (source, at) = self.next_before(Time::MAX);
            match source {
                Some(source) if at <= now => self.act(source, at, &mut collect),
                _ => break,
            }
        }
        let packet = collect.0.pop_front();
        self.delivered = collect.0;
        packet
    }
}
