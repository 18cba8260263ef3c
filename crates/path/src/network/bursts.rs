//! Bursts: packets that a host sends together and that differ in what only hosts read travel as one object through the queue of
//! their first link. The object is the first of them. It is taken apart wherever they are not alike any more.

use sojourn_units::Time;

use super::{Hop, Network, Packet, Route};
use crate::medium::Medium;
use crate::observer::Observer;

impl<P: Packet, O: Observer<P>, M: Medium<P, O>> Network<P, O, M> {
    /// As [`Network::send`] of each packet of a burst, in their order. As far as they queue at a link whose discipline takes
    /// bursts, they stay one object.
    pub fn send_burst(&mut self, mut burst: P, route: Route, now: Time) -> Time {
        loop {
            if let Hop::Link(number) = self.hops[route.0 as usize] {
                let number = number as usize;
                let link = &mut self.links[number];
                if link.takes(&burst, now) && self.observer.takes_bursts(number) {
                    burst.set_hop(route.0 + 1);
                    link.enqueue_burst(burst, now, number, &mut self.observer);
                    return now;
                }
            }
            match self.send_apart(burst, route, now) {
                (Some(rest), _) => burst = rest,
                (None, left) => return left,
            }
        }
    }

    /// Sends the first packet of what may be a burst alone, and all if their link never takes bursts. Returns the rest, and when
    /// the last has left its host.
    #[cold]
    #[inline(never)]
    fn send_apart(&mut self, mut burst: P, route: Route, now: Time) -> (Option<P>, Time) {
        let may_take = match self.hops[route.0 as usize] {
            Hop::Link(number) => self.links[number as usize].takes_bursts(),
            _ => false,
        };
        loop {
            let (first, rest) = if burst.followers() == 0 {
                (burst, None)
            } else {
                (self.observer.split(&mut burst, 1), Some(burst))
            };
            let left = self.send(first, route, now);
            match rest {
                Some(rest) if !may_take => burst = rest,
                rest => return (rest, left),
            }
        }
    }

    /// The first packet of what may be a burst, of which the rest stays at its link.
    #[inline(always)]
    pub(super) fn first_of(&mut self, number: usize, mut burst: P) -> P {
        if burst.followers() == 0 {
            return burst;
        }
        let first = self.observer.split(&mut burst, 1);
        self.links[number].put_back(burst);
        first
    }
}
