//! Connections that are aborted: the reset that tells the peer, those that arrive, and those that answer segments to a
//! closed end.

use sojourn_units::Time;

use super::{Endpoint, Phase};
use crate::segment::{Flags, Segment};
use crate::seq::Seq;

/// A reset that is to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reset {
    /// Because the application aborts the connection.
    Abort,
    /// To a segment that arrived at a closed end: the sequence number, and the acknowledgement if there is one.
    Answer(Seq, Option<Seq>),
}

impl Endpoint {
    /// Aborts the connection (RFC 9293 §3.10.5): nothing more is sent but a reset, and none before the handshake.
    pub fn abort(&mut self) {
        let is_open = !matches!(self.phase, Phase::Listen | Phase::SynSent | Phase::Closed);
        self.end(is_open.then_some(Reset::Abort));
    }

    /// True once the connection is aborted, here or by the peer.
    pub fn is_aborted(&self) -> bool {
        self.phase == Phase::Closed
    }

    fn end(&mut self, reset: Option<Reset>) {
        self.phase = Phase::Closed;
        self.syn_alarm = Time::MAX;
        self.syn_due = false;
        self.reset = reset;
        self.receiver.owe_nothing();
        self.look_at_halves();
    }

    /// Takes a SYN or a reset that arrives on an open connection. A reset that is not exact is challenged, so that the peer
    /// sends one that is (RFC 5961 §3.2).
    #[cold]
    #[inline(never)]
    pub(super) fn on_setup_or_reset(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::SYN) {
            self.receiver.acknowledge_now(); // our acknowledgement of the SYN-ACK was lost
        } else if self.receiver.expects_reset(segment.seq) {
            self.end(None);
        } else if self.receiver.is_in_window(segment.seq) {
            self.receiver.acknowledge_now();
        }
    }

    /// Takes a reset that arrives during the handshake. After a SYN it must acknowledge that (RFC 9293 §3.10.7.3).
    pub(super) fn on_refusal(&mut self, segment: &Segment) {
        let answers = segment.flags.contains(Flags::ACK) && segment.ack == self.iss + 1;
        if answers || self.phase == Phase::SynReceived {
            self.failed = true;
            self.end(None);
        }
    }

    /// Takes a segment that arrives at a closed end: all but a reset are answered by one (RFC 9293 §3.10.7.1).
    pub(super) fn answer_closed(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        self.reset = Some(if segment.flags.contains(Flags::ACK) {
            Reset::Answer(segment.ack, None)
        } else {
            Reset::Answer(Seq(0), Some(segment.end()))
        });
    }

    /// The reset that is due. One that answers has no options, as Linux's.
    pub(super) fn poll_reset(&mut self, segment: &mut Segment, now: Time) -> Option<bool> {
        match self.reset.take()? {
            Reset::Abort => {
                self.begin_acknowledgement(segment);
                segment.flags = Flags::RST;
                self.complete(segment, None, now)
            }
            Reset::Answer(seq, ack) => {
                *segment = Segment {
                    seq,
                    ack: ack.unwrap_or_default(),
                    flags: Flags::RST.with_if(Flags::ACK, ack.is_some()),
                    ..Segment::default()
                };
                Some(false)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::by_name;
    use crate::config::Config;
    use crate::ecn::Arrival;

    /// Both ends of a connection, the first with data without end, and the segments that it has sent.
    fn sending() -> ([Endpoint; 2], Vec<Segment>) {
        let reno = &by_name("reno");
        let mut ends = [
            Endpoint::connect(Config::default(), reno, Seq(1000)),
            Endpoint::listen(Config::default(), reno, Seq(2000)),
        ];
        for turn in 0..3 {
            let sent = polled(&mut ends[turn % 2]);
            sent.iter()
                .for_each(|segment| arrive(&mut ends[1 - turn % 2], segment));
        }
        ends[0].write(crate::UNLIMITED);
        let flight = polled(&mut ends[0]);
        assert!(flight.len() > 3);
        (ends, flight)
    }

    fn polled(end: &mut Endpoint) -> Vec<Segment> {
        std::iter::from_fn(|| Some(end.poll(Time::ZERO)?.segment)).collect()
    }

    fn arrive(end: &mut Endpoint, segment: &Segment) {
        end.on_segment(segment, Arrival::NotEct, Time::ZERO);
    }

    /// RFC 9293 §3.10.5: after ABORT a reset with SND.NXT leaves, and nothing else; no timer runs. The peer takes the data on
    /// its way, then the reset.
    #[test]
    fn an_abort_sends_a_reset_and_no_more() {
        let ([mut sender, mut receiver], flight) = sending();
        sender.abort();
        let sent = polled(&mut sender);
        let [reset] = sent.as_slice() else {
            panic!("{sent:?}")
        };
        assert!(reset.flags.contains(Flags::RST.with(Flags::ACK)));
        assert_eq!(
            (reset.seq, reset.header_bytes()),
            (flight[flight.len() - 1].end(), 52)
        );
        assert_eq!(sender.next_timer(), None);
        flight.iter().for_each(|data| arrive(&mut receiver, data));
        let bytes = flight.iter().map(|data| u64::from(data.len)).sum();
        assert_eq!(receiver.received(), bytes);
        arrive(&mut receiver, reset);
        assert!(receiver.is_aborted() && polled(&mut receiver).is_empty());
        assert_eq!((receiver.next_timer(), receiver.received()), (None, bytes));
    }

    /// RFC 9293 §3.10.7.1: an acknowledgement that arrives at a closed end is answered by a reset with its number, without
    /// options; a reset is not answered.
    #[test]
    fn a_closed_end_answers_by_resets() {
        let ([mut sender, mut receiver], flight) = sending();
        sender.abort();
        polled(&mut sender);
        arrive(&mut receiver, &flight[0]);
        arrive(&mut receiver, &flight[1]);
        let acknowledgement = *polled(&mut receiver).last().expect("an acknowledgement");
        arrive(&mut sender, &acknowledgement);
        let sent = polled(&mut sender);
        let [reset] = sent.as_slice() else {
            panic!("{sent:?}")
        };
        assert_eq!((reset.seq, reset.flags), (acknowledgement.ack, Flags::RST));
        assert_eq!(reset.header_bytes(), 40);
        arrive(&mut receiver, reset);
        assert!(receiver.is_aborted());
        arrive(&mut sender, reset);
        assert!(polled(&mut sender).is_empty());
    }

    /// RFC 5961 §3.2: a reset within the window that is not exact is challenged by an acknowledgement, one outside it is
    /// ignored. As in Linux, the end of what was reported by SACK is exact, too.
    #[test]
    fn only_an_exact_reset_ends_a_connection() {
        let ([mut sender, mut receiver], flight) = sending();
        sender.abort();
        let reset = polled(&mut sender)[0];
        polled(&mut receiver);
        let old = Segment {
            seq: Seq(1000),
            ..reset
        };
        arrive(&mut receiver, &old);
        assert!(!receiver.is_aborted() && polled(&mut receiver).is_empty());
        arrive(&mut receiver, &reset);
        assert!(!receiver.is_aborted());
        let challenge = polled(&mut receiver);
        assert_eq!(challenge.len(), 1);
        assert_eq!(challenge[0].ack, flight[0].seq);
        arrive(&mut receiver, flight.last().expect("data"));
        arrive(&mut receiver, &reset);
        assert!(receiver.is_aborted());
    }

    /// A SYN-ACK to an end that has given up is answered by a reset, which ends the handshake.
    #[test]
    fn an_abort_during_the_handshake_is_silent_at_first() {
        let reno = &by_name("reno");
        let mut client = Endpoint::connect(Config::default(), reno, Seq(1000));
        let mut server = Endpoint::listen(Config::default(), reno, Seq(2000));
        polled(&mut client)
            .iter()
            .for_each(|syn| arrive(&mut server, syn));
        client.abort();
        assert!(polled(&mut client).is_empty());
        polled(&mut server)
            .iter()
            .for_each(|answer| arrive(&mut client, answer));
        let sent = polled(&mut client);
        assert_eq!((sent.len(), sent[0].flags), (1, Flags::RST));
        arrive(&mut server, &sent[0]);
        assert!(server.is_aborted() && server.has_failed());
        assert_eq!(server.next_timer(), None);
    }
}
