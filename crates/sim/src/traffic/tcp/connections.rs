//! The connections of a flow, with both endpoints of each.

use std::collections::VecDeque;
use std::iter::Sum;
use std::sync::Arc;

use sojourn_experiment::model;
use sojourn_measure::series::SenderState;
use sojourn_tcp::cc::{Algorithm, Window};
use sojourn_tcp::config::{Abe, Kernel, Recovery};
use sojourn_tcp::seq::Seq;
use sojourn_tcp::{Arrival, Config, Endpoint, Segment};
use sojourn_traffic::EXCHANGE_BYTES;
use sojourn_traffic::streams::Stream;
use sojourn_traffic::{Id, Side};
use sojourn_units::{Duration, Rate, Time, cold_path};

use super::exchange::Exchange;
use super::local_queue::{LocalQueue, Waits};
use crate::traffic::Identity;

/// What the endpoints of a group's flows have in common. It is shared: there may be hundreds of thousands of flows.
struct Transport {
    config: Arc<Config>,
    algorithm: Algorithm,
}

/// The last transport that was made, for further flows like the last.
#[derive(Default)]
pub struct Transports(Option<Arc<Transport>>);

impl Transports {
    fn share(&mut self, config: Config, algorithm: &Algorithm) -> Arc<Transport> {
        let is_alike =
            |last: &Arc<Transport>| *last.config == config && last.algorithm.name == algorithm.name;
        let transport = self.0.take().filter(is_alike).unwrap_or_else(|| {
            Arc::new(Transport {
                config: Arc::new(config),
                algorithm: algorithm.clone(),
            })
        });
        self.0 = Some(Arc::clone(&transport));
        transport
    }
}

/// The configuration of a flow's endpoints.
/// Of what leaves a host by mac80211 (tx_sk_pacing_shift, Linux 4.16 and later).
const WIFI_PACING_SHIFT: u8 = 7;

fn config(identity: &Identity, tcp: &model::Tcp) -> Config {
    let window = tcp
        .window
        .map_or(1 << 30, |bytes| bytes.min(1 << 30) as u32);
    Config {
        mss: tcp.mss as u16,
        initial_window: tcp.initial_window,
        ecn: tcp.ecn,
        accecn: tcp.accecn,
        ecn_fallback: tcp.ecn_fallback,
        beta: tcp.beta,
        abe: match tcp.abe {
            model::Abe::Off => Abe::Off,
            model::Abe::Recommended => Abe::Recommended,
            model::Abe::Keeps(share) => Abe::Keeps(share),
        },
        rtt_independence: tcp.rtt_independence,
        sack: tcp.sack,
        recovery: match tcp.recovery {
            model::Recovery::Rack => Recovery::Rack,
            model::Recovery::Rfc6675 => Recovery::Rfc6675,
        },
        rto_min: tcp.min_rto,
        quickack: tcp.quickack,
        ack_every: tcp.ack_every,
        gso: tcp.gso,
        pacing_shift: match identity.waits {
            Waits::AtStation => WIFI_PACING_SHIFT,
            Waits::AtLink | Waits::Nowhere => Config::default().pacing_shift,
        },
        max_window: window,
        kernel: match identity.kernel {
            model::Kernel::V6_1 => Kernel::V6_1,
            model::Kernel::V6_12 => Kernel::V6_12,
            model::Kernel::V6_18 => Kernel::V6_18,
            model::Kernel::V7_3 => Kernel::V7_3,
        },
        notes_losses: identity.qlog,
        ..Config::default()
    }
}

/// The index of an open connection; valid until a connection is removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Slot(usize);

/// The open connections of a flow.
pub struct Connections {
    transport: Arc<Transport>,
    iss: Stream,
    opened: u32,
    open: Vec<Open>,
    /// Ends that may have something to send, in the order in which the application or their timers called them.
    ready: VecDeque<(Id, Side)>,
    exchange: Exchange,
    /// The round-trip time of the path.
    rtt: Duration,
    /// TCP small queues apply.
    small_queues: bool,
    /// Where what the sending host sends waits.
    waits: Waits,
}

/// An open connection. What is looked through is kept apart from it.
struct Open {
    id: Id,
    /// For each end a time before which it needs no call.
    due: [Time; 2],
    connection: Box<Connection>,
}

