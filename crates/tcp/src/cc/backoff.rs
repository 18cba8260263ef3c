//! Multiplicative decrease by a fixed share of the window, another on a mark with ABE (RFC 8511).

use super::{Signal, fraction};
use crate::config::{Abe, Config};

/// A share of the window, as a fraction, so that it is applied without rounding errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    pub numerator: u32,
    pub denominator: u32,
}

impl Share {
    pub const fn new(numerator: u32, denominator: u32) -> Self {
        Self {
            numerator,
            denominator,
        }
    }

    /// The nearest of a given denominator, which is neither nothing nor the whole.
    pub fn nearest(share: f64, denominator: u32) -> Self {
        let numerator = (share * f64::from(denominator)).round() as u32;
        Self::new(numerator.clamp(1, denominator - 1), denominator)
    }
}

/// What a loss-based congestion control keeps of its window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    /// On a loss or a timeout: beta.
    pub on_loss: Share,
    /// On a mark; as on a loss without ABE.
    pub on_mark: Share,
}

impl Backoff {
    /// The shares of an endpoint's options; `loss` and `mark` are those of the documents: the algorithm's, and RFC 8511's.
    pub fn new(config: &Config, loss: Share, mark: Share) -> Self {
        let on_loss = config
            .beta
            .map_or(loss, |beta| Share::nearest(beta, PRECISE));
        let on_mark = match config.abe {
            Abe::Off => on_loss,
            Abe::Recommended => mark,
            Abe::Keeps(share) => Share::nearest(share, PRECISE),
        };
        Self { on_loss, on_mark }
    }

    /// What is left of some segments, at least 2 (RFC 5681 §3.1).
    pub fn left(&self, signal: Signal, segments: u32) -> u32 {
        let share = match signal {
            Signal::EcnEcho => self.on_mark,
            Signal::Loss | Signal::Timeout => self.on_loss,
        };
        fraction(segments, share.numerator, share.denominator)
    }
}

/// The denominator of shares that a user gives: decimal fractions of three digits and 1024ths are exact.
const PRECISE: u32 = 1024 * 1000;

#[cfg(test)]
mod tests {
    use super::*;

    const LOSS: Share = Share::new(1, 2);
    const MARK: Share = Share::new(4, 5);

    fn left(beta: Option<f64>, abe: Abe, signal: Signal) -> u32 {
        let config = Config {
            beta,
            abe,
            ..Config::default()
        };
        Backoff::new(&config, LOSS, MARK).left(signal, 100)
    }

    /// RFC 8511 §3: another share for a mark only; a timeout is a loss.
    #[test]
    fn marks_have_a_share_of_their_own_only_with_abe() {
        assert_eq!(left(None, Abe::Off, Signal::EcnEcho), 50);
        assert_eq!(left(None, Abe::Recommended, Signal::EcnEcho), 80);
        assert_eq!(left(None, Abe::Keeps(0.7), Signal::EcnEcho), 70);
        assert_eq!(left(None, Abe::Keeps(0.7), Signal::Loss), 50);
        assert_eq!(left(None, Abe::Keeps(0.7), Signal::Timeout), 50);
    }

    #[test]
    fn a_given_beta_is_kept_on_a_loss_and_without_abe_on_a_mark() {
        assert_eq!(left(Some(0.85), Abe::Off, Signal::Loss), 85);
        assert_eq!(left(Some(0.85), Abe::Off, Signal::EcnEcho), 85);
        assert_eq!(left(Some(0.85), Abe::Recommended, Signal::EcnEcho), 80);
    }

    #[test]
    fn at_least_two_segments_are_left() {
        let few = Backoff::new(&Config::default(), LOSS, MARK).left(Signal::Loss, 3);
        assert_eq!(few, 2);
    }
}
