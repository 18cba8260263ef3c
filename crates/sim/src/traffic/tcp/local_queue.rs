//! A connection's bytes in its host's own queue, which TCP small queues keep short (Linux's tcp_small_queue_check).

use std::collections::VecDeque;

use sojourn_units::Time;

/// The data segments of a connection that have not left its host.
#[derive(Default)]
pub struct LocalQueue {
    /// When each leaves, and its payload.
    segments: VecDeque<(Time, u32)>,
    bytes: u64,
}

impl LocalQueue {
    /// Enqueues a segment of `payload` bytes that leaves at `leaves`, after those before it.
    #[cold]
    pub fn push(&mut self, payload: u32, leaves: Time) {
        if payload == 0 {
            return;
        }
        self.segments.push_back((leaves, payload));
        self.bytes += u64::from(payload);
    }

    /// When at most `limit` bytes are left in the queue; `now` if that holds already.
    pub fn short_at(&mut self, limit: u64, now: Time) -> Time {
        while let Some((_, payload)) = self.segments.front().filter(|(leaves, _)| *leaves <= now) {
            self.bytes -= u64::from(*payload);
            self.segments.pop_front();
        }
        let (mut at, mut bytes) = (now, self.bytes);
        for (leaves, payload) in &self.segments {
            if bytes <= limit {
                break;
            }
            (at, bytes) = (*leaves, bytes - u64::from(*payload));
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five segments of 1000 bytes leave at 1 to 5 ms. At most 2000 bytes wait once three have left.
    #[test]
    fn a_queue_is_short_when_enough_has_left() {
        let ms = Time::from_millis;
        let mut queue = LocalQueue::default();
        for leaves in 1..=5 {
            queue.push(1000, ms(leaves));
        }
        assert_eq!(queue.short_at(2000, ms(0)), ms(3));
        assert_eq!(queue.short_at(2000, ms(2)), ms(3));
        assert_eq!(queue.short_at(3000, ms(2)), ms(2));
        assert_eq!(queue.short_at(0, ms(4)), ms(5));
        assert_eq!(queue.short_at(0, ms(9)), ms(9));
    }
}