/// A connection.
pub struct Connection {
    /// Its endpoints, by [`Side`].
    ends: [Endpoint; 2],
    /// The end that opened it.
    opener: Side,
    /// The data in the sending host, if TCP small queues apply.
    local: Option<LocalQueue>,
    /// Ends that wait for the end of this instant.
    waits: [bool; 2],
    /// Bytes of an exchange before the data, which are not counted.
    uncounted: u64,
}

/// Payload bytes sent and received and segments retransmitted in the flow's direction; timeouts of both ends.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Bytes sent, without retransmissions.
    pub sent: u64,
    /// Bytes received in order.
    pub received: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |sum, part| Self {
            sent: sum.sent + part.sent,
            received: sum.received + part.received,
            retransmits: sum.retransmits + part.retransmits,
            timeouts: sum.timeouts + part.timeouts,
        })
    }
}

impl Connection {
    const fn end(&mut self, side: Side) -> &mut Endpoint {
        &mut self.ends[side as usize]
    }

    /// Delivers a segment to an end, which may then have something to send. Returns the RTT sample of the sending side,
    /// if the segment gives one.
    #[inline(always)]
    pub fn deliver(
        &mut self,
        side: Side,
        segment: &Segment,
        ecn: Arrival,
        now: Time,
    ) -> Option<Duration> {
        let end = self.end(side);
        let rtt = end.on_segment(segment, ecn, now);
        if end.peer_has_closed() {
            close(end);
        }
        match side {
            Side::Sending => rtt,
            Side::Receiving => None,
        }
    }

    /// As [`Endpoint::take_progress`], of the sending side.
    #[inline(always)]
    pub fn take_progress(&mut self, segment: &Segment, now: Time) -> Option<Duration> {
        self.end(Side::Sending).take_progress(segment, now)
    }

    /// As [`Endpoint::keeps_deferring`], of the sending side.
    #[inline(always)]
    pub fn keeps_deferring(&mut self, now: Time) -> bool {
        let local = &self.local;
        self.ends[Side::Sending as usize].keeps_deferring(now, || {
            local.as_ref().is_none_or(|local| local.is_quiet(now))
        })
    }

    /// Ends the wait of an end for what else arrives at `now`, if nothing does. `next` is when something happens next.
    #[inline(always)]
    pub fn end_wait(&mut self, side: Side, now: Time, next: impl FnOnce() -> Time) {
        let end = self.end(side);
        if end.waits_at(now) && next() > now {
            end.on_timer(now);
        }
    }

    /// True if an end may have something to send.
    pub fn has_to_send(&self, side: Side) -> bool {
        self.ends[side as usize].has_to_send()
    }

    /// An end to poll for segments until it has none left, with the data in its host if TCP small queues apply.
    pub fn sending_end(&mut self, side: Side) -> (&mut Endpoint, Option<&mut LocalQueue>) {
        let local = match side {
            Side::Sending => self.local.as_mut(),
            Side::Receiving => None,
        };
        (&mut self.ends[side as usize], local)
    }

    /// Notes whether an end waits for the end of this instant. Returns when the end needs a call: `now` if it waits, else when
    /// its next timer expires, or sooner; [`Time::MAX`]: never.
    #[inline(always)]
    pub fn due(&mut self, side: Side, waits: bool, now: Time) -> Time {
        self.waits[side as usize] = waits;
        if waits {
            cold_path();
            return now;
        }
        self.ends[side as usize].due()
    }

    fn counts(&self) -> Counts {
        let [sending, receiving] = &self.ends;
        Counts {
            sent: sending.sent().saturating_sub(self.uncounted),
            received: receiving.received().saturating_sub(self.uncounted),
            retransmits: sending.retransmits(),
            timeouts: sending.timeouts() + receiving.timeouts(),
        }
    }

    /// True once both ends have aborted.
    fn is_aborted(&self) -> bool {
        self.ends.iter().all(Endpoint::is_aborted)
    }

    /// True once both ends have closed, or the opener has given up.
    pub fn is_over(&self) -> bool {
        self.ends[Side::Sending as usize].is_closed()
            || self.ends[self.opener as usize].has_failed()
    }
}

impl Open {
    #[inline(always)]
    fn parts(&mut self) -> (&mut Connection, &mut [Time; 2]) {
        (&mut self.connection, &mut self.due)
    }
}

/// The initial sequence numbers of a connection's ends.
fn numbers(iss: &mut Stream) -> [Seq; 2] {
    [Seq(iss.word() as u32), Seq(iss.word() as u32)]
}

