//! Impairments: what happens to packets on a wire, as if by a bad medium: loss, jitter, reordering, duplication, corruption
//! and a delay that follows a trace.

use alloc::format;
use alloc::vec::Vec;

use sojourn_units::{Duration, Time};

use crate::path::{Given, PathError};
use crate::random::{Stream, seed};

/// What a wire does to packets. What is not set costs nothing, and each impairment draws from a random stream of its own.
///
/// A packet is first lost or not, then damaged or not, then duplicated or not, and then delayed.
///
/// ```
/// use sojourn_path::{Impair, Path, Way};
///
/// let bad = Impair::new().loss(0.01).jitter("3 ms");
/// let path = Path::<Vec<u8>>::new("20 Mbit/s", "40 ms")?.impair(Way::Down, bad)?.build();
/// # Ok::<(), sojourn_path::PathError>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Impair {
    /// Which packets are lost.
    pub loss: Option<Loss>,
    /// How the delay of packets varies.
    pub jitter: Option<Jitter>,
    /// Which packets overtake others.
    pub reorder: Option<Reorder>,
    /// The probability that a packet arrives twice. The copy arrives right behind it.
    pub duplicate: f64,
    /// The probability that a packet is damaged. It travels on, and the receiver drops it.
    pub corrupt: f64,
    /// True: damaged packets are delivered, as such.
    pub deliver_damaged: bool,
    /// One-way delay from each instant on, in place of a constant one; before the first instant, that of the first.
    pub delay: Vec<(Duration, Duration)>,
    /// The first argument that was refused.
    wrong: Option<PathError>,
}

/// Which packets are lost.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Loss {
    /// Each by itself, with this probability.
    Each(f64),
    /// A chain of two states, good and bad, that may change before each packet (Gilbert 1960, Elliott 1963).
    Bursts {
        /// The probability that a good state becomes bad.
        enter: f64,
        /// The probability that a bad state becomes good: bursts are 1/leave packets long in the mean.
        leave: f64,
        /// The probability of a loss in the bad state.
        bad: f64,
        /// The probability of a loss in the good state.
        good: f64,
    },
}

impl Loss {
    /// The share of packets that are lost in the long run.
    pub fn share(self) -> f64 {
        match self {
            Self::Each(share) => share,
            Self::Bursts {
                enter,
                leave,
                bad,
                good,
            } if enter + leave > 0.0 => (enter * bad + leave * good) / (enter + leave),
            Self::Bursts { good, .. } => good,
        }
    }
}

/// How the delay of packets varies. A delay is never less than zero. Packets stay in order, unless [`Impair::reorder`] says
/// otherwise: one that would overtake arrives with the last before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Jitter {
    /// What is added to the delay in the mean.
    pub mean: Duration,
    /// The standard deviation; of a uniform distribution, half its width.
    pub spread: Duration,
    /// The distribution.
    pub shape: Shape,
}

impl Jitter {
    /// Jitter of this distribution.
    pub const fn new(mean: Duration, spread: Duration, shape: Shape) -> Self {
        Self {
            mean,
            spread,
            shape,
        }
    }
}

/// The distribution of jitter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Shape {
    /// Normal.
    #[default]
    Normal,
    /// Uniform from mean − spread to mean + spread, as netem's without a table.
    Uniform,
    /// Pareto's with a tail exponent of 3, as netem's table `pareto`, moved to the mean and scaled to the standard deviation.
    Pareto,
}

/// Which packets overtake others.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Reorder {
    /// The probability that a packet overtakes.
    pub share: f64,
    /// How much earlier it arrives than with the mean delay; `None`: by the jitter's spread.
    pub by: Option<Duration>,
}

impl Reorder {
    /// So many packets overtake.
    pub const fn new(share: f64, by: Option<Duration>) -> Self {
        Self { share, by }
    }
}

impl Impair {
    /// No impairment.
    pub fn new() -> Self {
        Self::default()
    }

