//! The sending half of an end, of which little is kept until there is something to send: most ends only receive.

use sojourn_units::{Duration, Time};

use crate::config::Config;
use crate::receiver::Estimates;
use crate::rtt::{INITIAL_RTO, smoothed_first};
use crate::segment::Segment;
use crate::sender::{Acknowledged, Offers, Rest, Sender};
use crate::seq::Seq;

/// The sending half.
pub(super) enum Half {
    /// There was nothing to send yet.
    Resting(Resting),
    /// There was.
    Sending(Box<Sender>),
}

/// What is known before there is anything to send, without a congestion control that is to be told of the handshake.
pub(super) struct Resting {
    /// The number of the first data.
    first: Seq,
    offers: Offers,
    /// What the handshake told, once it is over.
    handshake: Option<Handshake>,
}

/// What the handshake told.
#[derive(Clone, Copy)]
struct Handshake {
    /// Its end.
    at: Time,
    /// Its round trip; [`Duration::MAX`] if that is not known.
    rtt: Duration,
    /// The window that the peer offered.
    window: u32,
    /// The retransmission timeout that follows.
    timeout: Duration,
    /// The round trip is a sample that was not taken.
    has_sample: bool,
}

impl Handshake {
    fn rtt(&self) -> Option<Duration> {
        Some(self.rtt).filter(|rtt| *rtt != Duration::MAX)
    }
}

impl Resting {
    /// Before the handshake. `iss` is the number of the SYN.
    pub(super) const fn new(config: &Config, iss: Seq) -> Self {
        let first = Seq(iss.0.wrapping_add(1));
        Self {
            first,
            offers: Offers::none(config.mss, first),
            handshake: None,
        }
    }

    /// As [`Sender::on_handshake`].
    pub(super) fn on_handshake(
        &mut self,
        rtt: Option<Duration>,
        window: u32,
        now: Time,
        config: &Config,
    ) {
        let mut estimator = Sender::estimator(config);
        match rtt {
            Some(rtt) => estimator.sample(rtt, now, self.first, self.first),
            None => estimator.handshake_gave_none(),
        }
        self.handshake = Some(Handshake {
            at: now,
            rtt: rtt.unwrap_or(Duration::MAX),
            window,
            timeout: estimator.rto(),
            has_sample: rtt.is_some(),
        });
        self.offers.begin(self.first, window);
    }

    /// Brings a new sender to where this is.
    pub(super) fn hand_over(&self, sender: &mut Sender) {
        let Some(handshake) = self.handshake else {
            return;
        };
        sender.on_handshake(handshake.rtt(), handshake.window, handshake.at);
        sender.continue_from(self.offers, handshake.has_sample);
    }

    fn take_rtt_sample(&mut self) -> Option<Duration> {
        let handshake = self.handshake.as_mut()?;
        let is_new = std::mem::take(&mut handshake.has_sample);
        handshake.rtt().filter(|_| is_new)
    }

    /// As [`Sender::on_ack`], of an acknowledgement without SACK blocks.
    pub(super) fn on_ack(&mut self, segment: &Segment) -> Option<Duration> {
        if segment.ack == self.first {
            self.offers.take(segment, self.offers.is_raised_by(segment));
        }
        self.take_rtt_sample()
    }
}

impl Half {
    /// As [`Sender::rest`].
    #[inline(always)]
    pub(super) fn rest(&self) -> Rest {
        match self {
            Self::Resting(_) => Rest::Full,
            Self::Sending(sender) => sender.rest(),
        }
    }

    /// As [`Sender::acknowledged`].
    #[inline(always)]
    pub(super) fn acknowledged(&self) -> Acknowledged {
        match self {
            Self::Resting(resting) => resting.offers.acknowledged(resting.first),
            Self::Sending(sender) => sender.acknowledged(),
        }
    }

    /// SND.NXT.
    #[inline(always)]
    pub(super) const fn next_seq(&self) -> Seq {
        match self {
            Self::Resting(resting) => resting.first,
            Self::Sending(sender) => sender.next_seq(),
        }
    }

    /// As [`Sender::due`].
    #[inline(always)]
    pub(super) fn due(&self) -> Time {
        match self {
            Self::Resting(_) => Time::MAX,
            Self::Sending(sender) => sender.due(),
        }
    }

    /// As [`Sender::take_rtt_sample`].
    pub(super) fn take_rtt_sample(&mut self) -> Option<Duration> {
        match self {
            Self::Resting(resting) => resting.take_rtt_sample(),
            Self::Sending(sender) => sender.take_rtt_sample(),
        }
    }

    /// The sender, if there is one.
    #[inline(always)]
    pub(super) fn sender(&self) -> Option<&Sender> {
        match self {
            Self::Resting(_) => None,
            Self::Sending(sender) => Some(sender),
        }
    }

    /// As [`Half::sender`].
    #[inline(always)]
    pub(super) fn sender_mut(&mut self) -> Option<&mut Sender> {
        match self {
            Self::Resting(_) => None,
            Self::Sending(sender) => Some(sender),
        }
    }
}

impl Estimates for Half {
    #[inline(always)]
    fn timeout(&self) -> Duration {
        match self {
            Self::Resting(resting) => {
                (resting.handshake).map_or(INITIAL_RTO, |handshake| handshake.timeout)
            }
            Self::Sending(sender) => sender.timeout(),
        }
    }

    #[inline(always)]
    fn smoothed_rtt(&self) -> Option<Duration> {
        match self {
            Self::Resting(resting) => resting.handshake?.rtt().map(smoothed_first),
            Self::Sending(sender) => sender.smoothed_rtt(),
        }
    }
}
