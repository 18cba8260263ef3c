//! The probability that a frame is received, by its mode, its length and the signal-to-noise ratio.
//!
//! OFDM: the bit error rate of the constellation with Gray coding in white noise, and the union bound of the Viterbi decoder
//! over the weight spectrum of the convolutional code (133, 171) and its punctured forms. This is the model of Pei and
//! Henderson, "Validation of OFDM error rate model in ns-3" (2010), after Miller, NIST (2003); the spectra are those of
//! Frenger, Orten and Ottosson, "Code-spread CDMA using maximum free distance low-rate convolutional codes" and Haccoun and
//! Bégin, IEEE Trans. Comm. 37 (1989). DSSS: the textbook error rates of DBPSK and DQPSK with a noise bandwidth of 22 MHz.
//! CCK: the union bounds over its code words of IEEE 802.15.2-2003.
//!
//! A station's SNR applies to 20 MHz and one stream. Twice the width, or twice the streams, at the same power halves it.

use libm::{erfc, exp, log1p, pow, sqrt};

use super::{Code, Dsss, Mode, Modulation};

/// A signal-to-noise ratio as a plain number: 10^(dB / 10).
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Snr(f64);

impl Snr {
    /// From decibels.
    pub fn from_db(db: f64) -> Self {
        Self(pow(10.0, db / 10.0))
    }

    /// The same signal, stronger or weaker.
    pub fn scaled(self, by: f64) -> Self {
        Self(self.0 * by)
    }

    /// Decibels.
    pub fn db(self) -> f64 {
        10.0 * libm::log10(self.0)
    }
}

/// The probability that all of so many bytes in this mode are received.
pub fn success(mode: Mode, snr: Snr, bytes: u32) -> f64 {
    exp(ln_success_per_byte(mode, snr) * f64::from(bytes))
}

/// The logarithm of the probability that a byte is received. That of a frame is its bytes times this.
pub fn ln_success_per_byte(mode: Mode, snr: Snr) -> f64 {
    let share = snr.0 * 20.0 / f64::from(mode.width().mhz()) / f64::from(mode.streams());
    let errors_per_bit = match mode {
        Mode::Dsss(dsss, _) => dsss_bit_errors(dsss, share),
        Mode::Ofdm(ofdm) => decoded(ofdm.constellation(), share),
        Mode::Ht(ht) => decoded(ht.constellation(), share),
        Mode::Vht(vht) => decoded(vht.constellation(), share),
    };
    8.0 * log1p(-errors_per_bit.min(1.0))
}

/// Bit errors before decoding, by the SNR of a subcarrier.
fn coded_bit_errors(modulation: Modulation, snr: f64) -> f64 {
    let (share, spread) = match modulation {
        Modulation::Bpsk => (1.0, 1.0),
        Modulation::Qpsk => (1.0, 2.0),
        Modulation::Qam16 => (3.0 / 4.0, 10.0),
        Modulation::Qam64 => (7.0 / 12.0, 42.0),
        Modulation::Qam256 => (15.0 / 32.0, 170.0),
    };
    share * 0.5 * erfc(sqrt(snr / spread))
}

/// The weight spectrum of a code: the free distance, the step between distances, and the information bit errors at each
/// distance.
const fn spectrum(code: Code) -> (i32, i32, &'static [f64]) {
    match code {
        Code::Half => (
            10,
            2,
            &[
                36.0,
                211.0,
                1404.0,
                11633.0,
                77433.0,
                502_690.0,
                3_322_763.0,
                21_292_910.0,
                134_365_911.0,
            ],
        ),
        Code::TwoThirds => (
            6,
            1,
            &[
                3.0,
                70.0,
                285.0,
                1276.0,
                6160.0,
                27128.0,
                117_019.0,
                498_860.0,
                2_103_891.0,
                8_784_123.0,
            ],
        ),
        Code::ThreeQuarters => (
            5,
            1,
            &[
                42.0,
                201.0,
                1492.0,
                10469.0,
                62935.0,
                379_644.0,
                2_253_373.0,
                13_073_811.0,
                75_152_755.0,
                428_005_675.0,
            ],
        ),
        Code::FiveSixths => (
            4,
            1,
            &[
                92.0,
                528.0,
                8694.0,
                79453.0,
                792_114.0,
                7_375_573.0,
                67_884_974.0,
                610_875_423.0,
                5_427_275_376.0,
                47_664_215_639.0,
            ],
        ),
    }
}

/// Bit errors after a Viterbi decoder with hard decisions: `1/(2k) · Σ c_d · D^d`, `D = sqrt(4p(1 - p))`.
fn decoded((modulation, code): (Modulation, Code), snr: f64) -> f64 {
    let p = coded_bit_errors(modulation, snr);
    let d = sqrt(4.0 * p * (1.0 - p));
    let (least, step, weights) = spectrum(code);
    let distances = (0..).map(|n| f64::from(least + step * n));
    let sum: f64 = weights
        .iter()
        .zip(distances)
        .map(|(weight, at)| weight * pow(d, at))
        .sum();
    (sum / (2.0 * f64::from(code.fraction().0))).min(1.0)
}

/// The tail of the normal distribution.
fn q(x: f64) -> f64 {
    0.5 * erfc(x / core::f64::consts::SQRT_2)
}

