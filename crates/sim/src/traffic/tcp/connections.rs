//! The connections of a flow, both ends of each.

use sojourn_aqm::Ecn;
use sojourn_experiment::model;
use sojourn_experiment::streams::Stream;
use sojourn_tcp::cc::Algorithm;
use sojourn_tcp::seq::Seq;
use sojourn_tcp::{Arrival, Config, Endpoint, Segment};
use sojourn_units::{Duration, Time};

use crate::slab::{Handle, Segments};
use crate::traffic::Side;

/// A connection of a flow: they are numbered in the order in which they are opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Id(pub u32);

/// The connections of a flow that are open.
pub struct Connections {
    config: Config,
    algorithm: &'static Algorithm,
    iss: Stream,
    opened: u32,
    /// The open ones, with what is asked about most kept apart: their numbers, and when each end has a timer.
    ids: Vec<Id>,
    due: Vec<[Time; 2]>,
    open: Vec<Connection>,
    /// Ends that may have something to send.
    ready: Vec<(Id, Side)>,
}

/// Both ends of a connection.
struct Connection {
    sending: Endpoint,
    receiving: Endpoint,
    /// The end that opened it.
    opener: Side,
    counted: Counts,
}

/// Payload bytes sent and received in the direction of the flow, and segments sent again.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Bytes sent, without retransmissions.
    pub sent: u64,
    /// Bytes received in order.
    pub received: u64,
    /// Segments sent again.
    pub retransmits: u64,
}

impl Connection {
    const fn end(&mut self, side: Side) -> &mut Endpoint {
        match side {
            Side::Sending => &mut self.sending,
            Side::Receiving => &mut self.receiving,
        }
    }

    const fn counts(&self) -> Counts {
        Counts {
            sent: self.sending.sender().sent(),
            received: self.receiving.received(),
            retransmits: self.sending.sender().retransmits(),
        }
    }

    /// True once both ends have closed, or the opener has given up.
    fn is_over(&self) -> bool {
        let opener = match self.opener {
            Side::Sending => &self.sending,
            Side::Receiving => &self.receiving,
        };
        self.sending.is_closed() || opener.has_failed()
    }
}

impl Connections {
    /// No connections. Initial sequence numbers come from `iss`.
    pub fn new(tcp: &model::Tcp, algorithm: &'static Algorithm, iss: Stream) -> Self {
        let window = tcp
            .window
            .map_or(1 << 30, |bytes| bytes.min(1 << 30) as u32);
        Self {
            config: Config {
                mss: tcp.mss as u16,
                initial_window: tcp.initial_window,
                ecn: tcp.ecn,
                abe: tcp.abe,
                sack: tcp.sack,
                quickack: tcp.quickack,
                max_window: window,
                ..Config::default()
            },
            algorithm,
            iss,
            opened: 0,
            ids: Vec::new(),
            due: Vec::new(),
            open: Vec::new(),
            ready: Vec::new(),
        }
    }

    // ---- For applications ------------------------------------------------------------------------------

    /// Opens a connection from the end `opener`.
    pub fn open(&mut self, opener: Side) -> Id {
        let mut draw = || Seq(self.iss.word() as u32);
        let (first, second) = (draw(), draw());
        let connect = |iss| Endpoint::connect(self.config.clone(), self.algorithm, iss);
        let listen = |iss| Endpoint::listen(self.config.clone(), self.algorithm, iss);
        let (sending, receiving) = match opener {
            Side::Sending => (connect(first), listen(second)),
            Side::Receiving => (listen(first), connect(second)),
        };
        let id = Id(self.opened);
        self.opened += 1;
        self.ids.push(id);
        self.due.push([Time::MAX; 2]);
        self.open.push(Connection {
            sending,
            receiving,
            opener,
            counted: Counts::default(),
        });
        self.ready.push((id, opener));
        id
    }

    /// Gives an end `bytes` more to send; [`sojourn_tcp::sender::UNLIMITED`]: always more.
    pub fn write(&mut self, id: Id, side: Side, bytes: u64) {
        if let Some(at) = self.find(id) {
            self.open[at].end(side).write(bytes);
            self.ready.push((id, side));
        }
    }

