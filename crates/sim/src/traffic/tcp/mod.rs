//! TCP flows: an application and its connections.

mod acknowledged;
mod connections;
mod exchange;
mod local_queue;
mod meter_adapter;
mod qlog;

use sojourn_aqm::Ecn;
use sojourn_experiment::model::Kind;
use sojourn_measure::meter::{Meter, RowsOf};
use sojourn_measure::series::SenderState;
use sojourn_tcp::cc::Algorithm;
use sojourn_tcp::{Alike, Arrival, Endpoint, Segment, Sender};
use sojourn_traffic::streams::Stream;
use sojourn_traffic::{Application, Id, Side, over_tcp};
use sojourn_units::{Duration, Time, cold_path, prefetch};

pub use self::connections::Transports;

use self::acknowledged::Unacknowledged;
use self::connections::{Connection, Connections, Counts};
pub use self::local_queue::Waits;
use self::local_queue::{LinkQueue, LocalQueue};
use self::meter_adapter::MeterAdapter;
use self::qlog::Qlog;
use super::{Identity, Labels};
use crate::network::{self, Network};
use crate::packet::{self, SimPacket};
use crate::timers::Timers;

/// A TCP flow: an application and its connections.
pub struct TcpFlow {
    connections: Connections,
    egress: Egress,
    application: Box<dyn Application>,
    /// The application wants to hear of arrivals, which many do not, or an exchange comes before its data.
    hears_arrivals: bool,
    /// What arrives is only TCP's: it does not want to hear of it, and nothing is recorded.
    is_straight: bool,
    /// The application's deadline, as it last reported it, or when its connection is to be opened ahead of it.
    application_due: Time,
    meter: Box<Meter>,
    /// The counters of closed connections.
    over: Counts,
}

/// Turns segments into packets and sends them.
struct Egress {
    labels: Labels,
    /// The send times of segments, if a row is recorded for each.
    unacknowledged: Option<Unacknowledged>,
    /// The flow's qlog, if it is recorded.
    qlog: Option<Box<Qlog>>,
    /// The send times or the qlog are recorded, or the meter records segments.
    records: bool,
}

/// What an end has done.
struct Sent {
    /// The connection is closed.
    over: bool,
    /// Its deadline has moved.
    moved: bool,
}

impl TcpFlow {
    /// A new flow; `None` if the kind does not run over TCP.
    pub fn new(
        identity: Identity,
        kind: &Kind,
        (algorithm, transports): (&Algorithm, &mut Transports),
        seed: u64,
    ) -> Option<Self> {
        let tcp = kind.tcp()?;
        let application = over_tcp(&identity.of_application(), kind, seed)?;
        let iss = Stream::new(seed, &format!("flow/{}/iss", identity.flow));
        let meter = Box::new(Meter::new(&identity.measures));
        let rows = identity.measures.rows == Some(RowsOf::Segments);
        let connections = Connections::new(&identity, kind, tcp, algorithm, transports, iss);
        let mut flow = Self {
            application_due: Time::MAX,
            hears_arrivals: false,
            is_straight: false,
            connections,
            application,
            over: Counts::default(),
            egress: Egress {
                unacknowledged: rows.then(Unacknowledged::default),
                qlog: (identity.qlog).then(|| Box::new(Qlog::new(identity.flow, tcp.mss.into()))),
                records: rows || identity.qlog || meter.segments.is_some(),
                labels: identity.labels(),
            },
            meter,
        };
        flow.ask_application();
        Some(flow)
    }

    /// Delivers a segment to one of the hosts, and sets their timers if these may have moved. `FROM_LINK`: it comes from a link,
    /// as data usually does; then what takes data is compiled into the caller.
    #[inline(always)]
    pub fn on_packet<const FROM_LINK: bool>(
        &mut self,
        packet: &SimPacket,
        now: Time,
        network: &mut Network,
        timers: &mut Timers,
    ) {
        // Compiled for each host apart.
        match packet.reaches() {
            side if !self.is_straight => self.deliver_otherwise(packet, side, now, network, timers),
            Side::Sending if packet.segment.sack[0].is_none() => {
                self.on_acknowledgement(packet, now, network, timers)
            }
            Side::Sending => self.deliver_otherwise(packet, Side::Sending, now, network, timers),
            Side::Receiving if FROM_LINK => self.receive(packet, now, network, timers),
            Side::Receiving => self.receive_from_line(packet, now, network, timers),
        }
    }

    /// Has what a packet that arrives soon needs brought into the caches.
    #[inline(never)]
    pub fn expect(&self, packet: &SimPacket) {
        prefetch(self);
        prefetch(&*self.meter);
        self.connections.expect(packet.reaches());
    }

