//! Where segments wait while they are on their way: packets carry a handle and stay small.

use sojourn_tcp::Segment;

/// A place in the slab.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle(u32);

/// The segments under way. Places are used again, so memory follows the largest number at once.
#[derive(Debug, Default)]
pub struct Segments {
    places: Vec<Segment>,
    free: Vec<u32>,
}

impl Segments {
    /// Puts a segment in.
    pub fn insert(&mut self, segment: Segment) -> Handle {
        match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = segment;
                Handle(place)
            }
            None => {
                self.places.push(segment);
                Handle(self.places.len() as u32 - 1)
            }
        }
    }

    /// Takes a segment out. The handle is used up.
    pub fn take(&mut self, handle: Handle) -> Segment {
        self.free.push(handle.0);
        self.places[handle.0 as usize]
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
        let first = segments.insert(Segment {
            len: 1,
            ..Segment::default()
        });
        let second = segments.insert(Segment {
            len: 2,
            ..Segment::default()
        });
        assert_eq!(segments.take(first).len, 1);
        assert_eq!(
            segments.insert(Segment {
                len: 3,
                ..Segment::default()
            }),
            first
        );
        assert_eq!(
            (segments.take(second).len, segments.take(first).len),
            (2, 3)
        );
        assert_eq!(segments.len(), 0);
    }
}
