//! The medium of a cell, over which the nodes send one after the other.
//!
//! An exchange has three events: a node wins the medium and starts to send (`start`), its frames arrive (`deliver`), and the
//! exchange ends (`finish`). Which node wins is decided in `backoff`. Losses are drawn when the exchange starts. There is no
//! event per slot.
//!
//! A member is a node by its index: the access point is 0, and station n is n + 1. A peer is whom a member sends to: the
//! access point numbers its stations from 0, and a station's only peer, the access point, is 0. A link is one direction
//! between the access point and a station. A session is one user priority of a link.

mod aggregate_frames;
mod finish;
mod start;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sojourn_aqm::Environment;
use sojourn_units::{Duration, Time, Way};

use crate::access::{Access, Contending};
use crate::aggregate::Rooms;
use crate::airtime::Airtime;
use crate::backoff::{Contention, Edcaf, SlotRule};
use crate::cell::{Cell, Station};
use crate::channel::Channel;
use crate::contention_window::ContentionWindow;
use crate::exchange::Plan;
use crate::observer::{Loss, Node, Observer};
use crate::packet::Packet;
use crate::queues::{PRIORITIES, Peer, Queueing, Queues, priority_of, queue_of};
use crate::random::{Purpose, Stream, seed, stream};
use crate::rate_control::Controller;
use crate::session::{Session, Transmission};

/// A packet that has been received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Departed<P> {
    /// To or from which station.
    pub station: u16,
    /// Down is from the access point.
    pub way: Way,
    /// The packet.
    pub packet: P,
}

/// How long a receiver waits for a frame that is missing (mac80211: `HT_RX_REORDER_BUF_TIMEOUT`).
const REORDER_TIMEOUT: Duration = Duration::from_millis(100);

/// A category of a node.
struct Category<P> {
    window: ContentionWindow,
    contending: Contending,
    /// Transmissions that are prepared and not yet answered. The first one contends.
    ready: VecDeque<Transmission<P>>,
    /// Since when it has had something to send.
    waiting_since: Time,
}

/// The access point or a station.
struct Member<P> {
    queues: Queues<P>,
    env: Environment<P>,
    random: Stream,
    categories: [Category<P>; 4],
}

/// What is on the air.
struct OnAir {
    /// Who sends: one, or several that collide.
    senders: Vec<Sender>,
    /// When the medium became busy. All back-off counters have stood still since.
    busy: Time,
    /// When this exchange began: later than `busy` if it follows another one in a TXOP.
    start: Time,
    phase: Phase,
    /// Which frames are received, if there is one sender.
    received: Vec<bool>,
    /// True if the sender gets an answer.
    answered: bool,
}

#[derive(Clone, Copy)]
struct Sender {
    edcaf: Edcaf,
    plan: Plan,
    /// When the sender has sent all that it sends before it needs an answer.
    end: Time,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nobody sends.
    Idle,
    /// Frames arrive at this instant.
    Arriving(Time),
    /// The exchange is over at this instant.
    Ending(Time),
}

/// A cell at work. Time only ever arrives as `now`, which never goes back.
pub struct Medium<P> {
    cell: Cell,
    /// The access point, then the stations.
    members: Vec<Member<P>>,
    contention: Contention,
    /// AIFS by [`Edcaf`].
    aifs: Vec<Duration>,
    /// Channels by station.
    channels: Vec<Channel>,
    /// Rate control by link: downlinks by station, then uplinks.
    controllers: Vec<Controller>,
    /// Sessions by link and user priority.
    sessions: Vec<Session<P>>,
    on_air: OnAir,
    /// Since when the medium has been idle, for all nodes but those in `exceptions`.
    clear: Time,
    /// Members for which the medium is idle from another time on, with that time.
    exceptions: Vec<(usize, Time)>,
    /// By member: when the timer of one of its disciplines is due.
    timers: Vec<Time>,
    /// The earliest of them.
    next_timer: Time,
    /// Sessions whose receiver waits for a missing frame, with the start of the wait; oldest first.
    reordering: VecDeque<(Time, usize)>,
    /// True if a BlockAckReq is due in some session.
    requests_due: bool,
    /// The station to which the access point last sent, by category.
    last_peer: [usize; 4],
    departed: VecDeque<Departed<P>>,
    airtime: Airtime,
    /// Empty vectors of frames, kept for reuse.
    spare: Vec<Vec<crate::aggregate::Mpdu<P>>>,
    winners: Vec<Edcaf>,
    rooms: Rooms,
}

