// A QUIC endpoint with one connection as an end of a path: what is the same for both stacks. `proto` is the stack; `create`,
// `handle` and `transmit` are in the file that includes this one.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use proto::congestion::CubicConfig;
use proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, Event, ServerConfig,
    StreamEvent, StreamId, Transmit, TransportConfig,
};
use sojourn_path::{Datagram, Delivery, Ecn};

use crate::tls::Certificate;

/// Bytes on the link around a UDP payload: Ethernet, IPv6 and UDP.
const HEADERS: u32 = 14 + 40 + 8;

/// A QUIC endpoint with one connection.
pub struct Peer {
    /// The instant of the path's beginning.
    epoch: Instant,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    local: SocketAddr,
    remote: SocketAddr,
    /// The endpoint's own answers, such as those of a handshake that it refuses.
    answers: VecDeque<(Transmit, Vec<u8>)>,
    /// Sends its ECT(0) packets as ECT(1), as a stack with an L4S congestion control would.
    ect1: bool,
    /// The stream to write without end, once it is open.
    stream: Option<StreamId>,
    writes: bool,
    /// Payload that has arrived in order.
    pub received: u64,
}

/// A server that sends without end and a client that reads, under CUBIC.
pub fn pair(certificate: &Certificate, ect1: bool, seed: u8) -> (Peer, Peer) {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(CubicConfig::default()));
    let transport = Arc::new(transport);
    let (chain, key) = (vec![certificate.chain()], certificate.key());
    let mut server = ServerConfig::with_single_cert(chain, key).expect("the certificate is good");
    server.transport_config(Arc::clone(&transport));
    let mut client = ClientConfig::with_root_certificates(certificate.roots()).expect("the certificate is good");
    client.transport_config(transport);

    let epoch = Instant::now();
    let addresses = ["[2001:db8::1]:443", "[2001:db8::2]:50000"].map(|text| text.parse().expect("an address"));
    let peer = |endpoint, local, remote, writes| Peer {
        epoch,
        endpoint,
        connection: None,
        local,
        remote,
        answers: VecDeque::new(),
        ect1,
        stream: None,
        writes,
        received: 0,
    };
    let server = peer(create(Some(Arc::new(server)), [seed; 32]), addresses[0], addresses[1], true);
    let mut other = peer(create(None, [seed + 1; 32]), addresses[1], addresses[0], false);
    other.connection = Some(other.endpoint.connect(epoch, client, addresses[0], "localhost").expect("it connects"));
    (server, other)
}

impl Peer {
    /// How often its congestion control was told of congestion.
    pub fn signals(&mut self) -> u64 {
        self.connection.as_mut().map_or(0, |(_, connection)| congestion_events(connection))
    }

    /// What the connection and the application have to do after something happened.
    fn act(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected if self.writes => self.stream = connection.streams().open(Dir::Uni),
                Event::Stream(StreamEvent::Opened { dir }) => self.stream = connection.streams().accept(dir),
                Event::ConnectionLost { reason } => panic!("the connection is lost: {reason}"),
                _ => {}
            }
        }
        let Some(stream) = self.stream else { return };
        if self.writes {
            while connection.send_stream(stream).write(&[0; 16_384]).is_ok() {}
        } else if let Ok(mut chunks) = connection.recv_stream(stream).read(true) {
            while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                self.received += chunk.bytes.len() as u64;
            }
            // The windows that this opens are sent when they are due.
            let _ = chunks.finalize();
        }
    }

    fn datagram(&self, transmit: &Transmit, payload: Vec<u8>) -> Datagram<Vec<u8>> {
        let ecn = match transmit.ecn {
            None => Ecn::NotEct,
            Some(EcnCodepoint::Ect0) if self.ect1 => Ecn::Ect1,
            Some(EcnCodepoint::Ect0) => Ecn::Ect0,
            Some(EcnCodepoint::Ect1) => Ecn::Ect1,
            Some(EcnCodepoint::Ce) => Ecn::Ce,
        };
        let bytes = payload.len() as u32 + HEADERS;
        Datagram::new(payload, bytes).with_ecn(ecn).with_flow((self.local, self.remote))
    }
}

impl sojourn_path::Endpoint<Vec<u8>> for Peer {
    fn transmit(&mut self, now: Duration) -> Option<Datagram<Vec<u8>>> {
        if let Some((transmit, payload)) = self.answers.pop_front() {
            return Some(self.datagram(&transmit, payload));
        }
        let (_, connection) = self.connection.as_mut()?;
        let mut payload = Vec::with_capacity(1500);
        let transmit = transmit(connection, self.epoch + now, &mut payload)?;
        Some(self.datagram(&transmit, payload))
    }

    fn receive(&mut self, packet: Delivery<Vec<u8>>) {
        let now = self.epoch + packet.at;
        let ecn = match packet.ecn {
            Ecn::NotEct => None,
            // A stack that sends ECT(0) counts ECT(0).
            Ecn::Ect0 | Ecn::Ect1 => Some(EcnCodepoint::Ect0),
            Ecn::Ce => Some(EcnCodepoint::Ce),
        };
        let data = BytesMut::from(&packet.payload[..]);
        let mut answer = Vec::new();
        match handle(&mut self.endpoint, now, self.remote, ecn, data, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, now, &mut answer, None);
                self.connection = accepted.ok();
            }
            Some(DatagramEvent::Response(transmit)) => self.answers.push_back((transmit, answer)),
            None => {}
        }
        self.act();
    }

    fn timeout(&mut self) -> Option<Duration> {
        let at = self.connection.as_mut()?.1.poll_timeout()?;
        Some(at.saturating_duration_since(self.epoch))
    }

    fn on_timeout(&mut self, now: Duration) {
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(self.epoch + now);
        }
        self.act();
    }
}
