//! The traffic of a first-person game: states from the server, moves from the client (Färber, "Network game traffic
//! modelling", NetGames 2002: Counter-Strike, its extreme-value distributions for one player).

use sojourn_units::Duration;

use crate::direction::Direction;
use crate::streams::Stream;

/// The smallest payload: the game's own header.
const LEAST_BYTES: f64 = 8.0;
/// The time between the moves of a player; the server's states come a little more slowly.
pub const INTERVAL: Duration = Duration::from_millis(40);
/// The largest payload: a full datagram at an MTU of 1500.
pub const MOST_BYTES: u32 = 1472;

/// The next datagram: the time since the last one, and its payload bytes. The server sends down, the client up.
pub fn next(direction: Direction, draws: &mut Stream) -> (Duration, u32) {
    let (ms, bytes) = match direction {
        Direction::Up => (INTERVAL.as_millis_f64(), draws.extreme(80.0, 5.7)),
        Direction::Down | Direction::Both => (
            draws.extreme(55.0, 6.0).max(1.0),
            draws.extreme(120.0, 36.0),
        ),
    };
    let bytes = bytes.round().clamp(LEAST_BYTES, f64::from(MOST_BYTES)) as u32;
    (Duration::from_secs_f64(ms / 1000.0), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of an extreme-value distribution is its location plus 0.5772 times its scale.
    #[test]
    fn server_and_client_send_at_their_rates() {
        for (direction, ms, bytes) in [(Direction::Down, 58.46, 140.8), (Direction::Up, 40.0, 83.3)]
        {
            let mut draws = Stream::new(1, "game");
            let drawn: Vec<(Duration, u32)> =
                (0..100_000).map(|_| next(direction, &mut draws)).collect();
            let gap: f64 = drawn
                .iter()
                .map(|(gap, _)| gap.as_millis_f64())
                .sum::<f64>()
                / 1e5;
            let size: f64 = drawn.iter().map(|(_, size)| f64::from(*size)).sum::<f64>() / 1e5;
            assert!((gap - ms).abs() < 0.2, "{gap} ms");
            assert!((size - bytes).abs() < 0.5, "{size} B");
        }
    }
}
