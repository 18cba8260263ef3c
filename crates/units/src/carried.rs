//! The share of a link's capacity that was used within a span of time.

use alloc::vec::Vec;

use crate::{Duration, Rate, Time, cold_path};

/// The use of a link with a schedule of rates within a span. It adds up the time spent sending at each rate. A packet in
/// transmission at either end of the span counts in part.
pub struct Carried {
    /// A part of the span per rate, and a part before and after the span that does not count.
    parts: Vec<Part>,
    current: usize,
    /// When the current part ends.
    end: Time,
    /// Time spent sending in the current part.
    busy: Duration,
}

struct Part {
    end: Time,
    bytes_per_sec: f64,
    length: Duration,
    /// Time spent sending, once the part is over.
    busy: Duration,
}

impl Carried {
    /// A link with these rates, each from its time on, that has sent nothing yet. Transmissions between `from` and
    /// `to` count.
    pub fn new(rates: &[(Duration, Rate)], from: Duration, to: Duration) -> Self {
        let mut parts = Vec::new();
        let mut add = |begin: Duration, end: Duration, bytes_per_sec: f64| {
            if begin < end {
                parts.push(Part {
                    end: Time::ZERO + end,
                    bytes_per_sec,
                    length: end.saturating_sub(begin),
                    busy: Duration::ZERO,
                });
            }
        };
        add(Duration::ZERO, from, 0.0);
        let ends = rates.iter().skip(1).map(|(at, _)| *at);
        for ((begin, rate), end) in rates.iter().zip(ends.chain([Duration::MAX])) {
            add((*begin).max(from), end.min(to), rate.bytes_per_sec());
        }
        add(to, Duration::MAX, 0.0);
        Self {
            end: parts[0].end,
            busy: Duration::ZERO,
            parts,
            current: 0,
        }
    }

    /// Sets the rate from `now` on.
    pub fn set_rate(&mut self, rate: Rate, now: Time) {
        let index = self.parts.iter().position(|part| now < part.end);
        let Some(index) = index else {
            return; // unreachable: the last part has no end
        };
        let begin = index
            .checked_sub(1)
            .map_or(Time::ZERO, |before| self.parts[before].end);
        if begin < now && self.parts[index].bytes_per_sec > 0.0 {
            let part = &mut self.parts[index];
            let rest = Part {
                end: part.end,
                bytes_per_sec: part.bytes_per_sec,
                length: part.end - now,
                busy: Duration::ZERO,
            };
            part.length = now - begin;
            part.end = now;
            self.parts.insert(index + 1, rest);
            // The packet in transmission was counted in the part that now ends here.
            self.current += usize::from(self.current > index);
            self.end = self.parts[self.current].end;
        }
        for part in &mut self.parts {
            if part.end > now && part.bytes_per_sec > 0.0 {
                part.bytes_per_sec = rate.bytes_per_sec();
            }
        }
    }

    /// Counts a transmission from `begin` to `end`. Transmissions must come in order of time.
    #[inline(always)]
    pub fn send(&mut self, begin: Time, end: Time) {
        if end > self.end {
            cold_path();
            self.send_across(begin, end);
        } else {
            self.busy = self.busy + (end - begin);
        }
    }

    #[cold]
    fn send_across(&mut self, mut begin: Time, end: Time) {
        while end > self.end && self.current + 1 < self.parts.len() {
            if begin < self.end {
                self.busy = self.busy + (self.end - begin);
                begin = self.end;
            }
            self.parts[self.current].busy = self.busy;
            self.current += 1;
            (self.end, self.busy) = (self.parts[self.current].end, Duration::ZERO);
        }
        self.busy = self.busy + (end - begin);
    }

    /// The share of the capacity used, 0 to 1.
    pub fn share(&self) -> f64 {
        let (mut used, mut offered) = (0.0, 0.0);
        for (index, part) in self.parts.iter().enumerate() {
            let busy = if index == self.current {
                self.busy
            } else {
                part.busy
            };
            used += part.bytes_per_sec * busy.as_secs_f64();
            offered += part.bytes_per_sec * part.length.as_secs_f64();
        }
        used / offered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn what_is_under_way_at_an_end_counts_in_part() {
        // Busy from 50 to 250 ms and from 350 to 900 ms: within 100 to 500 ms, 150 + 150.
        let mut carried = Carried::new(&[(MS(0), Rate::from_mbps(1))], MS(100), MS(500));
        carried.send(Time::from_millis(50), Time::from_millis(250));
        carried.send(Time::from_millis(350), Time::from_millis(900));
        assert!((carried.share() - 0.75).abs() < 1e-12);
    }

    #[test]
    fn each_rate_counts_for_what_it_can_carry() {
        // 100 ms at 4 Mbit/s and 100 ms at 1 Mbit/s; a packet from 50 to 150 ms: (50 x 4 + 50 x 1) of 500.
        let rates = [(MS(0), Rate::from_mbps(4)), (MS(100), Rate::from_mbps(1))];
        let mut carried = Carried::new(&rates, MS(0), MS(200));
        carried.send(Time::from_millis(50), Time::from_millis(150));
        assert!((carried.share() - 0.5).abs() < 1e-12);
        carried.send(Time::from_millis(150), Time::from_millis(1000));
        assert!((carried.share() - 0.6).abs() < 1e-12);
    }

    #[test]
    fn a_link_that_is_always_sending_is_used_to_the_full() {
        let mut carried = Carried::new(&[(MS(0), Rate::from_mbps(3))], MS(7), MS(70_007));
        for packet in 0..30_000 {
            carried.send(
                Time::from_nanos(packet * 4_037_333),
                Time::from_nanos((packet + 1) * 4_037_333),
            );
        }
        assert_eq!(carried.share(), 1.0);
    }

    #[test]
    fn a_rate_that_is_set_counts_from_then_on() {
        // Always sending, 100 ms at 4 Mbit/s of the schedule, then 100 ms at 1 Mbit/s instead of its 8.
        let rates = [(MS(0), Rate::from_mbps(4)), (MS(150), Rate::from_mbps(8))];
        let mut carried = Carried::new(&rates, MS(0), MS(200));
        carried.send(Time::ZERO, Time::from_millis(100));
        carried.set_rate(Rate::from_mbps(1), Time::from_millis(100));
        carried.send(Time::from_millis(100), Time::from_millis(150));
        // 100 x 4 + 50 x 1 of 100 x 4 + 100 x 1.
        assert!((carried.share() - 0.9).abs() < 1e-12);
        carried.send(Time::from_millis(150), Time::from_millis(200));
        assert_eq!(carried.share(), 1.0);
    }
}
