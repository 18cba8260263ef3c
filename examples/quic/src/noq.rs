//! noq as an end of a path.

use noq_proto as proto;

include!("peer.rs");

fn create(server: Option<Arc<ServerConfig>>, seed: [u8; 32]) -> Endpoint {
    let mut config = proto::EndpointConfig::default();
    config.rng_seed(Some(seed));
    Endpoint::new(Arc::new(config), server, true)
}

fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    from: SocketAddr,
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
    answer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, proto::FourTuple::new(from, None), ecn, data, answer)
}

fn congestion_events(connection: &mut Connection) -> u64 {
    connection.path_stats(proto::PathId::ZERO).map_or(0, |path| path.congestion_events)
}

fn transmit(connection: &mut Connection, now: Instant, payload: &mut Vec<u8>) -> Option<Transmit> {
    connection.poll_transmit(now, std::num::NonZeroUsize::MIN, payload)
}