/// Bit errors of 802.11b. The noise bandwidth is 22 MHz, so that Eb/N0 is 22 times the SNR at 1 Mbit/s.
fn dsss_bit_errors(dsss: Dsss, snr: f64) -> f64 {
    let errors = match dsss {
        Dsss::R1 => 0.5 * exp(-(snr * 22.0).min(700.0)),
        Dsss::R2 => {
            // DQPSK with Gray coding: the approximation of Ferrari and Corazza (2004).
            let per_bit = snr * 22.0 / 2.0;
            let root2 = core::f64::consts::SQRT_2;
            let front = (root2 + 1.0) / sqrt(8.0 * core::f64::consts::PI * root2);
            front * exp(-((2.0 - root2) * per_bit).min(700.0)) / sqrt(per_bit.max(1e-9))
        }
        Dsss::R5_5 => {
            let symbol = 14.0 * q(sqrt(8.0 * snr)) + q(sqrt(16.0 * snr));
            symbol * 8.0 / 15.0
        }
        Dsss::R11 => {
            let symbol = 24.0 * q(sqrt(4.0 * snr))
                + 16.0 * q(sqrt(6.0 * snr))
                + 174.0 * q(sqrt(8.0 * snr))
                + 16.0 * q(sqrt(10.0 * snr))
                + 24.0 * q(sqrt(12.0 * snr))
                + q(sqrt(16.0 * snr));
            symbol * 128.0 / 255.0
        }
    };
    errors.min(0.5)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::phy::{Guard, Ht, Ofdm, Preamble, Width};

    /// The SNR in dB at which one in ten frames of 1500 bytes is lost.
    fn ten_percent(mode: Mode) -> f64 {
        let (mut low, mut high) = (-20.0, 60.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if success(mode, Snr::from_db(middle), 1500) < 0.9 {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    #[test]
    fn faster_modes_need_more_signal() {
        let needed: Vec<f64> = Ofdm::ALL.map(|rate| ten_percent(Mode::Ofdm(rate))).into();
        // 9 Mbit/s (BPSK 3/4) needs more than 12 Mbit/s (QPSK 1/2), as is known of this model and of real receivers.
        let without_9: Vec<f64> = [0, 2, 3, 4, 5, 6, 7].map(|n: usize| needed[n]).into();
        assert!(without_9.is_sorted(), "{needed:?}");
        let dsss = Dsss::ALL.map(|rate| ten_percent(Mode::Dsss(rate, Preamble::Long)));
        assert!(dsss.is_sorted(), "{dsss:?}");
    }

    #[test]
    fn bpsk_at_rate_one_half_agrees_with_the_sum_by_hand() {
        // erfc(1) = 0.157299, so p = 0.0786496 at an SNR of 1 and D² = 4 · 0.0786496 · 0.9213504 = 0.289855.
        // D^10 = 0.289855^5 = 0.0020460, and so on in steps of D²:
        // 36 · 2.0460e-3 + 211 · 5.9305e-4 + 1404 · 1.7190e-4 + 11633 · 4.9826e-5 + … is far above one.
        // Every bit is counted as wrong.
        assert_eq!(decoded((Modulation::Bpsk, Code::Half), 1.0), 1.0);
        // At an SNR of 4, erfc(2) = 0.0046777: p = 0.00233887, D² = 0.00933359, D^10 = 7.0834e-11.
        // Half of (36 · 7.0834e-11 + 211 · 6.6114e-13 + 1404 · 6.171e-15 + …) = half of 2.6985e-9.
        let pe = decoded((Modulation::Bpsk, Code::Half), 4.0);
        assert!((pe / 1.3493e-9 - 1.0).abs() < 1e-3, "{pe:e}");
    }

    #[test]
    fn dbpsk_is_the_textbook_exponential() {
        // Eb/N0 = 22 · 0.3 = 6.6: exp(-6.6) / 2 = 6.802e-4; for 8 bits: 8 · ln(1 - 6.802e-4) = -5.443e-3.
        let ln = ln_success_per_byte(Mode::Dsss(Dsss::R1, Preamble::Long), Snr(0.3));
        assert!((ln / -5.4433e-3 - 1.0).abs() < 1e-3, "{ln}");
    }

    #[test]
    fn twice_the_width_or_the_streams_costs_three_decibels() {
        let ht = |streams, width| {
            ten_percent(Mode::Ht(
                Ht::new(4, streams, width, Guard::Long).expect("exists"),
            ))
        };
        let one = ht(1, Width::Mhz20);
        assert!((ht(2, Width::Mhz20) - one - 3.0103).abs() < 1e-3);
        assert!((ht(1, Width::Mhz40) - one - 3.0103).abs() < 1e-3);
    }

    #[test]
    fn more_signal_never_hurts_and_longer_frames_never_gain() {
        for rate in Ofdm::ALL {
            let mode = Mode::Ofdm(rate);
            let curve: Vec<f64> = (-10..40)
                .map(|db| success(mode, Snr::from_db(f64::from(db)), 1500))
                .collect();
            assert!(curve.is_sorted(), "{rate:?}: {curve:?}");
            assert!(curve[0] < 1e-9 && curve[49] > 1.0 - 1e-9);
            assert!(
                success(mode, Snr::from_db(10.0), 100) >= success(mode, Snr::from_db(10.0), 1500)
            );
        }
    }
}
