//! The loop around a path and two endpoints that set timers of their own.

use core::time::Duration;

use sojourn_aqm::Datagram;
use sojourn_units::Way;

use crate::path::{Delivery, Path};

/// An endpoint of a protocol, without a clock and without sockets, as [`Path::drive`] calls it. Instants are spans since the
/// path's beginning.
pub trait Endpoint<T> {
    /// A packet that it wants to send now; called until it returns `None`.
    fn transmit(&mut self, now: Duration) -> Option<Datagram<T>>;

    /// A packet has arrived.
    fn receive(&mut self, packet: Delivery<T>);

    /// When [`Endpoint::on_timeout`] is due; `None`: never.
    fn timeout(&mut self) -> Option<Duration>;

    /// Its timer is due. When [`Endpoint::transmit`] has returned `None` afterwards, [`Endpoint::timeout`] must be later.
    fn on_timeout(&mut self, now: Duration);
}

/// Rounds of the loop at one instant: far more than packets arrive at once.
const MOST_AT_ONCE: u32 = 1 << 20;

impl<T> Path<T> {
    /// Lets two endpoints talk over the path until `end`, without what happens at that instant; the packets of the first go
    /// [`Way::Down`], those of the second [`Way::Up`]. The next call goes on from there, so that the path may change in
    /// between.
    ///
    /// # Panics
    /// The endpoints act again and again at one instant: a timer that was handled stays due.
    pub fn drive<'a>(
        &mut self,
        ends: (&'a mut dyn Endpoint<T>, &'a mut dyn Endpoint<T>),
        end: Duration,
    ) {
        let mut ends = [(Way::Down, ends.0), (Way::Up, ends.1)];
        let mut has_acted = [true; 2];
        let (mut now, mut at_once) = (self.now(), 0);
        loop {
            for ((way, endpoint), has_acted) in ends.iter_mut().zip(&mut has_acted) {
                if core::mem::take(has_acted) {
                    while let Some(packet) = endpoint.transmit(now) {
                        self.send(now, *way, packet);
                    }
                }
            }
            let timers = ends
                .iter_mut()
                .filter_map(|(_, endpoint)| endpoint.timeout());
            let next = timers.chain(self.next_event()).min();
            let Some(next) = next.filter(|next| *next < end) else {
                self.rest_until(end.max(now));
                return;
            };
            at_once = if next > now { 0 } else { at_once + 1 };
            assert!(
                at_once < MOST_AT_ONCE,
                "the endpoints act without end at {now:?}; a timer stays due"
            );
            now = next.max(now);
            while let Some(packet) = self.poll(now) {
                let to = packet.way.reversed() as usize;
                ends[to].1.receive(packet);
                has_acted[to] = true;
            }
            for ((_, endpoint), has_acted) in ends.iter_mut().zip(&mut has_acted) {
                if endpoint.timeout().is_some_and(|at| at <= now) {
                    endpoint.on_timeout(now);
                    *has_acted = true;
                }
            }
        }
    }
}