#[cold]
fn close(end: &mut Endpoint) {
    end.close();
}

impl Connections {
    /// Starts without connections. Initial sequence numbers come from `iss`.
    pub fn new(
        identity: &Identity,
        kind: &model::Kind,
        tcp: &model::Tcp,
        algorithm: &Algorithm,
        transports: &mut Transports,
        iss: Stream,
    ) -> Self {
        Self {
            transport: transports.share(config(identity, tcp), algorithm),
            iss,
            opened: 0,
            open: Vec::with_capacity(1), // most flows have one connection
            ready: VecDeque::with_capacity(1),
            exchange: if kind.exchanges_first() {
                Exchange::of(identity.start, identity.rtt)
            } else {
                Exchange::Over
            },
            rtt: identity.rtt,
            small_queues: tcp.small_queues,
            waits: identity.waits,
        }
    }

    /// Finds a connection; `None` if it is closed.
    fn find(&self, id: Id) -> Option<Slot> {
        self.open.iter().position(|known| known.id == id).map(Slot)
    }

    /// An open connection and its ends' deadlines; `None` if it is closed. The caller updates a deadline after an end has acted.
    #[inline(always)]
    pub fn at(&mut self, id: Id) -> Option<(&mut Connection, &mut [Time; 2])> {
        // Most flows have one connection.
        if self.open.first().is_some_and(|first| first.id == id) {
            return self.open.first_mut().map(Open::parts);
        }
        self.at_other(id)
    }

    /// As [`super::TcpFlow::expect`], of the only connection that most flows have.
    pub fn expect(&self, side: Side) {
        if let Some(open) = self.open.first() {
            open.connection.ends[side as usize].prefetch();
        }
    }

    #[cold]
    #[inline(never)]
    fn at_other(&mut self, id: Id) -> Option<(&mut Connection, &mut [Time; 2])> {
        let Slot(slot) = self.find(id)?;
        Some(self.open[slot].parts())
    }

    /// Runs the expired timers of one side's ends.
    pub fn on_timer(&mut self, side: Side, now: Time) {
        for open in &mut self.open {
            let id = open.id;
            let (connection, due) = open.parts();
            let due = &mut due[side as usize];
            if *due > now {
                continue;
            }
            *due = connection.ends[side as usize].find_timer();
            if *due <= now || connection.waits[side as usize] {
                *due = Time::MAX; // until it has sent
                connection.end(side).on_timer(now);
                self.ready.push_back((id, side));
            }
        }
    }

    /// The earliest deadline of a side; [`Time::MAX`]: none.
    #[inline(always)]
    pub fn next_timer(&self, side: Side) -> Time {
        let of = |open: &Open| open.due[side as usize];
        if let [only] = self.open.as_slice() {
            return of(only);
        }
        cold_path();
        self.open.iter().map(of).min().unwrap_or(Time::MAX)
    }

    /// Takes an end that may have something to send.
    pub fn take_ready(&mut self) -> Option<(Id, Side)> {
        self.ready.pop_front()
    }

    /// Removes a closed connection and returns its counters.
    pub fn remove(&mut self, id: Id) -> Counts {
        let Some(Slot(slot)) = self.find(id) else {
            return Counts::default();
        };
        self.open.swap_remove(slot).connection.counts()
    }

    /// A connection that both ends have aborted. It is kept until the application acts next, because its sender answers what
    /// still arrives.
    pub fn find_aborted(&self) -> Option<Id> {
        let mut all = self.open.iter();
        all.find(|open| open.connection.is_aborted())
            .map(|open| open.id)
    }

    /// When the connection is to be opened ahead of the flow; [`Time::MAX`]: it is not to be.
    pub const fn opens_ahead(&self) -> Time {
        match self.exchange {
            Exchange::Ahead(at) => at,
            _ => Time::MAX,
        }
    }

    /// Opens the connection ahead of the flow.
    pub fn open_ahead(&mut self) {
        self.exchange = Exchange::Open(self.connect(Side::Sending));
    }

    /// True if an exchange before the data is to come or not over.
    pub fn is_exchanging(&self) -> bool {
        self.exchange != Exchange::Over
    }

