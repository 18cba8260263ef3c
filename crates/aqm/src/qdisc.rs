//! The queue discipline: what to keep, mark, drop and send next.

use sojourn_units::{Duration, Rate, Time};

use crate::aqm::Aqm;
use crate::environment::Environment;
use crate::key::SettingError;
use crate::packet::Packet;
use crate::settings::Settings;
use crate::verdict::DropReason;

/// What an inner queue was given: a tin of CAKE its share of the rate, and the target and interval of its COBALT. tc(8) shows
/// them as `thresh`, `target` and `interval`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InnerSettings {
    /// The rate above which it yields to others; `None` without a shaper.
    pub threshold: Option<Rate>,
    /// The target of its algorithm.
    pub target: Duration,
    /// The interval of its algorithm.
    pub interval: Duration,
}

/// A queue discipline. Its only clock is the argument `now`, which never decreases.
///
/// Every packet offered is returned exactly once by [`Qdisc::dequeue`], or dropped exactly once through
/// [`Environment::drop`], or is still queued.
pub trait Qdisc<P: Packet> {
    /// Offers a packet that arrives at `now`. Packets dropped as a result, this or others, go to `env`.
    fn enqueue(&mut self, packet: P, now: Time, env: &mut Environment<P>);

    /// Returns the next packet to send. Packets dropped meanwhile go to `env`, oldest first. Returns `None` if nothing
    /// is queued, or if the discipline shapes and nothing may leave yet (see [`Qdisc::ready_at`]).
    fn dequeue(&mut self, now: Time, env: &mut Environment<P>) -> Option<P>;

    /// Offers a packet that arrives while nothing is queued, and returns the next to send, at the same instant: as
    /// [`Qdisc::enqueue`] and then, unless the packet was dropped, [`Qdisc::dequeue`].
    fn pass(&mut self, packet: P, now: Time, env: &mut Environment<P>) -> Option<P> {
        self.enqueue(packet, now, env);
        if self.packets() == 0 {
            return None;
        }
        self.dequeue(now, env)
    }

    /// True if it takes bursts: packets that differ in nothing that it looks at and travel as one object, which is given as the
    /// first of them. Else [`Qdisc::enqueue_burst`] and [`Qdisc::release_next`] are not called.
    fn takes_bursts(&self) -> bool {
        false
    }

    /// Offers the packets of a burst that arrive at `now`, one after another. They are not ECN-capable and have their arrival
    /// time. If one is dropped, the burst comes back: with the number of packets that stay, which count as queued, and the
    /// reason of the drop. [`Qdisc::queue_burst`] is to be called with those that stay.
    ///
    /// [`Qdisc::dequeue`] returns a burst with its first packet; if it drops that, it drops the object and returns `None`.
    fn enqueue_burst(
        &mut self,
        _burst: P,
        _now: Time,
        _env: &mut Environment<P>,
    ) -> Option<(P, u32, DropReason)> {
        unreachable!("it takes no bursts")
    }

    /// Queues the packets of a burst that are counted.
    fn queue_burst(&mut self, _burst: P) {
        unreachable!("it takes no bursts")
    }

    /// Decides about the next packet of the burst that [`Qdisc::dequeue`] has taken out: returns why it is dropped, if it does not
    /// leave.
    fn release_next(
        &mut self,
        _packet: &P,
        _now: Time,
        _env: &mut Environment<P>,
    ) -> Option<DropReason> {
        unreachable!("it takes no bursts")
    }

    /// Packets queued.
    fn packets(&self) -> u64;

    /// Bytes queued, link headers included.
    fn bytes(&self) -> u64;

    /// When [`Qdisc::on_timer`] is due (PIE: every update period); `None` if never. A link does not ask again after `None`
    /// unless the parameters change; [`Time::MAX`] stands for "not until something happens".
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// True if only [`Qdisc::on_timer`] and [`Qdisc::change`] change [`Qdisc::next_timer`].
    fn keeps_timer(&self) -> bool {
        false
    }

    /// Called once `next_timer` is reached.
    fn on_timer(&mut self, _now: Time, _env: &mut Environment<P>) {}

    /// When a queued packet may leave, for disciplines that shape; `None` for at once.
    fn ready_at(&self) -> Option<Time> {
        None
    }

    /// False if [`Qdisc::ready_at`] is always `None`: a link does not ask for it then.
    fn may_hold(&self) -> bool {
        true
    }

    /// True if some packets may leave while others have to wait, so that an arrival may leave before [`Qdisc::ready_at`].
    fn is_classful(&self) -> bool {
        false
    }

    /// Reports the state under the defining document's names, for probes: `probability`, `count` …
    fn state(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}

    /// Changes the parameters while running, as `tc qdisc change` does. Queued packets and the algorithm's state are
    /// kept. `settings` holds all parameters, also the unchanged ones. If the new limit is below the queue's length,
    /// arrivals are dropped until there is room.
    ///
    /// # Errors
    /// The discipline cannot be changed while it runs, or a value is out of range. Then nothing has changed.
    fn change(&mut self, _settings: &Settings) -> Result<(), SettingError> {
        Err(SettingError::unchangeable())
    }

    /// The names of the inner queues, for a discipline with several queues that have different delays by design. It
    /// sets the inner queue of every packet that leaves or is dropped ([`Packet::set_inner_queue`]).
    fn inner_queues(&self) -> &'static [&'static str] {
        &[]
    }

    /// What the inner queue at this place of [`Qdisc::inner_queues`] was given, where it follows from the discipline's parameters.
    fn inner_settings(&self, _place: usize) -> Option<InnerSettings> {
        None
    }

    /// The algorithm that governs the only queue, used to replay a recorded queue (see [`crate::replay::follow`]).
    /// `None` for any other discipline.
    fn aqm(&mut self) -> Option<&mut dyn Aqm<P>> {
        None
    }
}
