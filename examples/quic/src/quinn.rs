//! Quinn as an end of a path.

use quinn_proto as proto;

include!("peer.rs");

fn create(server: Option<Arc<ServerConfig>>, seed: [u8; 32]) -> Endpoint {
    let mut config = proto::EndpointConfig::default();
    config.rng_seed(Some(seed));
    Endpoint::new(Arc::new(config), server, true, None)
}

fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    from: SocketAddr,
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
    answer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, from, None, ecn, data, answer)
}

fn congestion_events(connection: &mut Connection) -> u64 {
    connection.stats().path.congestion_events
}

fn transmit(connection: &mut Connection, now: Instant, payload: &mut Vec<u8>) -> Option<Transmit> {
    connection.poll_transmit(now, 1, payload)
}
