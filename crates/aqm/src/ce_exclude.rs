//! Leaving packets that already carry CE out of what drives dropping (Khademi, Ros and Welzl 2013, §7).
//!
//! With ECN a marked packet stays in the queue, so a queue of marked packets asks for still more marks
//! although its senders have been told. The remedy measured here: count only what is unmarked.
//!
//! A sender that ignores marks could fill the buffer unseen. Hence every user of this module also has a
//! level above which the full measure counts, and limits always count everything.

use sojourn_units::Duration;

use crate::aqm::Backlog;

/// The part of `whole` that the unmarked bytes of `backlog` stand for; all of it if nothing is queued.
pub(crate) fn unmarked_part(whole: u64, backlog: Backlog) -> u64 {
    if backlog.ce_bytes == 0 || backlog.bytes == 0 {
        return whole;
    }
    let unmarked = backlog.bytes.saturating_sub(backlog.ce_bytes);
    (u128::from(whole) * u128::from(unmarked) / u128::from(backlog.bytes)) as u64
}

/// The part of a delay that the unmarked bytes of `backlog` stand for, unless the whole of it is above
/// `full_above`: then all.
pub(crate) fn unmarked_delay(delay: Duration, backlog: Backlog, full_above: Duration) -> Duration {
    if delay > full_above {
        return delay;
    }
    Duration::from_nanos(unmarked_part(delay.as_nanos(), backlog))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF_MARKED: Backlog = Backlog {
        packets: 4,
        bytes: 6000,
        ce_bytes: 3000,
        qdisc_bytes: 6000,
    };

    #[test]
    fn a_half_marked_queue_counts_half() {
        assert_eq!(unmarked_part(6000, HALF_MARKED), 3000);
        let delay = unmarked_delay(
            Duration::from_millis(20),
            HALF_MARKED,
            Duration::from_millis(250),
        );
        assert_eq!(delay, Duration::from_millis(10));
    }

    #[test]
    fn above_the_safety_level_everything_counts() {
        let delay = Duration::from_millis(251);
        assert_eq!(
            unmarked_delay(delay, HALF_MARKED, Duration::from_millis(250)),
            delay
        );
    }

    #[test]
    fn an_empty_queue_changes_nothing() {
        assert_eq!(unmarked_part(7, Backlog::default()), 7);
    }
}
