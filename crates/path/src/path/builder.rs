//! A path being built.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use sojourn_aqm::{Catalogue, Discipline, Limit, Settings};
use sojourn_units::{Duration, Rate, Time, Value, Way};

use super::{Carried, Delivered, Given, Path, PathError, Watch, halves};
use crate::builder::{Builder, Stage};
use crate::impair::Impair;
use crate::link::{BoxedQdisc, LinkConfig};
use crate::random;

/// A full frame on the link, for disciplines that want to know: 1500 bytes of IP in Ethernet.
const FRAME: u32 = 1514;

/// What the random streams of impairments are for, as a number.
const IMPAIRMENT: u8 = 16;

/// A path being built; [`Path::new`] begins it.
pub struct PathBuilder<T> {
    catalogue: Catalogue<Carried<T>>,
    rtt: Duration,
    down: Bottleneck,
    up: Option<Bottleneck>,
    impaired: [Option<Impaired<T>>; 2],
    seed: u64,
    keep: usize,
}

/// A direction of a path in parts, for callers that build disciplines themselves; see [`Path::from_parts`].
pub struct Part<T> {
    /// The discipline and the rest of the link; `None`: packets cross no link.
    pub link: Option<(BoxedQdisc<Carried<T>>, LinkConfig)>,
    /// What happens to packets behind it, the seed of that, and how a packet is copied.
    pub impairment: Option<(Impair, u64, Copier<T>)>,
    /// Propagation; not used where the impairment has a trace of delays.
    pub delay: Duration,
}

/// A path of these parts: down, up.
pub(super) fn joined<T>(parts: [Part<T>; 2], keep: usize) -> Path<T> {
    let mut builder = Builder::new();
    let routes = parts.map(|part| {
        let mut stages = Vec::new();
        if let Some((qdisc, config)) = part.link {
            stages.push(Stage::Link(builder.add_link(qdisc, config)));
        }
        // A trace of delays stands in place of the constant one.
        let traced = |(impair, ..): &(Impair, _, _)| !impair.delay.is_empty();
        let delay = match part.impairment.as_ref().is_some_and(traced) {
            true => Duration::ZERO,
            false => part.delay,
        };
        let impairment = part.impairment;
        let impairment =
            impairment.map(|(impair, seed, copy)| builder.add_impairment(impair, seed, copy));
        stages.push(Stage::Wire(builder.add_impaired_wire(delay, impairment)));
        builder.add_route(&stages)
    });
    Path {
        network: builder.build(Watch::new(keep)),
        routes,
        delivered: Delivered(VecDeque::new()),
        now: Time::ZERO,
        sent: 0,
    }
}

/// The events that a path keeps unless it is told otherwise.
pub(super) const KEEP: usize = 65_536;

/// Impairments, and how a packet is copied.
type Impaired<T> = (Impair, Copier<T>);

/// How a packet is copied.
type Copier<T> = fn(&Carried<T>) -> Carried<T>;

/// A link with its discipline.
struct Bottleneck {
    aqm: &'static str,
    settings: Settings,
    burst: u64,
    device_queue: u64,
}

impl Bottleneck {
    fn new(rate: Rate) -> Self {
        let mut settings = Settings::new(rate, FRAME);
        settings.limit = Some(Limit::Packets(1000));
        let defaults = LinkConfig::of_rate(rate);
        Self {
            aqm: "pfifo",
            settings,
            burst: defaults.burst,
            device_queue: defaults.device_queue,
        }
    }
}