    /// Each packet is lost with this probability.
    pub fn loss(mut self, probability: f64) -> Self {
        self.check("loss", probability);
        self.loss = Some(Loss::Each(probability));
        self
    }

    /// Losses come in bursts; see [`Loss::Bursts`].
    pub fn bursts(mut self, enter: f64, leave: f64, bad: f64, good: f64) -> Self {
        for (key, value) in [
            ("enter", enter),
            ("leave", leave),
            ("bad", bad),
            ("good", good),
        ] {
            self.check(key, value);
        }
        self.loss = Some(Loss::Bursts {
            enter,
            leave,
            bad,
            good,
        });
        self
    }

    /// The delay has a normal distribution with this standard deviation.
    pub fn jitter(mut self, spread: impl Given<Duration>) -> Self {
        let spread = self.read("jitter", spread);
        self.jitter = Some(Jitter::new(Duration::ZERO, spread, Shape::Normal));
        self
    }

    /// The delay has this distribution.
    pub const fn jitter_of(mut self, jitter: Jitter) -> Self {
        self.jitter = Some(jitter);
        self
    }

    /// Packets overtake with this probability, and then arrive so much earlier.
    pub fn reorder(mut self, probability: f64, by: impl Given<Duration>) -> Self {
        self.check("reorder", probability);
        let by = self.read("by", by);
        self.reorder = Some(Reorder::new(probability, Some(by)));
        self
    }

    /// Packets arrive twice with this probability.
    pub fn duplicate(mut self, probability: f64) -> Self {
        self.check("duplicate", probability);
        self.duplicate = probability;
        self
    }

    /// Packets are damaged with this probability; the receiver drops them.
    pub fn corrupt(mut self, probability: f64) -> Self {
        self.check("corrupt", probability);
        self.corrupt = probability;
        self
    }

    /// Damaged packets are delivered, as such.
    pub const fn deliver_damaged(mut self) -> Self {
        self.deliver_damaged = true;
        self
    }

    /// The one-way delay from each instant on, in the order of the instants, in place of a constant one.
    pub fn delays(
        mut self,
        steps: impl IntoIterator<Item = (core::time::Duration, core::time::Duration)>,
    ) -> Self {
        let steps = steps.into_iter();
        self.delay = steps
            .map(|(from, delay)| (from.into(), delay.into()))
            .collect();
        if !self.delay.is_sorted_by(|one, next| one.0 < next.0) {
            self.refuse("delays", "must be in the order of their instants");
        }
        self
    }

    /// True if nothing is impaired.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// True if receivers drop what it damages.
    pub(crate) fn damages(&self) -> bool {
        self.corrupt > 0.0 && !self.deliver_damaged
    }

    /// Whether all arguments were accepted.
    pub(crate) fn checked(self) -> Result<Self, PathError> {
        match self.wrong {
            Some(wrong) => Err(wrong),
            None => Ok(self),
        }
    }

    fn check(&mut self, key: &'static str, probability: f64) {
        if !(0.0..=1.0).contains(&probability) {
            self.refuse(
                key,
                &format!("got {probability}; must be a number from 0 to 1"),
            );
        }
    }

    fn read(&mut self, key: &'static str, given: impl Given<Duration>) -> Duration {
        given.value(key).unwrap_or_else(|wrong| {
            self.wrong.get_or_insert(wrong);
            Duration::ZERO
        })
    }

    fn refuse(&mut self, key: &'static str, message: &str) {
        self.wrong
            .get_or_insert_with(|| PathError::new(key, message));
    }
}

/// What happens to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Lost,
    Travels {
        damaged: bool,
        duplicated: bool,
        /// It may arrive before packets that entered earlier.
        overtakes: bool,
        /// Its delay on a wire whose own delay is this much less.
        delay: Delay,
    },
}

/// A delay as a difference, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Delay(i64);

impl Delay {
    /// The whole delay, never less than zero.
    pub fn beyond(self, own: Duration) -> Duration {
        let own = i64::try_from(own.as_nanos()).unwrap_or(i64::MAX);
        Duration::from_nanos(own.saturating_add(self.0).max(0) as u64)
    }
}