    #[inline(never)]
    fn receive_from_line(
        &mut self,
        packet: &SimPacket,
        now: Time,
        network: &mut Network,
        timers: &mut Timers,
    ) {
        self.receive(packet, now, network, timers);
    }

    #[cold]
    #[inline(never)]
    fn deliver_recorded(
        &mut self,
        packet: &SimPacket,
        now: Time,
        network: &mut Network,
        timers: &mut Timers,
    ) {
        self.deliver(packet, packet.reaches(), true, now, network, timers)
    }

    /// Delivers a segment to the receiving host, which usually expects it and only acknowledges it.
    #[inline(always)]
    fn receive(
        &mut self,
        packet: &SimPacket,
        now: Time,
        network: &mut Network,
        timers: &mut Timers,
    ) {
        let (id, side) = (Id(packet.connection), Side::Receiving);
        let Some((connection, due)) = self.connections.at(id) else {
            cold_path();
            return; // a late segment of a closed connection
        };
        let (end, _) = connection.sending_end(side);
        if !end.take_expected(&packet.segment, now) && !end.take_behind_hole(&packet.segment, now) {
            return self.deliver_otherwise(packet, side, now, network, timers);
        }
        if end.waits_at(now) {
            cold_path();
            connection.end_wait(side, now, || network.next_before(Time::MAX).1);
        }
        let (end, _) = connection.sending_end(side);
        while end.owes_acknowledgement() {
            self.egress.acknowledge(end, (id, side), now, network);
        }
        let next = end.due();
        let moved = next != due[side as usize];
        due[side as usize] = next;
        if moved {
            self.set_timer(side, timers);
        }
    }

    /// Delivers a segment to the sending host, usually an acknowledgement of new data. Between the bursts of a fast flow most let
    /// nothing leave.
    #[inline(never)]
    fn on_acknowledgement(
        &mut self,
        packet: &SimPacket,
        now: Time,
        network: &mut Network,
        timers: &mut Timers,
    ) {
        let (id, side) = (Id(packet.connection), Side::Sending);
        let Some((connection, due)) = self.connections.at(id) else {
            cold_path();
            return; // a late segment of a closed connection
        };
        let Some(rtt) = connection.take_progress(&packet.segment, now) else {
            return self.deliver_otherwise(packet, side, now, network, timers);
        };
        self.meter.record_rtt(rtt, now);
        if connection.keeps_deferring(now) {
            return;
        }
        let sent = (self.egress).send(connection, due, (id, side), true, now, network);
        if sent.over {
            self.tell_application(true, (id, side), now, network, timers);
        } else if sent.moved {
            self.set_timer(side, timers);
        }
    }

    /// Delivers any segment to a host. Compiled for each host apart, and for what is recorded.
    #[inline(never)]
    fn deliver_otherwise(
        &mut self,
        packet: &SimPacket,
        side: Side,
        now: Time,
        network: &mut Network,
        timers: &mut Timers,
    ) {
        if self.egress.records {
            return self.deliver_recorded(packet, now, network, timers);
        }
        match side {
            Side::Sending => self.deliver(packet, Side::Sending, false, now, network, timers),
            Side::Receiving => self.deliver(packet, Side::Receiving, false, now, network, timers),
        }
    }

    #[inline(always)]
    fn deliver(
        &mut self,
        packet: &SimPacket,
        side: Side,
        records: bool,
        now: Time,
        network: &mut Network,
        timers: &mut Timers,
    ) {
        let id = Id(packet.connection);
        let Some((connection, due)) = self.connections.at(id) else {
            cold_path();
            return; // a late segment of a closed connection
        };
        let ecn = if packet.ecn == Ecn::NotEct {
            Arrival::NotEct
        } else {
            arrival(packet.ecn)
        };
        let (egress, meter) = (&mut self.egress, &mut self.meter);
        if records {
            egress.record_acknowledged(meter, packet, now);
        }
        let rtt = connection.deliver(side, &packet.segment, ecn, now);
        if records {
            egress.record_arrival(meter, connection, packet, rtt, now);
        }
        connection.end_wait(side, now, || network.next_before(Time::MAX).1);
        if let Some(rtt) = rtt {
            meter.record_rtt(rtt, now);
        }
        // A kernel answers before it wakes the application.
        if records {
            egress.record_update(connection, id, side, now);
        }
        let sent = egress.send(connection, due, (id, side), true, now, network);
        if sent.over || self.hears_arrivals {
            return self.tell_application(sent.over, (id, side), now, network, timers);
        }
        if sent.moved {
            self.set_timer(side, timers);
        }
    }