impl<P: Packet> Medium<P> {
    /// An idle cell.
    ///
    /// # Panics
    /// There are no stations or more than 4095, a station has no modes, or a slot takes no time.
    pub fn new(cell: Cell, access_point: Queueing<P>, stations: Vec<Station<P>>) -> Self {
        let count = stations.len();
        assert!((1..4096).contains(&count), "1 to 4095 stations");
        assert!(!cell.timing.slot.is_zero(), "a slot takes time");
        let has_qos = cell.standard.has_qos();
        let mut medium = Self {
            members: Vec::with_capacity(count + 1),
            contention: Contention::new(
                cell.timing.slot,
                if has_qos {
                    SlotRule::Begin
                } else {
                    SlotRule::End
                },
                (count + 1) * 4,
            ),
            aifs: Vec::with_capacity((count + 1) * 4),
            channels: Vec::with_capacity(count),
            controllers: Vec::with_capacity(count * 2),
            sessions: (0..count * 2 * PRIORITIES)
                .map(|_| Session::new())
                .collect(),
            on_air: OnAir {
                senders: Vec::new(),
                busy: Time::ZERO,
                start: Time::ZERO,
                phase: Phase::Idle,
                received: Vec::new(),
                answered: false,
            },
            clear: Time::ZERO,
            exceptions: Vec::new(),
            timers: Vec::with_capacity(count + 1),
            next_timer: Time::MAX,
            reordering: VecDeque::new(),
            requests_due: false,
            last_peer: [0; 4],
            departed: VecDeque::new(),
            airtime: Airtime::new(count),
            spare: Vec::new(),
            winners: Vec::new(),
            rooms: Rooms::default(),
            cell,
        };
        medium.add_member(Queues::new(access_point, count, medium.cell.priorities));
        let seed = medium.cell.seed;
        for (number, station) in stations.iter().enumerate() {
            assert!(!station.modes.is_empty(), "a station has modes");
            let channel = Channel::new(station.snr_db, station.fading, seed, number);
            medium.channels.push(channel);
        }
        for link in 0..count * 2 {
            let station = &stations[link % count];
            medium.controllers.push(Controller::new(
                station.rate_control,
                &station.modes,
                medium.cell.retry_limit.max(1),
                medium.cell.timing,
                stream(seed, Purpose::Probing, link),
            ));
        }
        for station in stations {
            medium.add_member(Queues::new(station.queueing, 1, medium.cell.priorities));
        }
        medium
    }

    fn add_member(&mut self, queues: Queues<P>) {
        let member = self.members.len();
        let set = if member == 0 {
            self.cell.access_point
        } else {
            self.cell.stations
        };
        let seed_of = |purpose| seed(self.cell.seed, purpose, member);
        for contending in &set {
            self.aifs.push(self.cell.timing.aifs(contending.aifs_slots));
        }
        self.timers.push(Time::MAX);
        let timer = queues.next_timer();
        self.members.push(Member {
            queues,
            env: Environment::new(seed_of(Purpose::Queue)),
            random: stream(self.cell.seed, Purpose::Backoff, member),
            categories: set.map(|contending| Category {
                window: ContentionWindow::new(&contending),
                contending,
                ready: VecDeque::new(),
                waiting_since: Time::ZERO,
            }),
        });
        self.set_timer(member, timer);
    }

    /// The number of stations.
    pub fn stations(&self) -> usize {
        self.channels.len()
    }

    /// What the medium has been used for.
    pub const fn airtime(&self) -> &Airtime {
        &self.airtime
    }

    /// What the medium has been used for until `now`; during an exchange, until the exchange started.
    pub fn airtime_until(&self, now: Time) -> Airtime {
        let mut airtime = self.airtime.clone();
        if self.on_air.phase == Phase::Idle {
            airtime.note_idle(now);
        }
        airtime
    }

    /// Packets that disciplines have marked: the access point's for `Down`, those of all stations for `Up`.
    pub fn marked(&self, way: Way) -> u64 {
        let (access_point, stations) = self.members.split_at(1);
        let members = match way {
            Way::Down => access_point,
            Way::Up => stations,
        };
        members.iter().map(|member| member.env.marked()).sum()
    }