/// The impairments of a wire while it runs. `P`: the packets that it copies.
#[derive(Debug)]
pub(crate) struct Impairment<P> {
    pub impair: Impair,
    pub copy: fn(&P) -> P,
    is_bad: bool,
    /// Place in the trace of delays.
    step: usize,
    losses: Stream,
    damage: Stream,
    copies: Stream,
    overtaking: Stream,
    jitter: Stream,
    /// The second of two normal numbers.
    spare: Option<f64>,
}

impl<P> Impairment<P> {
    pub fn new(impair: Impair, run: u64, copy: fn(&P) -> P) -> Self {
        let stream = |purpose| Stream::new(seed(run, purpose, 0));
        Self {
            impair,
            copy,
            is_bad: false,
            step: 0,
            losses: stream(1),
            damage: stream(2),
            copies: stream(3),
            overtaking: stream(4),
            jitter: stream(5),
            spare: None,
        }
    }

    /// Decides about a packet that enters the wire.
    pub fn fate(&mut self, now: Time) -> Fate {
        if self.loses() {
            return Fate::Lost;
        }
        let happens = |share: f64, stream: &mut Stream| share > 0.0 && stream.uniform() < share;
        let reorder = self.impair.reorder;
        let overtakes = reorder.is_some_and(|how| happens(how.share, &mut self.overtaking));
        Fate::Travels {
            damaged: happens(self.impair.corrupt, &mut self.damage),
            duplicated: happens(self.impair.duplicate, &mut self.copies),
            overtakes,
            delay: self.delay(overtakes, now),
        }
    }

    fn loses(&mut self) -> bool {
        match self.impair.loss {
            None => false,
            Some(Loss::Each(share)) => self.losses.uniform() < share,
            Some(Loss::Bursts {
                enter,
                leave,
                bad,
                good,
            }) => {
                let changes = if self.is_bad { leave } else { enter };
                self.is_bad ^= self.losses.uniform() < changes;
                self.losses.uniform() < if self.is_bad { bad } else { good }
            }
        }
    }

    fn delay(&mut self, overtakes: bool, now: Time) -> Delay {
        let nanos = |span: Duration| span.as_nanos() as i64;
        let traced = nanos(self.traced(now));
        let Some(jitter) = self.impair.jitter else {
            let by = self
                .impair
                .reorder
                .and_then(|how| how.by)
                .filter(|_| overtakes);
            return Delay(traced - by.map_or(0, nanos));
        };
        let mean = traced + nanos(jitter.mean);
        if overtakes {
            let by = self.impair.reorder.and_then(|how| how.by);
            return Delay(mean - nanos(by.unwrap_or(jitter.spread)));
        }
        let deviation = jitter.spread.as_nanos() as f64 * self.deviate(jitter.shape);
        Delay(mean.saturating_add(libm::round(deviation) as i64))
    }

    /// The delay of the trace.
    fn traced(&mut self, now: Time) -> Duration {
        let since = now - Time::ZERO;
        while (self.impair.delay.get(self.step + 1)).is_some_and(|(from, _)| *from <= since) {
            self.step += 1;
        }
        let current = self.impair.delay.get(self.step);
        current.map_or(Duration::ZERO, |(_, delay)| *delay)
    }

    /// A random number of mean 0 and, unless it is uniform, standard deviation 1.
    fn deviate(&mut self, shape: Shape) -> f64 {
        match shape {
            Shape::Normal => self.spare.take().unwrap_or_else(|| {
                let (one, other) = self.jitter.normals();
                self.spare = Some(other);
                one
            }),
            Shape::Uniform => 2.0 * self.jitter.uniform() - 1.0,
            Shape::Pareto => {
                // With exponent 3 and least value 1: the mean is 3/2 and the variance 3/4.
                let value = 1.0 / libm::cbrt(1.0 - self.jitter.uniform());
                (value - 1.5) / libm::sqrt(0.75)
            }
        }
    }
}