    /// Begins the data if the exchange before it has been acknowledged.
    pub fn end_exchange(&mut self) {
        if let Exchange::Sent(id, bytes) = self.exchange {
            if sojourn_traffic::Connections::buffered(self, id, Side::Sending) == 0 {
                self.exchange = Exchange::Over;
                self.send(id, Side::Sending, bytes);
            }
        }
    }

    fn connect(&mut self, opener: Side) -> Id {
        let Transport { config, algorithm } = &*self.transport;
        let [first, second] = numbers(&mut self.iss);
        let connect = |iss| Endpoint::connect(Arc::clone(config), algorithm, iss);
        let listen = |iss| Endpoint::listen(Arc::clone(config), algorithm, iss);
        let ends = match opener {
            Side::Sending => [connect(first), listen(second)],
            Side::Receiving => [listen(first), connect(second)],
        };
        self.add(opener, ends)
    }

    fn add(&mut self, opener: Side, ends: [Endpoint; 2]) -> Id {
        let id = Id(self.opened);
        self.opened += 1;
        let connection = Connection {
            ends,
            opener,
            local: self.small_queues.then(|| LocalQueue::new(self.waits)),
            waits: [false; 2],
            uncounted: 0,
        };
        self.open.push(Open {
            id,
            due: [Time::MAX; 2],
            connection: Box::new(connection),
        });
        self.ready.push_back((id, opener));
        id
    }

    fn send(&mut self, id: Id, side: Side, bytes: u64) {
        if let Some(at) = self.find(id) {
            self.open[at.0].connection.end(side).write(bytes);
            self.ready.push_back((id, side));
        }
    }

    /// The counters of the open connections.
    pub fn counts(&self) -> Counts {
        self.open.iter().map(|open| open.connection.counts()).sum()
    }

    /// The congestion state of the open connections together; `None` without one.
    pub fn sender_state(&mut self) -> Option<SenderState> {
        let ends = self.open.iter_mut();
        let ends = ends.map(|open| open.connection.end(Side::Sending));
        let senders = ends.filter(|end| !end.is_aborted()).map(|end| {
            let sender = end.sender();
            SenderState {
                cwnd: sender.cwnd(),
                ssthresh: Some(sender.ssthresh()).filter(|known| *known != Window::INFINITE),
                pacing_bps: sender.pacing_rate().map(Rate::as_bps),
                state: Some(sender.recovery_state()),
            }
        });
        senders.reduce(SenderState::and)
    }
}

impl sojourn_traffic::Connections for Connections {
    fn open(&mut self, opener: Side) -> Id {
        match self.exchange {
            Exchange::Open(id) => id,
            Exchange::Before(start) => {
                let Transport { config, algorithm } = &*self.transport;
                let iss = numbers(&mut self.iss);
                let ends = Endpoint::connected(config, algorithm, iss, self.rtt, start);
                let id = self.add(opener, ends);
                self.exchange = Exchange::Open(id);
                id
            }
            Exchange::Ahead(_) | Exchange::Sent(..) | Exchange::Over => self.connect(opener),
        }
    }

    fn write(&mut self, id: Id, side: Side, bytes: u64) {
        let bytes = match &mut self.exchange {
            Exchange::Open(open) if *open == id => {
                self.exchange = Exchange::Sent(id, bytes);
                if let Some(Slot(slot)) = self.find(id) {
                    self.open[slot].connection.uncounted = EXCHANGE_BYTES as u64;
                }
                EXCHANGE_BYTES as u64
            }
            Exchange::Sent(open, waiting) if *open == id => {
                *waiting = waiting.saturating_add(bytes);
                return;
            }
            _ => bytes,
        };
        self.send(id, side, bytes);
    }

    fn buffered(&mut self, id: Id, side: Side) -> u64 {
        self.find(id)
            .map_or(0, |at| self.open[at.0].connection.end(side).buffered())
    }

    fn close(&mut self, id: Id, side: Side) {
        // Only the one connection of a bulk flow has an exchange.
        let exchange = std::mem::replace(&mut self.exchange, Exchange::Over);
        if let Some(at) = self.find(id) {
            let end = self.open[at.0].connection.end(side);
            if exchange != Exchange::Over || end.is_unlimited() {
                end.abort();
            } else {
                end.close();
            }
            self.ready.push_back((id, side));
        }
    }

    fn received(&mut self, id: Id, side: Side) -> u64 {
        self.find(id)
            .map_or(0, |at| self.open[at.0].connection.end(side).received())
    }
}