    /// Packets in the cell: queued, on the air, or received and not yet taken by [`Medium::poll`].
    pub fn packets(&self) -> u64 {
        let of_member = |member: &Member<P>| {
            let ready = member
                .categories
                .iter()
                .flat_map(|category| &category.ready);
            let frames = ready.flat_map(|transmission| &transmission.frames);
            member.queues.packets() + frames.map(|mpdu| mpdu.packets() as u64).sum::<u64>()
        };
        let queued: u64 = self.members.iter().map(of_member).sum();
        let between: usize = self.sessions.iter().map(Session::packets).sum();
        queued + between as u64 + self.departed.len() as u64
    }

    /// When [`Medium::act`] is due. [`Time::MAX`]: nothing happens before another packet arrives.
    pub fn next_event(&self) -> Time {
        let on_air = match self.on_air.phase {
            Phase::Idle => self.contention.next(),
            Phase::Arriving(at) | Phase::Ending(at) => at,
        };
        let reordering = self
            .reordering
            .front()
            .map_or(Time::MAX, |(since, _)| *since + REORDER_TIMEOUT);
        on_air.min(self.next_timer).min(reordering)
    }

    /// Queues a packet to a station (`Down`) or from it (`Up`).
    ///
    /// # Panics
    /// There is no such station.
    pub fn enqueue(
        &mut self,
        mut packet: P,
        station: u16,
        way: Way,
        now: Time,
        observer: &mut impl Observer<P>,
    ) {
        assert!(usize::from(station) < self.stations(), "no such station");
        let (member, peer) = match way {
            Way::Down => (0, usize::from(station)),
            Way::Up => (usize::from(station) + 1, 0),
        };
        packet.set_station(peer as u16);
        let sender = Node::sender(station, way);
        observer.on_arrival(sender, &packet, now);
        let priority = priority_of(self.cell.priorities, &packet);
        let Member { queues, env, .. } = &mut self.members[member];
        let left = |packet: &P| observer.on_dequeue(sender, packet, now);
        if queues.enqueue(packet, (peer, priority), now, env, left) {
            self.settle(member, now, observer);
        }
    }

    /// Handles all events that are due by `now`. The caller calls it at [`Medium::next_event`]; afterwards [`Medium::poll`]
    /// returns the packets that were received.
    pub fn act(&mut self, now: Time, observer: &mut impl Observer<P>) {
        loop {
            let due = self.next_event();
            if due > now {
                return;
            }
            match self.on_air.phase {
                Phase::Arriving(at) if at <= due => self.deliver(at, observer),
                Phase::Ending(at) if at <= due => self.finish(at, observer),
                _ => {
                    let waited = self.end_reordering_wait(due, observer);
                    if !waited && !self.run_discipline_timers(due, observer) {
                        self.start(due, observer);
                    }
                }
            }
        }
    }

    /// The next packet that has been received.
    pub fn poll(&mut self) -> Option<Departed<P>> {
        self.departed.pop_front()
    }

    /// Ends the oldest receiver's wait for a missing frame if its timeout has passed. False if it has not.
    fn end_reordering_wait(&mut self, now: Time, observer: &mut impl Observer<P>) -> bool {
        let Some(&(since, session)) = self.reordering.front() else {
            return false;
        };
        if since + REORDER_TIMEOUT > now {
            return false;
        }
        self.reordering.pop_front();
        if self.sessions[session].recipient.waiting_since() == since {
            self.with_recipient(session, now, observer, |recipient, up| {
                recipient.skip_gap(now, up)
            });
        }
        true
    }

    /// Runs a member's disciplines if one of their timers is due. False if none is due.
    fn run_discipline_timers(&mut self, now: Time, observer: &mut impl Observer<P>) -> bool {
        let Some(member) = self.timers.iter().position(|&timer| timer <= now) else {
            return false;
        };
        let sender = node(member);
        let Member { queues, env, .. } = &mut self.members[member];
        queues.on_timer(now, env, |packet| observer.on_dequeue(sender, packet, now));
        self.settle(member, now, observer);
        true
    }

    /// Called after a member's queues changed: reports their drops, and lets the member contend for its packets.
    #[inline(always)]
    fn settle(&mut self, member: usize, now: Time, observer: &mut impl Observer<P>) {
        self.note_drops(member, now, observer);
        // What a category sends changes no other.
        let of_member = &self.members[member];
        let may_send = Access::ALL.map(|access| self.may_send(of_member, access));
        for access in Access::ALL {
            if may_send[access.index()] {
                self.contend(member, access, now, observer);
            }
        }
        self.set_timer(member, self.members[member].queues.next_timer());
    }