    /// Tells the application of an arrival, or that it has closed the connection, and sends what follows.
    #[inline(never)]
    fn tell_application(
        &mut self,
        over: bool,
        (id, side): (Id, Side),
        now: Time,
        network: &mut Network,
        timers: &mut Timers,
    ) {
        if over {
            self.let_go(id, now);
        } else {
            self.connections.end_exchange();
            let meter_adapter = &mut MeterAdapter(&mut self.meter);
            self.application
                .on_arrival(id, side, now, &mut self.connections, meter_adapter);
            self.ask_application();
        }
        self.send_ready(now, network);
        timers.set_both(self.egress.labels.flow, self.next_timers());
    }

    /// An end of a connection has a new deadline.
    #[inline(always)]
    fn set_timer(&self, side: Side, timers: &mut Timers) {
        let due = self.next_timer(side);
        timers.set(self.egress.labels.flow, side, due);
    }

    /// A segment with data of a connection has left the station that sends it.
    #[cold]
    pub fn on_left(&mut self, id: Id) {
        if let Some((connection, _)) = self.connections.at(id)
            && let (_, Some(LocalQueue::Station(station))) = connection.sending_end(Side::Sending)
        {
            station.leave();
        }
    }

    /// All of a transmission has left: what waited for that may be sent (Linux's tcp_tsq_write).
    #[cold]
    pub fn send_throttled(
        &mut self,
        id: Id,
        now: Time,
        network: &mut Network,
        timers: &mut Timers,
    ) {
        let side = Side::Sending;
        let Some((connection, due)) = self.connections.at(id) else {
            return;
        };
        if connection.sending_end(side).0.take_throttled() {
            self.egress
                .send(connection, due, (id, side), false, now, network);
            self.set_timer(side, timers);
        }
    }

    /// Handles a host timer, which may have expired.
    pub fn on_timer(&mut self, side: Side, now: Time, network: &mut Network) {
        if side == Side::Sending && self.application_due <= now {
            if self.connections.opens_ahead() <= now {
                self.connections.open_ahead();
            }
            if self.application.next_timer().is_some_and(|due| due <= now) {
                self.application.on_timer(
                    now,
                    &mut self.connections,
                    &mut MeterAdapter(&mut self.meter),
                );
                while let Some(id) = self.connections.find_aborted() {
                    self.let_go(id, now);
                }
            }
            self.ask_application();
        }
        self.connections.on_timer(side, now);
        self.send_ready(now, network);
    }

    /// Updates the application's deadline, and whether it hears of arrivals, after it or its exchange has acted.
    fn ask_application(&mut self) {
        let due = self.application.next_timer().unwrap_or(Time::MAX);
        self.application_due = due.min(self.connections.opens_ahead());
        self.hears_arrivals = self.connections.is_exchanging() || self.application.hears_arrivals();
        self.is_straight = !self.hears_arrivals && !self.egress.records;
    }

    /// The hosts' next deadlines; [`Time::MAX`]: only when a segment arrives. The application's timers run on the
    /// sending host.
    #[inline(always)]
    pub fn next_timers(&self) -> [Time; 2] {
        [Side::Sending, Side::Receiving].map(|side| self.next_timer(side))
    }

    /// One of them.
    #[inline(always)]
    fn next_timer(&self, side: Side) -> Time {
        let due = self.connections.next_timer(side);
        match side {
            Side::Sending => due.min(self.application_due),
            Side::Receiving => due,
        }
    }

    /// Sends all segments that are ready.
    fn send_ready(&mut self, now: Time, network: &mut Network) {
        while let Some((id, side)) = self.connections.take_ready() {
            let Some((connection, due)) = self.connections.at(id) else {
                continue;
            };
            let egress = &mut self.egress;
            if egress.records {
                egress.record_update(connection, id, side, now);
            }
            let sent = egress.send(connection, due, (id, side), false, now, network);
            if egress.records {
                egress.record_update(connection, id, side, now);
            }
            if sent.over {
                self.let_go(id, now);
            }
        }
    }

    /// Removes a closed connection and tells the application.
    #[cold]
    fn let_go(&mut self, id: Id, now: Time) {
        let counts = self.connections.remove(id);
        self.over = [self.over, counts].into_iter().sum();
        if let Some(unacknowledged) = &mut self.egress.unacknowledged {
            unacknowledged.forget(id);
        }
        self.application.on_end(
            id,
            now,
            &mut self.connections,
            &mut MeterAdapter(&mut self.meter),
        );
        self.ask_application();
    }

