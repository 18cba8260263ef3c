//! Interarrival jitter (RFC 3550 §6.4.1).

use sojourn_units::Duration;

/// The estimate of a flow's jitter: a running mean, with weight 1/16, of the difference between the delays of
/// consecutive packets in order of arrival.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jitter {
    nanos: f64,
    last: Option<Duration>,
}

impl Jitter {
    /// Takes the delay of a packet. Returns the estimate from the second packet on.
    pub fn update(&mut self, delay: Duration) -> Option<Duration> {
        let last = self.last.replace(delay)?;
        let difference = delay.as_nanos().abs_diff(last.as_nanos());
        self.nanos += (difference as f64 - self.nanos) / 16.0;
        Some(Duration::from_nanos(self.nanos.round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3550 §6.4.1: J += (|D| − J)/16. Delays 20, 36, 36 ms: 16/16 = 1 ms, then 1 − 1/16 = 0.9375 ms.
    #[test]
    fn jitter_moves_by_a_sixteenth() {
        let mut jitter = Jitter::default();
        assert_eq!(jitter.update(Duration::from_millis(20)), None);
        assert_eq!(
            jitter.update(Duration::from_millis(36)),
            Some(Duration::from_millis(1))
        );
        assert_eq!(
            jitter.update(Duration::from_millis(36)),
            Some(Duration::from_nanos(937_500))
        );
    }
}
