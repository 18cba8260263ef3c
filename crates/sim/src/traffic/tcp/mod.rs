//! TCP flows: an application and its connections.

mod acknowledged;
mod connections;
mod heard;
mod local_queue;
mod qlog;

use std::mem;

use sojourn_aqm::Ecn;
use sojourn_experiment::model::Kind;
use sojourn_measure::meter::{Meter, RowsOf};
use sojourn_measure::series::SenderState;
use sojourn_tcp::cc::Algorithm;
use sojourn_tcp::{Arrival, Endpoint, Segment};
use sojourn_traffic::streams::Stream;
use sojourn_traffic::{Application, Id, Side, over_tcp};
use sojourn_units::{Duration, Time, cold_path};

use self::acknowledged::Unacknowledged;
use self::connections::{Connection, Connections, Counts, Place};
use self::heard::Heard;
use self::local_queue::{LinkQueue, LocalQueue};
use self::qlog::Qlog;
use super::Identity;
use crate::network::{self, Network};
use crate::packet::{self, SimPacket};

/// A TCP flow: an application and its connections.
pub struct TcpFlow {
    connections: Connections,
    egress: Egress,
    application: Box<dyn Application>,
    /// The application wants to hear of arrivals; many do not.
    hears_arrivals: bool,
    /// The application's deadline, as it last reported it.
    application_due: Time,
    meter: Meter,
    /// The counters of closed connections.
    over: Counts,
}

/// Turns segments into packets and sends them.
struct Egress {
    identity: Identity,
    /// The send times of segments, if a row is recorded for each.
    unacknowledged: Option<Unacknowledged>,
    /// The flow's qlog, if it is recorded.
    qlog: Option<Box<Qlog>>,
    /// An arrival is being handled, and others may follow at this instant.
    in_batch: bool,
    /// The end polled last waits for the end of this instant.
    waits: bool,
}

impl TcpFlow {
    /// A new flow; `None` if the kind does not run over TCP.
    pub fn new(identity: Identity, kind: &Kind, algorithm: &Algorithm, seed: u64) -> Option<Self> {
        let tcp = kind.tcp()?;
        let application = over_tcp(&identity.of_application(), kind, seed)?;
        let iss = Stream::new(seed, &format!("flow/{}/iss", identity.flow));
        Some(Self {
            application_due: application.next_timer().unwrap_or(Time::MAX),
            connections: Connections::new(&identity, kind, tcp, algorithm, iss),
            hears_arrivals: application.hears_arrivals(),
            application,
            meter: Meter::new(&identity.measures),
            over: Counts::default(),
            egress: Egress {
                unacknowledged: (identity.measures.rows == Some(RowsOf::Segments))
                    .then(Unacknowledged::default),
                qlog: (identity.qlog).then(|| Box::new(Qlog::new(identity.flow, tcp.mss.into()))),
                identity,
                in_batch: false,
                waits: false,
            },
        })
    }

    /// Delivers a segment to one of the hosts.
    pub fn on_packet(&mut self, packet: &SimPacket, now: Time, network: &mut Network) {
        let (id, side) = (Id(packet.connection), packet.reaches());
        let Some(place) = self.connections.find(id) else {
            cold_path();
            return; // a late segment of a closed connection
        };
        let ecn = match packet.ecn {
            Ecn::NotEct => Arrival::NotEct,
            Ecn::Ect0 | Ecn::Ect1 => Arrival::Ect,
            Ecn::Ce => Arrival::Ce,
        };
        let segment = &packet.segment;
        if side == Side::Sending {
            if let Some(unacknowledged) = &mut self.egress.unacknowledged {
                record_acknowledged(unacknowledged, &mut self.meter, id, segment, now);
            }
        }
        let (connection, due) = self.connections.at(place);
        let rtt = connection.deliver(side, segment, ecn, now);
        if let (Some(qlog), Side::Sending) = (&mut self.egress.qlog, side) {
            record_received(
                qlog,
                connection,
                id,
                packet,
                self.egress.identity.overhead,
                rtt,
                now,
            );
        }
        connection.end_wait(side, now, || network.next_before(Time::MAX).1);
        if side == Side::Receiving && self.meter.segments.is_some() && segment.sequence_len() > 0 {
            cold_path();
            self.meter.record_segment(now - packet.enqueued, now);
        }
        if let Some(rtt) = rtt {
            self.meter.record_rtt(rtt, now);
        }
        // A kernel answers before it wakes the application.
        self.egress.in_batch = true;
        let over = self.egress.send(connection, due, (id, side), now, network);
        self.egress.in_batch = false;
        if over {
            self.let_go(id, place, now);
        } else if self.hears_arrivals {
            self.application.on_arrival(
                id,
                side,
                now,
                &mut self.connections,
                &mut Heard(&mut self.meter),
            );
            self.ask_application();
        } else {
            return;
        }
        self.send_ready(now, network);
    }

