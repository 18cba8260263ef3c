//! The send buffers that an application fills ahead of transmission. Bursts are cut from them.
//!
//! The application writes when less than [`UNSENT`] / 2 is unsent, until [`UNSENT`] bytes are, as with Linux's
//! `tcp_notsent_lowat`. A write first fills up the last buffer, if buffers have become longer since, and then fills
//! others. The lengths of writes and buffers were observed on kernels 6.1 and 7.3.

use std::collections::VecDeque;

/// The largest send buffer: 64 KiB less the largest headers.
const MAX_BYTES: u32 = 65_535 - 320;
/// Bytes not sent with which the application stops writing: what hosts of the Linux backend have with up to 64 flows.
const UNSENT: u32 = 256 << 10;

/// A filled buffer.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    /// Its length in segments.
    segments: u32,
    /// The application's write ends with it.
    ends_write: bool,
}

/// The buffers that wait behind the current one.
#[derive(Default, Debug)]
pub(super) struct Buffers {
    waiting: VecDeque<Buffer>,
    /// The write ends with the current buffer.
    ends_write: bool,
    has_begun: bool,
}

impl Buffers {
    /// Begins the next buffer and returns its length. `whole` is that of buffers filled now, in segments of `mss` bytes.
    /// `at_once` segments leave while the first write goes on, and the first buffer is filled up again.
    pub(super) fn begin(&mut self, whole: u32, mss: u32, at_once: u32) -> u32 {
        let unsent: u32 = self.waiting.iter().map(|buffer| buffer.segments).sum();
        if 2 * unsent * mss < UNSENT {
            self.write(whole, UNSENT.div_ceil(mss), unsent);
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            if let Some(first) = self.waiting.front_mut() {
                first.segments += at_once;
            }
        }
        let next = self.waiting.pop_front();
        self.ends_write = next.is_some_and(|buffer| buffer.ends_write);
        next.map_or(whole, |buffer| buffer.segments)
    }

    /// True if the application's write ends with the current buffer; its last segment carries PSH.
    pub(super) const fn ends_write(&self) -> bool {
        self.ends_write
    }

    /// Fills buffers of `whole` segments until `most` segments wait, of which there are `unsent` now.
    fn write(&mut self, whole: u32, most: u32, mut unsent: u32) {
        if let Some(last) = self.waiting.back_mut() {
            if last.segments < whole {
                unsent += whole - last.segments;
                *last = Buffer {
                    segments: whole,
                    ends_write: false,
                };
            }
        }
        while unsent < most {
            unsent += whole;
            self.waiting.push_back(Buffer {
                segments: whole,
                ends_write: false,
            });
        }
        if let Some(last) = self.waiting.back_mut() {
            last.ends_write = true;
        }
    }
}

/// The length of a buffer filled now, in segments of `mss` bytes: it holds at most half of the largest window that the
/// peer has offered (Linux's tcp_bound_to_half_wnd).
pub(super) fn whole(largest_offer: u32, mss: u32) -> u32 {
    (MAX_BYTES.min(largest_offer / 2) / mss).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lengths of the next buffers and which of them end a write.
    fn next(buffers: &mut Buffers, whole: u32, count: usize) -> Vec<(u32, bool)> {
        (0..count)
            .map(|_| (buffers.begin(whole, 1448, 10), buffers.ends_write()))
            .collect()
    }

    /// Observed on kernel 6.1: the first write is of 208 segments, 22 in a buffer while the window is that of the SYN. The
    /// second fills up the last buffer with 23 segments and fills two of 45. Further ones fill three.
    #[test]
    fn a_write_fills_up_the_last_buffer_and_then_others() {
        let mut buffers = Buffers::default();
        let mut lengths = next(&mut buffers, 22, 5);
        lengths.extend(next(&mut buffers, 45, 9));
        let filled: Vec<u32> = lengths.iter().map(|length| length.0).collect();
        assert_eq!(
            filled,
            [32, 22, 22, 22, 22, 22, 22, 22, 45, 45, 45, 45, 45, 45]
        );
        let ends: Vec<usize> = (0..14).filter(|at| lengths[*at].1).collect();
        assert_eq!(ends, [10, 13], "after 321 and 456 segments");
    }

    /// Observed on kernel 7.3: the first write is of 235 segments, and further ones of 135.
    #[test]
    fn with_a_large_window_buffers_hold_45_segments() {
        let mut buffers = Buffers::default();
        let lengths = next(&mut buffers, 45, 11);
        let filled: Vec<u32> = lengths.iter().map(|length| length.0).collect();
        assert_eq!(filled, [55, 45, 45, 45, 45, 45, 45, 45, 45, 45, 45]);
        let ends: Vec<usize> = (0..11).filter(|at| lengths[*at].1).collect();
        assert_eq!(ends, [4, 7, 10]);
    }

    #[test]
    fn a_buffer_is_at_most_half_of_the_largest_window() {
        assert_eq!(whole(65_535, 1448), 22);
        assert_eq!(whole(3 << 20, 1448), 45);
        assert_eq!(whole(20_000, 1000), 10);
        assert_eq!(whole(1000, 1448), 1);
    }
}