    /// The congestion state of the connections together; `None` without one.
    pub fn sender_state(&mut self) -> Option<SenderState> {
        self.connections.sender_state()
    }
    /// Takes the flow's qlog, if it is recorded.
    pub fn take_qlog(&mut self) -> Option<Vec<u8>> {
        self.egress.qlog.take().map(|qlog| qlog.into_bytes())
    }
    /// The flow's meter, as last brought up to date.
    pub fn into_meter(self) -> Box<Meter> {
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
    /// Sends all segments that an end may send, and updates its deadline. `in_batch`: an arrival is being handled, and others
    /// may follow at this instant.
    #[inline(always)]
    fn send(
        &mut self,
        connection: &mut Connection,
        due: &mut [Time; 2],
        (id, side): (Id, Side),
        in_batch: bool,
        now: Time,
        network: &mut Network,
    ) -> Sent {
        let waits = connection.has_to_send(side)
            && self.poll(connection, (id, side), in_batch, now, network);
        let next = connection.due(side, waits, now);
        let moved = next != due[side as usize];
        due[side as usize] = next;
        // What arrives at the receiving host ends nothing.
        let may_be_over = !in_batch || side == Side::Sending;
        Sent {
            over: may_be_over && connection.is_over(),
            moved,
        }
    }

    /// Polls an end for segments until it has none left. True if the end waits for the end of this instant.
    #[inline(always)]
    fn poll(
        &mut self,
        connection: &mut Connection,
        of: (Id, Side),
        in_batch: bool,
        now: Time,
        network: &mut Network,
    ) -> bool {
        let (end, local) = connection.sending_end(of.1);
        if local.is_some() || !end.is_idle() {
            // Between the bursts of a fast flow most acknowledgements let nothing leave.
            if end.defer_again(now, || {
                local.as_ref().is_none_or(|local| local.is_quiet(now))
            }) {
                return false;
            }
            return self.send_all(end, local, of, in_batch, now, network);
        }
        // Two, if the marking has changed.
        while end.has_to_send() {
            self.acknowledge(end, of, now, network);
        }
        false
    }

    /// Sends the acknowledgement of an end that has nothing else to send.
    #[inline(never)]
    fn acknowledge(
        &mut self,
        end: &mut Endpoint,
        of: (Id, Side),
        now: Time,
        network: &mut Network,
    ) {
        let mut packet = network.observer.packets.take();
        match end.acknowledge_into(&mut packet.segment, now) {
            Some(is_capable) => {
                let bytes = packet.segment.header_bytes() + self.labels.overhead;
                let ecn = codepoint(end, is_capable);
                self.launch(packet, bytes, (ecn, Alike::NONE), of, now, network);
            }
            None => network.observer.packets.give_back(packet),
        }
    }

    /// Sends all segments that an end may send now, burst by burst. True if the end waits for the end of this instant.
    #[inline(never)]
    fn send_all(
        &mut self,
        end: &mut Endpoint,
        mut local: Option<&mut LocalQueue>,
        of: (Id, Side),
        in_batch: bool,
        now: Time,
        network: &mut Network,
    ) -> bool {
        let has_link = matches!(local, Some(LocalQueue::Link(_)));
        let alike_leave_together = !has_link && !self.records;
        loop {
            match &mut local {
                Some(LocalQueue::Link(link)) => hold_back(end, link, now),
                Some(LocalQueue::Station(station)) => end.note_queued(station.memory()),
                Some(local) if in_batch && waits(end, local, now, network) => return true,
                _ => {}
            }
            let packets = &mut network.observer.packets;
            let Some(is_capable) = end.poll_into(&mut packets.spare().segment, now) else {
                return false;
            };
            let packet = packets.take();
            let payload = u32::from(packet.segment.len);
            let bytes = packet.segment.header_bytes() + payload + self.labels.overhead;
            let ecn = codepoint(end, is_capable);
            let alike = if alike_leave_together {
                end.continue_alike(&packet.segment, |sender| {
                    in_batch && may_break(sender, &local, now)
                })
            } else {
                Alike::NONE
            };
            let leaves = self.launch(packet, bytes, (ecn, alike), of, now, network);
            if let Some(local) = &mut local {
                local.push(payload, 1 + alike.segments, now, leaves);
            }
            if !end.has_to_send() {
                return false;
            }
        }
    }

    /// Sends a packet that holds a segment and takes `bytes` on the link, and those of the segments that follow it. Returns when
    /// they leave the host.
    #[inline(always)]
    fn launch(
        &mut self,
        mut packet: SimPacket,
        bytes: u32,
        (ecn, followers): (Ecn, Alike),
        (id, side): (Id, Side),
        now: Time,
        network: &mut Network,
    ) -> Time {
        if self.records {
            self.record_sent(id, side, &packet.segment, now);
        }
        let of = self.labels.membership(id.0, side == Side::Receiving);
        packet.address(of, packet::Kind::Segment, bytes, ecn, now);
        let route = self.labels.routes[side as usize];
        if followers.segments > 0 {
            packet.begin_burst(followers);
            return network::send_burst(network, packet, route, now);
        }
        network::send(network, packet, route, now)
    }

    /// Notes when data was sent.
    #[cold]
    fn record_sent(&mut self, id: Id, side: Side, segment: &Segment, now: Time) {
        if side != Side::Sending {
            return;
        }
        if let Some(unacknowledged) = self.unacknowledged.as_mut().filter(|_| segment.len > 0) {
            unacknowledged.send(id, segment.end(), now);
        }
        if let Some(qlog) = &mut self.qlog {
            let ip_bytes = segment.header_bytes() + u32::from(segment.len);
            qlog.sent(id, segment, ip_bytes, now);
        }
    }

    /// Records a row for each segment that this packet acknowledges at the sender of the data.
    #[cold]
    fn record_acknowledged(&mut self, meter: &mut Meter, packet: &SimPacket, now: Time) {
        if let (Some(unacknowledged), Side::Sending) = (&mut self.unacknowledged, packet.reaches())
        {
            for sent_at in unacknowledged.acknowledge(Id(packet.connection), packet.segment.ack) {
                meter.record_row(now - sent_at, now);
            }
        }
    }

    /// Notes an arrival, and what it has changed at the sender of the data.
    #[cold]
    fn record_arrival(
        &mut self,
        meter: &mut Meter,
        connection: &mut Connection,
        packet: &SimPacket,
        rtt: Option<Duration>,
        now: Time,
    ) {
        let (id, segment) = (Id(packet.connection), &packet.segment);
        match (&mut self.qlog, packet.reaches()) {
            (Some(qlog), Side::Sending) => {
                qlog.received(id, segment, packet.bytes - self.labels.overhead, now);
                qlog.updated(id, connection.sending_end(Side::Sending).0, rtt, now);
            }
            (_, Side::Receiving) if meter.segments.is_some() && segment.sequence_len() > 0 => {
                meter.record_segment(now - packet.enqueued, now);
            }
            _ => {}
        }
    }

    /// Notes what has changed at the sender of the data.
    #[cold]
    fn record_update(&mut self, connection: &mut Connection, id: Id, side: Side, now: Time) {
        if let (Some(qlog), Side::Sending) = (&mut self.qlog, side) {
            qlog.updated(id, connection.sending_end(side).0, None, now);
        }
    }
}

/// How a packet with this ECN field arrives.
#[inline(never)]
const fn arrival(ecn: Ecn) -> Arrival {
    match ecn {
        Ecn::NotEct => Arrival::NotEct,
        Ecn::Ect0 => Arrival::Ect0,
        Ecn::Ect1 => Arrival::Ect1,
        Ecn::Ce => Arrival::Ce,
    }
}

/// The ECN field of what an end sends.
#[inline(always)]
fn codepoint(end: &Endpoint, is_capable: bool) -> Ecn {
    match is_capable {
        false => Ecn::NotEct,
        true if end.sends_ect1() => Ecn::Ect1,
        true => Ecn::Ect0,
    }
}

/// TCP small queues: nothing leaves until the host's own queue is short.
#[cold]
fn hold_back(end: &mut Endpoint, link: &mut LinkQueue, now: Time) {
    end.hold_back(link.short_at(end.small_queue(), now));
}

/// True if what follows in a burst may have to wait for what else arrives at this instant. While the window is reduced, that
/// is found out before each segment.
#[cold]
fn may_break(sender: &Sender, local: &Option<&mut LocalQueue>, now: Time) -> bool {
    let waiting = local.as_ref().map_or(0, |local| local.waiting(now));
    waiting + sender.burst_bytes() > sender.small_queue()
}

/// The same without a link: what was sent at this instant leaves after all that arrives at it.
#[inline(always)]
fn waits(end: &Endpoint, local: &LocalQueue, now: Time, network: &Network) -> bool {
    local.waiting(now) > end.least_small_queue() && {
        cold_path(); // usually nothing else arrives now, which is found out sooner
        network.next_before(Time::MAX).1 == now && local.waiting(now) > end.small_queue()
    }
}
