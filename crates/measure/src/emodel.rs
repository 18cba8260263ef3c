//! The E-model: the voice quality of a call, from its delay and loss (ITU-T G.107, all other parameters at their
//! defaults).

use sojourn_units::Duration;

/// Basic signal-to-noise ratio with the default levels and noises (G.107 §7.2), in dB.
const RO: f64 = 94.7688;
/// Simultaneous impairment with the default levels (G.107 §7.3).
const IS: f64 = 1.4136;
/// Circuit noise referred to the 0 dBr point with the default levels (G.107 §7.2), in dBm0p.
const NO: f64 = -61.1797;
/// Receive loudness rating, talker echo loudness rating and weighted echo path loss: the defaults, in dB
/// (G.107 Table 2).
const RLR: f64 = 2.0;
const TELR: f64 = 65.0;
const WEPL: f64 = 110.0;

/// A codec's parameters in the E-model (ITU-T G.113 Appendix I).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Equipment {
    /// `Ie`: the loss of rating without packet loss.
    pub impairment: f64,
    /// `Bpl`: the packet loss, in percent, that costs half of the rating that packet loss can cost.
    pub loss_robustness: f64,
}

/// The rating factor R of a call with this one-way delay and this share of packets lost at random (`BurstR` = 1).
pub fn rating(delay: Duration, loss: f64, codec: Equipment) -> f64 {
    RO - IS - delay_impairment(delay.as_millis_f64()) - loss_impairment(loss, codec)
}

/// Mean opinion score, from 1 to 4.5, of a rating factor (G.107 Annex B). The Annex's polynomial falls below 1, the lowest
/// opinion that there is, between 0 and 6.5.
pub fn opinion_score(rating: f64) -> f64 {
    if rating <= 0.0 {
        1.0
    } else if rating >= 100.0 {
        4.5
    } else {
        let score = 1.0 + 0.035 * rating + 7e-6 * rating * (rating - 60.0) * (100.0 - rating);
        score.max(1.0)
    }
}

/// `Id` for a call whose talker's and listener's path both take `t` milliseconds one way (G.107 §7.4).
fn delay_impairment(t: f64) -> f64 {
    // Talker echo.
    let terv = TELR - 40.0 * libm::log10((1.0 + t / 10.0) / (1.0 + t / 150.0))
        + 6.0 * libm::exp(-0.3 * t * t);
    let re = 80.0 + 2.5 * (terv - 14.0);
    let half = (-1.5 * (NO - RLR) - re) / 2.0;
    let talker = (half + (half * half + 100.0).sqrt() - 1.0) * (1.0 - libm::exp(-t));
    // Listener echo, on a round trip.
    let rle = 10.5 * (WEPL + 7.0) * libm::pow(2.0 * t + 1.0, -0.25);
    let half = (RO - rle) / 2.0;
    let listener = half + (half * half + 169.0).sqrt();
    // Long delay, even without echo.
    let x = libm::log2(t / 100.0);
    let absolute = if t <= 100.0 {
        0.0
    } else {
        let root = |y: f64| libm::pow(1.0 + y * y * (y * y * (y * y)), 1.0 / 6.0);
        25.0 * (root(x) - 3.0 * root(x / 3.0) + 2.0)
    };
    talker + listener + absolute
}

/// `Ie,eff` (G.107 §7.5) for a share of packets lost.
fn loss_impairment(loss: f64, codec: Equipment) -> f64 {
    let (ie, bpl) = (codec.impairment, codec.loss_robustness);
    let percent = 100.0 * loss;
    ie + (95.0 - ie) * percent / (percent + bpl)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The polynomial of Annex B is 0.99 at 3 and 1 again at about 6.5.
    #[test]
    fn no_opinion_is_below_one() {
        for rating in [-1.0, 0.0, 1.0, 3.0, 6.0] {
            assert_eq!(opinion_score(rating), 1.0, "{rating}");
        }
        assert!(opinion_score(7.0) > 1.0);
    }

    const fn equipment(impairment: f64, loss_robustness: f64) -> Equipment {
        Equipment {
            impairment,
            loss_robustness,
        }
    }

    /// G.113 Tables I.1 and I.2.
    const G711: Equipment = equipment(0.0, 4.3);
    const G711_PLC: Equipment = equipment(0.0, 25.1);
    const G729A: Equipment = equipment(11.0, 19.0);

    fn score(ms: u64, loss: f64, codec: Equipment) -> f64 {
        opinion_score(rating(Duration::from_millis(ms), loss, codec))
    }

    /// Reference points: the scores of Flent's implementation of G.107.
    #[test]
    fn delay_and_loss_cost_what_the_recommendation_says() {
        let delays = [
            (0, 4.41),
            (50, 4.38),
            (100, 4.35),
            (150, 4.33),
            (200, 4.22),
            (300, 3.72),
            (400, 3.22),
            (600, 2.55),
        ];
        for (ms, expected) in delays {
            let got = score(ms, 0.0, G711);
            assert!((got - expected).abs() <= 0.005, "{ms} ms: {got}");
        }
        for (loss, expected) in [(0.01, 3.83), (0.05, 2.17)] {
            let got = score(0, loss, G711);
            assert!((got - expected).abs() <= 0.005, "{loss}: {got}");
        }
    }

    /// G.107 Table 1: all defaults give R = 93.2.
    #[test]
    fn a_perfect_network_gives_the_default_rating() {
        let got = rating(Duration::ZERO, 0.0, G711);
        assert!((got - 93.2).abs() < 0.05, "{got}");
    }

    /// Without loss a G.729A call is worse than G.711 by its Ie of 11 (G.113 Table I.1); losses hurt it less.
    #[test]
    fn codecs_differ_in_impairment_and_robustness() {
        let at = |loss, codec| rating(Duration::ZERO, loss, codec);
        assert!((at(0.0, G711) - at(0.0, G729A) - 11.0).abs() < 1e-9);
        // 4.3 % lost: 95 · 4.3/8.6 = 47.5 for G.711.
        assert!((at(0.0, G711) - at(0.043, G711) - 47.5).abs() < 1e-9);
        assert!(at(0.043, G711_PLC) > at(0.043, G711));
    }

    #[test]
    fn scores_stay_on_the_scale() {
        assert_eq!((opinion_score(-5.0), opinion_score(120.0)), (1.0, 4.5));
    }
}