    /// Handles a host timer, which may have expired.
    pub fn on_timer(&mut self, side: Side, now: Time, network: &mut Network) {
        if side == Side::Sending && self.application_due <= now {
            self.application
                .on_timer(now, &mut self.connections, &mut Heard(&mut self.meter));
            self.ask_application();
        }
        self.connections.on_timer(side, now);
        self.send_ready(now, network);
    }

    /// Updates the application's deadline after it has acted.
    fn ask_application(&mut self) {
        self.application_due = self.application.next_timer().unwrap_or(Time::MAX);
    }

    /// The hosts' next deadlines; [`Time::MAX`]: only when a segment arrives. The application's timers run on the
    /// sending host.
    pub fn next_timers(&self) -> [Time; 2] {
        let [sending, receiving] = self.connections.next_timers();
        [sending.min(self.application_due), receiving]
    }

    /// Sends all segments that are ready.
    fn send_ready(&mut self, now: Time, network: &mut Network) {
        while let Some((id, place, side)) = self.connections.take_ready() {
            let (connection, due) = self.connections.at(place);
            if self.egress.send(connection, due, (id, side), now, network) {
                self.let_go(id, place, now);
            }
        }
    }

    /// Removes a closed connection and tells the application.
    #[cold]
    fn let_go(&mut self, id: Id, place: Place, now: Time) {
        let counts = self.connections.remove(place);
        self.over = [self.over, counts].into_iter().sum();
        if let Some(unacknowledged) = &mut self.egress.unacknowledged {
            unacknowledged.forget(id);
        }
        self.application
            .on_end(id, now, &mut self.connections, &mut Heard(&mut self.meter));
        self.ask_application();
    }

    /// The congestion state of the connections together; `None` without one.
    pub fn sender_state(&self) -> Option<SenderState> {
        self.connections.sender_state()
    }
    /// Takes the flow's qlog, if it is recorded.
    pub fn take_qlog(&mut self) -> Option<Vec<u8>> {
        self.egress.qlog.take().map(|qlog| qlog.into_bytes())
    }
    /// The flow's meter, as last brought up to date.
    pub fn into_meter(self) -> Meter {
        self.meter
    }
    /// The flow's meter, with its counters up to date.
    pub fn meter(&mut self) -> &mut Meter {
        let counts: Counts = [self.over, self.connections.counts()].into_iter().sum();
        self.meter.sent = counts.sent;
        self.meter.received = counts.received;
        self.meter.retransmits = counts.retransmits;
        self.meter.timeouts = counts.timeouts;
        &mut self.meter
    }
}

impl Egress {
    /// Sends all segments that an end may send, and updates its deadline. True if the connection is closed.
    fn send(
        &mut self,
        connection: &mut Connection,
        due: &mut [Time; 2],
        (id, side): (Id, Side),
        now: Time,
        network: &mut Network,
    ) -> bool {
        if let (Some(qlog), Side::Sending) = (&mut self.qlog, side) {
            cold_path();
            qlog.updated(id, connection.sending_end(side).0, None, now);
        }
        if connection.has_to_send(side) {
            self.poll(connection, id, side, now, network);
        }
        if let (Some(qlog), Side::Sending, false) = (&mut self.qlog, side, self.in_batch) {
            cold_path();
            qlog.updated(id, connection.sending_end(side).0, None, now);
        }
        due[side as usize] = if mem::take(&mut self.waits) {
            now
        } else {
            connection.next_timer(side)
        };
        connection.is_over()
    }

