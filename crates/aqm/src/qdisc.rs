//! The queue discipline: what to keep, mark, drop and send next.

use sojourn_units::Time;

use crate::aqm::Aqm;
use crate::environment::Environment;
use crate::key::SettingError;
use crate::packet::Packet;
use crate::settings::Settings;

/// How much a queue may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// So many packets.
    Packets(u64),
    /// So many bytes, link headers included.
    Bytes(u64),
}

impl Limit {
    /// True if a packet of `bytes` still fits beside `packets` packets of `queued_bytes` bytes.
    pub const fn has_room(self, packets: u64, queued_bytes: u64, bytes: u32) -> bool {
        match self {
            Self::Packets(limit) => packets < limit,
            Self::Bytes(limit) => queued_bytes + bytes as u64 <= limit,
        }
    }
}

/// A queue discipline. Time only ever arrives as `now`, which never goes back.
///
/// Every packet offered is exactly once returned by [`Qdisc::dequeue`] or dropped through
/// [`Environment::drop`], or is still queued.
pub trait Qdisc<P: Packet> {
    /// Offers a packet arriving at `now`. What is dropped for it, this packet or another, goes to `env`.
    fn enqueue(&mut self, packet: P, now: Time, env: &mut Environment<P>);

    /// The next packet to send. Packets dropped on the way go to `env`, oldest first. `None` if nothing
    /// is queued, or if the discipline shapes and nothing may leave yet (see [`Qdisc::ready_at`]).
    fn dequeue(&mut self, now: Time, env: &mut Environment<P>) -> Option<P>;

    /// Packets queued.
    fn packets(&self) -> u64;

    /// Bytes queued, link headers included.
    fn bytes(&self) -> u64;

    /// When [`Qdisc::on_timer`] is due (PIE: every update period); `None` if never.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// Called once `next_timer` is reached.
    fn on_timer(&mut self, _now: Time, _env: &mut Environment<P>) {}

    /// For disciplines with a shaper of their own: when a queued packet may leave. `None`: at once.
    fn ready_at(&self) -> Option<Time> {
        None
    }

    /// Shows the algorithm's state by the defining document's names, for probes: `probability`, `count` …
    fn state(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}

    /// Takes other parameters from now on, as `tc qdisc change` does. What is queued stays, and so does the algorithm's
    /// state. `settings` are all of the discipline's, those that stay the same included; a limit that is lower than the
    /// queue is long refuses arrivals until there is room.
    ///
    /// # Errors
    /// The discipline does not change while it runs, or a value is refused; nothing has changed then.
    fn change(&mut self, _settings: &Settings) -> Result<(), SettingError> {
        Err(SettingError::unchangeable())
    }

    /// The names of its inner queues, where it has several whose delays differ by design. It then tells every packet that
    /// leaves or is dropped from which ([`Packet::set_inner_queue`]).
    fn inner_queues(&self) -> &'static [&'static str] {
        &[]
    }

    /// The algorithm that alone governs its one queue, to be shown a recorded queue (see
    /// [`crate::replay::follow`]); `None` if there is more to the discipline.
    fn aqm(&mut self) -> Option<&mut dyn Aqm<P>> {
        None
    }
}
