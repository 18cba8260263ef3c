//! Loss detection by RACK (RFC 8985 §6.2), without SACK (RFC 6582) and after a timeout; and its undo.

use sojourn_units::{Duration, Time};

use super::{Scoreboard, is_before};
use crate::segment::{MAX_SACK_BLOCKS, SackBlock};
use crate::seq::Seq;

/// RACK's view of the most recently sent segment known to be delivered (RFC 8985 §5.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RackPoint {
    pub(super) sent_at: Time,
    pub(super) end: Seq,
    pub(super) rtt: Duration,
}

/// A segment that was judged lost, for whoever asks: see `Scoreboard::note_losses`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lost {
    /// Its first sequence number.
    pub seq: Seq,
    /// Why.
    pub cause: LossCause,
}

/// What shows that a segment is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossCause {
    /// Later segments were delivered: duplicate acknowledgements, or SACK (RFC 6675).
    Reordering,
    /// It is overdue (RACK).
    Time,
    /// The retransmission timer expired.
    Timeout,
}

/// The result of loss detection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Segments newly judged lost.
    pub segments: u32,
    /// One of them was a retransmission.
    pub resent: bool,
    /// When to judge the segments still in doubt.
    pub judge_in: Option<Duration>,
}

impl Scoreboard {
    /// RFC 8985 §6.2 step 5 (RACK_detect_loss): a segment is lost if it was sent before the segment delivered last and
    /// is overdue by the reordering window.
    pub fn detect_losses(&mut self, now: Time, reordering_window: Duration) -> Losses {
        self.forget_acknowledged();
        let mut losses = Losses::default();
        let patience = self.rack.rtt + reordering_window;
        let mut contiguous = true;
        let mut index = self.judged;
        while is_before(index, self.end) {
            let segment = *self.at(index);
            if !segment.ever_resent {
                if !is_sent_after(
                    self.rack.sent_at,
                    self.rack.end,
                    segment.sent_at,
                    segment.end(),
                ) {
                    break;
                }
                if !segment.sacked && !segment.lost {
                    if segment.sent_at + patience <= now {
                        self.mark_lost(index, LossCause::Time, &mut losses);
                    } else {
                        contiguous = false;
                        losses.wait(segment.sent_at + patience - now);
                    }
                }
            }
            index = index.wrapping_add(1);
            if contiguous {
                self.judged = index;
            }
        }
        while let Some(&(index, sent_at)) = self.resends.front() {
            if sent_at > self.rack.sent_at {
                break; // all after it were sent later still
            }
            let in_ring = !is_before(index, self.first) && is_before(index, self.end);
            let segment = *self.at(index);
            let pending = !segment.sacked && (segment.resent || !segment.lost);
            if in_ring && pending && segment.sent_at == sent_at {
                if !is_sent_after(self.rack.sent_at, self.rack.end, sent_at, segment.end()) {
                    break;
                }
                if sent_at + patience > now {
                    losses.wait(sent_at + patience - now);
                    break;
                }
                self.mark_lost(index, LossCause::Time, &mut losses);
            }
            self.resends.pop_front();
        }
        losses
    }

    /// As [`Scoreboard::detect_losses`], if an acknowledgement has brought new information since the last call.
    pub fn detect_losses_if_advanced(&mut self, now: Time, reordering_window: Duration) -> Losses {
        if std::mem::replace(&mut self.rack_advanced, false) {
            self.detect_losses(now, reordering_window)
        } else {
            Losses::default()
        }
    }

    /// RFC 6675 §4 (IsLost): a segment is lost if `threshold` segments beyond it are reported by SACK. Retransmissions
    /// are not judged.
    pub fn detect_losses_by_sacks(&mut self, threshold: u32) -> Losses {
        let mut losses = Losses::default();
        let Some(highest) = self.highest_sacked else {
            return losses;
        };
        self.forget_acknowledged();
        let (mut bound, mut beyond) = (highest, 1);
        while beyond < threshold && is_before(self.judged, bound) {
            bound = bound.wrapping_sub(1);
            beyond += u32::from(self.at(bound).sacked);
        }
        while is_before(self.judged, bound) {
            let segment = *self.at(self.judged);
            if !segment.sacked && !segment.lost && !segment.ever_resent {
                self.mark_lost(self.judged, LossCause::Reordering, &mut losses);
            }
            self.judged = self.judged.wrapping_add(1);
        }
        losses
    }

    /// Without SACK: the oldest segment is lost (RFC 6582 §3.2).
    pub fn mark_first_lost(&mut self) -> Losses {
        let mut losses = Losses::default();
        if !self.is_empty() && !self.at(self.first).lost {
            self.mark_lost(self.first, LossCause::Reordering, &mut losses);
        }
        losses
    }

    fn mark_lost(&mut self, index: u32, cause: LossCause, losses: &mut Losses) {
        let segment = *self.at(index);
        if let Some(noted) = &mut self.noted {
            noted.push(Lost {
                seq: segment.seq,
                cause,
            });
        }
        if let Some(untold) = &mut self.untold {
            untold.push(self.stamps[index as usize & (self.stamps.len() - 1)]);
        }
        losses.segments += 1;
        losses.resent |= segment.resent;
        self.uncount(segment);
        self.lost += 1;
        self.absent = self.absent.wrapping_add(1);
        self.waiting += 1;
        let marked = self.at_mut(index);
        marked.lost = true;
        marked.resent = false;
        if is_before(index, self.resend_from) {
            self.resend_from = index;
        }
    }

    /// A retransmission timeout: every outstanding segment is lost (RFC 6298 §5.4, RFC 8985 §6.3), except those sent
    /// within `recent` (with RACK its RTT). `forget_sacks` if the receiver has reneged.
    pub fn mark_all_lost(&mut self, now: Time, recent: Duration, forget_sacks: bool) {
        let mut losses = Losses::default();
        for offset in 0..self.outstanding() {
            let index = self.first.wrapping_add(offset);
            if forget_sacks && self.at(index).sacked {
                self.at_mut(index).sacked = false;
                self.sacked -= 1;
                self.absent = self.absent.wrapping_sub(1);
            }
            let segment = self.at(index);
            if !segment.sacked && (offset == 0 || segment.sent_at + recent <= now) {
                self.mark_lost(index, LossCause::Timeout, &mut losses);
            }
        }
        if forget_sacks {
            self.highest_sacked = None;
        }
        self.known = [SackBlock::NONE; MAX_SACK_BLOCKS];
        self.resend_from = self.first;
    }

    /// Undoes all loss marks.
    pub fn undo_losses(&mut self) {
        for offset in 0..self.outstanding() {
            let segment = self.at_mut(self.first.wrapping_add(offset));
            segment.lost = false;
        }
        self.absent = self.absent.wrapping_sub(self.lost);
        self.lost = 0;
        self.waiting = 0;
    }

    /// The RTT of the delivery that RACK used last.
    pub const fn rack_rtt(&self) -> Duration {
        self.rack.rtt
    }
}

impl Losses {
    fn wait(&mut self, span: Duration) {
        self.judge_in = Some(self.judge_in.map_or(span, |longest| longest.max(span)));
    }
}

/// RFC 8985 §6.2 (RACK_sent_after): sent later, or at the same time and higher in sequence.
pub(super) fn is_sent_after(at: Time, end: Seq, other_at: Time, other_end: Seq) -> bool {
    at > other_at || (at == other_at && end.after(other_end))
}