    /// Polls an end for segments until it has none left.
    #[inline]
    fn poll(
        &mut self,
        connection: &mut Connection,
        id: Id,
        side: Side,
        now: Time,
        network: &mut Network,
    ) {
        let of = self.identity.membership(id.0, side == Side::Receiving);
        let overhead = self.identity.overhead;
        let route = self.identity.routes[side as usize];
        let (end, mut local) = connection.sending_end(side);
        let capable = if end.sends_ect1() {
            Ecn::Ect1
        } else {
            Ecn::Ect0
        };
        loop {
            match &mut local {
                Some(LocalQueue::Link(link)) => hold_back(end, link, now),
                Some(local) if self.in_batch && waits(end, local, now, network) => {
                    self.waits = true;
                    return;
                }
                _ => {}
            }
            let mut packet = network.observer.packets.take();
            let Some(is_capable) = end.poll_into(&mut packet.segment, now) else {
                network.observer.packets.give_back(packet);
                return;
            };
            let segment = &packet.segment;
            if let Some(unacknowledged) = &mut self.unacknowledged {
                record_sent(unacknowledged, id, side, segment, now);
            }
            if let (Some(qlog), Side::Sending) = (&mut self.qlog, side) {
                cold_path();
                let ip_bytes = segment.header_bytes() + u32::from(segment.len);
                qlog.sent(id, segment, ip_bytes, now);
            }
            let payload = u32::from(segment.len);
            let bytes = segment.header_bytes() + payload + overhead;
            let ecn = if is_capable { capable } else { Ecn::NotEct };
            packet.address(of, packet::Kind::Segment, bytes, ecn, now);
            let mut next = packet.segment;
            let leaves = network::send(network, packet, route, now);
            let mut sent = payload;
            let has_link = matches!(local, Some(LocalQueue::Link(_)));
            if !has_link && self.unacknowledged.is_none() && self.qlog.is_none() {
                while end.continue_alike(&mut next, now) {
                    let mut packet = network.observer.packets.take();
                    packet.segment = next;
                    packet.address(of, packet::Kind::Segment, bytes, ecn, now);
                    network::send(network, packet, route, now);
                    sent += payload;
                }
            }
            if let Some(local) = &mut local {
                local.push(sent, now, leaves);
            }
            if !end.has_to_send() {
                return; // the usual case after an acknowledgement
            }
        }
    }
}

/// TCP small queues: nothing leaves until the host's own queue is short.
#[cold]
fn hold_back(end: &mut Endpoint, link: &mut LinkQueue, now: Time) {
    end.hold_back(link.short_at(end.small_queue(), now));
}

/// The same without a link: what was sent at this instant leaves after all that arrives at it.
#[inline(always)]
fn waits(end: &Endpoint, local: &LocalQueue, now: Time, network: &Network) -> bool {
    local.waiting(now) > 0 && {
        cold_path(); // the first acknowledgement of an instant has sent, and this is another one
        local.waiting(now) > end.small_queue() && network.next_before(Time::MAX).1 == now
    }
}

/// Notes an arrival at the sender of the data, and what it changed.
#[cold]
fn record_received(
    qlog: &mut Qlog,
    connection: &mut Connection,
    id: Id,
    packet: &SimPacket,
    overhead: u32,
    rtt: Option<Duration>,
    now: Time,
) {
    qlog.received(id, &packet.segment, packet.bytes - overhead, now);
    qlog.updated(id, connection.sending_end(Side::Sending).0, rtt, now);
}

/// Notes when data was sent.
#[cold]
fn record_sent(
    unacknowledged: &mut Unacknowledged,
    id: Id,
    side: Side,
    segment: &Segment,
    now: Time,
) {
    if side == Side::Sending && segment.len > 0 {
        unacknowledged.send(id, segment.end(), now);
    }
}

/// Records a row for each segment that this one acknowledges.
#[cold]
fn record_acknowledged(
    unacknowledged: &mut Unacknowledged,
    meter: &mut Meter,
    id: Id,
    segment: &Segment,
    now: Time,
) {
    for sent_at in unacknowledged.acknowledge(id, segment.ack) {
        meter.record_row(now - sent_at, now);
    }
}