impl<T: Send + 'static> PathBuilder<T> {
    pub(super) fn new(rate: Rate, rtt: Duration) -> Self {
        Self {
            catalogue: Catalogue::new(),
            rtt,
            down: Bottleneck::new(rate),
            up: None,
            impaired: [None, None],
            seed: 1,
            keep: KEEP,
        }
    }

    /// Makes a discipline of your own known; [`PathBuilder::aqm`] and [`PathBuilder::up`] then find it by its name.
    pub fn discipline(mut self, discipline: Discipline<Carried<T>>) -> Self {
        self.catalogue.add(discipline);
        self
    }

    /// The link's queue: a discipline by name, with its keys and their values as in an experiment file. `limit` is how much it
    /// holds; without it, the discipline's own default applies.
    ///
    /// # Errors
    /// There is no such discipline, or it does not accept a key or a value.
    pub fn aqm<'a>(
        mut self,
        name: &str,
        keys: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, PathError> {
        self.down = self.chosen(self.down.settings.rate, name, keys)?;
        Ok(self)
    }

    /// Gives packets up a link of this rate, with this discipline and its defaults. Without it they cross no queue.
    ///
    /// # Errors
    /// The text is no rate, or there is no such discipline.
    pub fn up(self, rate: impl Given<Rate>, aqm: &str) -> Result<Self, PathError> {
        self.up_with(rate, aqm, [])
    }

    /// As [`PathBuilder::up`], with keys as in [`PathBuilder::aqm`].
    ///
    /// # Errors
    /// As both.
    pub fn up_with<'a>(
        mut self,
        rate: impl Given<Rate>,
        aqm: &str,
        keys: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, PathError> {
        self.up = Some(self.chosen(rate.value("up rate")?, aqm, keys)?);
        Ok(self)
    }

    fn chosen<'a>(
        &self,
        rate: Rate,
        name: &str,
        keys: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Bottleneck, PathError> {
        let Some(discipline) = self.catalogue.get(name) else {
            let known: Vec<&str> = self.catalogue.iter().map(|known| known.name).collect();
            let message = format!("got \"{name}\"; must be one of {}", known.join(", "));
            return Err(PathError::new("aqm", message));
        };
        let mut settings = Settings::new(rate, FRAME);
        for (key, value) in keys {
            settings = settings.with(discipline, key, value)?;
        }
        discipline.build(&settings)?;
        Ok(Bottleneck {
            aqm: discipline.name,
            settings,
            ..Bottleneck::new(rate)
        })
    }

    /// Whether the disciplines mark packets that are ECN-capable; the same as their key `ecn`. To be called after
    /// [`PathBuilder::aqm`] and [`PathBuilder::up`].
    pub fn ecn(mut self, ecn: bool) -> Self {
        for link in [Some(&mut self.down), self.up.as_mut()]
            .into_iter()
            .flatten()
        {
            link.settings.values.retain(|(key, _)| key != "ecn");
            link.settings.values.push(("ecn".into(), Value::Flag(ecn)));
        }
        self
    }

    /// The bytes that the links let go ahead of their rates after an idle time; 1600 by default, as Linux's HTB. With 0 a link is
    /// a serial line: nothing leaves before the packet before it has been sent.
    pub const fn burst(mut self, bytes: u64) -> Self {
        self.down.burst = bytes;
        if let Some(up) = &mut self.up {
            up.burst = bytes;
        }
        self
    }

    /// Packets in an unmanaged FIFO below the disciplines; 0 by default.
    pub const fn device_queue(mut self, packets: u64) -> Self {
        self.down.device_queue = packets;
        if let Some(up) = &mut self.up {
            up.device_queue = packets;
        }
        self
    }

    /// What happens to packets of a direction in propagation, behind the link.
    ///
    /// # Errors
    /// A text is no time, a probability is not from 0 to 1, or instants are not in order.
    pub fn impair(mut self, way: Way, impair: Impair) -> Result<Self, PathError>
    where
        T: Clone,
    {
        self.impaired[way as usize] = Some((impair.checked()?, Carried::clone));
        Ok(self)
    }

    /// The seed of all that is random; 1 by default.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How many events [`Path::verdicts`] keeps, the newest; 0 for none.
    pub const fn keep(mut self, events: usize) -> Self {
        self.keep = events;
        self
    }

    /// The path.
    pub fn build(self) -> Path<T> {
        let links = [Some(&self.down), self.up.as_ref()];
        let delays = halves(self.rtt);
        let part = |way: usize| {
            let link = links[way].map(|link| (self.qdisc(link), self.config(link, way)));
            let impairment = self.impaired[way].clone().map(|(impair, copy)| {
                let seed = random::seed(self.seed, IMPAIRMENT, way);
                (impair, seed, copy)
            });
            Part {
                link,
                impairment,
                delay: delays[way],
            }
        };
        joined([part(0), part(1)], self.keep)
    }

    fn qdisc(&self, link: &Bottleneck) -> BoxedQdisc<Carried<T>> {
        let discipline = self.catalogue.get(link.aqm).expect("it was found before");
        let built: Result<Box<_>, _> = discipline.build(&link.settings);
        built.expect("it was built before")
    }

    fn config(&self, link: &Bottleneck, way: usize) -> LinkConfig {
        let mut config = LinkConfig::of_rate(link.settings.rate);
        config.burst = link.burst;
        config.device_queue = link.device_queue;
        config.seed = self.seed ^ ((way as u64) << 63);
        config
    }
}

impl<T> fmt::Debug for PathBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PathBuilder")
            .field("rate", &self.down.settings.rate)
            .field("aqm", &self.down.aqm)
            .field("rtt", &self.rtt)
            .finish_non_exhaustive()
    }
}