    /// Bytes that an end was given and that are not acknowledged; none if the connection is over.
    pub fn buffered(&mut self, id: Id, side: Side) -> u64 {
        self.find(id)
            .map_or(0, |at| self.open[at].end(side).sender().buffered())
    }

    /// An end will write nothing more; the other end closes when it learns of it.
    pub fn close(&mut self, id: Id, side: Side) {
        if let Some(at) = self.find(id) {
            self.open[at].end(side).close();
            self.ready.push((id, side));
        }
    }

    /// Payload bytes that an end has received in order; none if the connection is over.
    pub fn received(&mut self, id: Id, side: Side) -> u64 {
        self.find(id)
            .map_or(0, |at| self.open[at].end(side).received())
    }

    // ---- For the flow ----------------------------------------------------------------------------------

    /// A segment arrives at an end. False if its connection is over.
    pub fn deliver(
        &mut self,
        id: Id,
        side: Side,
        segment: &Segment,
        ecn: Arrival,
        now: Time,
    ) -> bool {
        let Some(at) = self.find(id) else {
            return false;
        };
        let end = self.open[at].end(side);
        end.on_segment(segment, ecn, now);
        if end.peer_has_closed() {
            end.close();
        }
        self.ready.push((id, side));
        true
    }

    /// Takes the round-trip time that the sending end measured last, if it did.
    pub fn take_rtt_sample(&mut self, id: Id) -> Option<Duration> {
        let at = self.find(id)?;
        self.open[at].sending.take_rtt_sample()
    }

    /// Lets the timers of one side's ends act that have come due.
    pub fn on_timer(&mut self, side: Side, now: Time) {
        for at in 0..self.ids.len() {
            if self.due[at][side as usize] <= now {
                self.open[at].end(side).on_timer(now);
                self.ready.push((self.ids[at], side));
            }
        }
    }

    /// When the ends of each side have a timer next; [`Time::MAX`]: never.
    pub fn next_timers(&self) -> [Time; 2] {
        self.due.iter().fold([Time::MAX; 2], |first, due| {
            [first[0].min(due[0]), first[1].min(due[1])]
        })
    }

    /// Takes an end that may have something to send.
    pub fn take_ready(&mut self) -> Option<(Id, Side)> {
        self.ready.pop()
    }

    /// The next segment of an end, where it waits, and its ECN field; to be called until `None`.
    pub fn poll(
        &mut self,
        id: Id,
        side: Side,
        now: Time,
        segments: &mut Segments,
    ) -> Option<(Handle, Ecn)> {
        let at = self.find(id)?;
        let end = self.open[at].end(side);
        let handle = segments.reserve();
        match end.poll_into(segments.at_mut(handle), now) {
            Some(false) => Some((handle, Ecn::NotEct)),
            Some(true) if end.sends_ect1() => Some((handle, Ecn::Ect1)),
            Some(true) => Some((handle, Ecn::Ect0)),
            None => {
                segments.release(handle);
                self.due[at][side as usize] = end.next_timer().unwrap_or(Time::MAX);
                None
            }
        }
    }

    /// What has been sent and received since the last call.
    pub fn take_counts(&mut self, id: Id) -> Counts {
        let Some(at) = self.find(id) else {
            return Counts::default();
        };
        let counts = self.open[at].counts();
        let before = std::mem::replace(&mut self.open[at].counted, counts);
        Counts {
            sent: counts.sent - before.sent,
            received: counts.received - before.received,
            retransmits: counts.retransmits - before.retransmits,
        }
    }

    /// Forgets a connection that is over; true if it was.
    pub fn remove_if_over(&mut self, id: Id) -> bool {
        let Some(at) = self.find(id).filter(|at| self.open[*at].is_over()) else {
            return false;
        };
        self.ids.swap_remove(at);
        self.due.swap_remove(at);
        self.open.swap_remove(at);
        true
    }

    /// The sum of the congestion windows of the open connections, in segments; `None` if there are none.
    pub fn cwnd(&self) -> Option<u32> {
        let windows = self
            .open
            .iter()
            .map(|connection| connection.sending.sender().cwnd());
        (!self.open.is_empty()).then(|| windows.sum())
    }

    fn find(&self, id: Id) -> Option<usize> {
        self.ids.iter().position(|known| *known == id)
    }
}