    /// Sets when a timer of a member's disciplines is due. All members are searched only if the earliest timer moved later.
    fn set_timer(&mut self, member: usize, at: Time) {
        let before = core::mem::replace(&mut self.timers[member], at);
        if at <= self.next_timer {
            self.next_timer = at;
        } else if before == self.next_timer {
            self.next_timer = self.timers.iter().copied().min().unwrap_or(Time::MAX);
        }
    }

    fn note_drops(&mut self, member: usize, now: Time, observer: &mut impl Observer<P>) {
        let env = &mut self.members[member].env;
        if env.has_dropped() {
            for (packet, reason) in env.take_dropped() {
                let queued = now.saturating_since(packet.enqueued());
                observer.on_drop(node(member), packet, Loss::Queue(reason), queued, now);
            }
        }
    }

    /// Lets a category that may send contend if it has something to send and does not contend yet.
    #[inline(never)]
    fn contend(
        &mut self,
        member: usize,
        access: Access,
        now: Time,
        observer: &mut impl Observer<P>,
    ) {
        let edcaf = edcaf(member, access);
        if self.is_sending(edcaf) {
            // A device takes what it has room for at any time (ath9k's ath9k_wake_tx_queue).
            if self.members[member].queues.ready_ahead() > 0 {
                self.fill_ready(member, access, now, observer);
            }
            return;
        }
        if !self.fill_ready(member, access, now, observer) || self.contention.has_frame(edcaf) {
            return;
        }
        let is_waiting = self.contention.is_waiting(edcaf);
        let is_idle = self.on_air.phase == Phase::Idle;
        let from = self.clear_of(member) + self.aifs[edcaf as usize];
        let busy = self.on_air.busy;
        let Member {
            random, categories, ..
        } = &mut self.members[member];
        let category = &mut categories[access.index()];
        category.waiting_since = now;
        let mut draw = || category.window.draw_slots(random);
        match (is_waiting, is_idle) {
            (true, true) => self.contention.add_frame(edcaf, now),
            (true, false) => self.contention.add_frame_while_busy(edcaf, busy, draw),
            (false, true) => self.contention.join_idle(edcaf, from, now),
            (false, false) => self.contention.join(edcaf, draw(), true),
        }
    }

    /// False if a category has nothing to send, which is the usual case of three of the four.
    #[inline(always)]
    fn may_send(&self, of_member: &Member<P>, access: Access) -> bool {
        of_member.queues.may_have_turns(access)
            || self.requests_due
            || !of_member.categories[access.index()].ready.is_empty()
    }

    fn is_sending(&self, edcaf: Edcaf) -> bool {
        self.on_air.phase != Phase::Idle
            && self
                .on_air
                .senders
                .iter()
                .any(|sender| sender.edcaf == edcaf)
    }

    /// Since when the medium has been idle for a member.
    fn clear_of(&self, member: usize) -> Time {
        let exception = self.exceptions.iter().find(|(of, _)| *of == member);
        exception.map_or(self.clear, |(_, clear)| *clear)
    }

    /// The link from a member to its peer.
    fn link(&self, member: usize, peer: usize) -> usize {
        link_of(self.stations(), member, peer)
    }

    /// The session of a user priority from a member to its peer.
    fn session(&self, member: usize, peer: Peer) -> usize {
        session_of(self.stations(), member, peer)
    }
}

/// Links are numbered: downlinks by station, then uplinks by station.
fn link_of(stations: usize, member: usize, peer: usize) -> usize {
    if member == 0 {
        peer
    } else {
        stations + member - 1
    }
}

fn session_of(stations: usize, member: usize, (peer, priority): Peer) -> usize {
    queue_of((link_of(stations, member, peer), priority))
}

fn edcaf(member: usize, access: Access) -> Edcaf {
    (member * 4 + access.index()) as Edcaf
}

/// The member and category of an EDCAF.
fn owner(edcaf: Edcaf) -> (usize, Access) {
    (edcaf as usize / 4, Access::ALL[edcaf as usize % 4])
}

fn node(member: usize) -> Node {
    match member.checked_sub(1) {
        None => Node::AccessPoint,
        Some(station) => Node::Station(station as u16),
    }
}

/// Station and direction of a link.
fn ends(stations: usize, link: usize) -> (u16, Way) {
    match link.checked_sub(stations) {
        None => (link as u16, Way::Down),
        Some(station) => (station as u16, Way::Up),
    }
}
