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
    /// A place for a segment, to be written by [`Segments::at_mut`]. What was there before is still in it.
    pub fn reserve(&mut self) -> Handle {
        Handle(self.free.pop().unwrap_or_else(|| {
            self.places.push(Segment::default());
            self.places.len() as u32 - 1
        }))
    }

    /// The segment at a place.
    pub fn at(&self, handle: Handle) -> &Segment {
        &self.places[handle.0 as usize]
    }

    /// The segment at a place, to be written.
    pub fn at_mut(&mut self, handle: Handle) -> &mut Segment {
        &mut self.places[handle.0 as usize]
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
        let (first, second) = (segments.reserve(), segments.reserve());
        segments.at_mut(second).len = 2;
        assert_eq!(segments.len(), 2);
        segments.release(first);
        assert_eq!(segments.reserve(), first);
        assert_eq!(segments.at(second).len, 2);
        segments.release(first);
        segments.release(second);
        assert_eq!(segments.len(), 0);
    }
}
