//! Where segments wait while they are on their way: packets carry a handle and stay small.

use sojourn_tcp::Segment;

/// A place in the slab.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle(pub u32);

/// The segments under way. Places are used again, so memory follows the largest number at once.
#[derive(Debug, Default)]
pub struct Segments {
    places: Vec<Segment>,
    free: Vec<u32>,
}

impl Segments {
    /// Offers a free place to `write`, with what was there before still in it. The place is taken if that returns
    /// something.
    pub fn offer<T>(&mut self, write: impl FnOnce(Handle, &mut Segment) -> Option<T>) -> Option<T> {
        if self.free.is_empty() {
            self.free.push(self.places.len() as u32);
            self.places.push(Segment::default());
        }
        let place = *self.free.last()?;
        let written = write(Handle(place), &mut self.places[place as usize])?;
        self.free.pop();
        Some(written)
    }

    /// The segment at a place.
    pub fn at(&self, handle: Handle) -> &Segment {
        &self.places[handle.0 as usize]
    }

    /// Gives a place back. The handle is used up.
    pub fn release(&mut self, handle: Handle) {
        self.free.push(handle.0);
    }

    /// Segments under way.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again() {
        let mut segments = Segments::default();
        let mut take = |len| {
            segments
                .offer(|handle, segment| {
                    segment.len = len;
                    Some(handle)
                })
                .expect("it is taken")
        };
        let (first, second) = (take(1), take(2));
        assert_eq!(segments.len(), 2);
        segments.release(first);
        assert_eq!(segments.offer(|handle, _| Some(handle)), Some(first));
        assert_eq!(segments.at(second).len, 2);
        segments.release(first);
        segments.release(second);
        assert_eq!(segments.len(), 0);
    }

    #[test]
    fn an_offer_that_is_declined_takes_no_place() {
        let mut segments = Segments::default();
        assert_eq!(segments.offer(|_, _| None::<Handle>), None);
        assert_eq!(segments.len(), 0);
    }
}
