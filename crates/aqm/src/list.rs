//! Linked lists through the elements of a slice: insertion and removal anywhere in constant time, without allocation.
//! Schedulers keep their packets and queues in such lists.

/// Marks the absence of an element.
const NIL: u32 = u32::MAX;

/// An element's neighbours in its list. An element is in at most one list.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    previous: u32,
    next: u32,
}

impl Link {
    /// The link of an element that is in no list.
    pub const ALONE: Self = Self {
        previous: NIL,
        next: NIL,
    };

    /// The element after this one.
    pub fn next(self) -> Option<u32> {
        present(self.next)
    }
}

/// An element that can be put in a [`List`].
pub trait Linked {
    /// Its link.
    fn link(&mut self) -> &mut Link;
}

/// The ends of a list. Every operation takes the slice that holds the elements, always the same one.
#[derive(Clone, Copy, Debug)]
pub struct List {
    head: u32,
    tail: u32,
}

impl List {
    /// A list without elements.
    pub const EMPTY: Self = Self {
        head: NIL,
        tail: NIL,
    };

    /// True if there is no element.
    pub const fn is_empty(self) -> bool {
        self.head == NIL
    }

    /// The first element.
    pub fn front(self) -> Option<u32> {
        present(self.head)
    }

    /// The last element.
    pub fn back(self) -> Option<u32> {
        present(self.tail)
    }

    /// Appends element `at`, which must be in no list.
    pub fn push_back<T: Linked>(&mut self, elements: &mut [T], at: u32) {
        *elements[at as usize].link() = Link {
            previous: self.tail,
            next: NIL,
        };
        if self.tail == NIL {
            self.head = at;
        } else {
            elements[self.tail as usize].link().next = at;
        }
        self.tail = at;
    }

    /// Prepends element `at`, which must be in no list.
    pub fn push_front<T: Linked>(&mut self, elements: &mut [T], at: u32) {
        *elements[at as usize].link() = Link {
            previous: NIL,
            next: self.head,
        };
        match present(self.head) {
            Some(head) => elements[head as usize].link().previous = at,
            None => self.tail = at,
        }
        self.head = at;
    }

    /// Removes the first element. The next element is not touched, because it is probably not in the cache: the first
    /// element's `previous` is therefore meaningless.
    #[inline]
    pub fn pop_front<T: Linked>(&mut self, elements: &mut [T]) -> Option<u32> {
        let at = self.front()?;
        self.head = elements[at as usize].link().next;
        if self.head == NIL {
            self.tail = NIL;
        }
        Some(at)
    }

    /// Moves the first element to the end.
    pub fn rotate<T: Linked>(&mut self, elements: &mut [T]) {
        let at = self.head;
        if at != self.tail {
            let moved = Link {
                previous: self.tail,
                next: NIL,
            };
            self.head = core::mem::replace(elements[at as usize].link(), moved).next;
            elements[self.tail as usize].link().next = at;
            self.tail = at;
        }
    }

    /// Removes element `at`, which must be in this list.
    pub fn remove<T: Linked>(&mut self, elements: &mut [T], at: u32) {
        if at == self.head {
            self.pop_front(elements);
            return;
        }
        let Link { previous, next } = *elements[at as usize].link();
        elements[previous as usize].link().next = next;
        match present(next) {
            Some(next) => elements[next as usize].link().previous = previous,
            None => self.tail = previous,
        }
    }
}

/// A stack of elements that are in no list.
#[derive(Debug)]
pub struct Stack {
    top: u32,
}

impl Stack {
    /// A stack without elements.
    pub const EMPTY: Self = Self { top: NIL };

    /// Puts element `at` in, which must be in no list.
    #[inline]
    pub fn push<T: Linked>(&mut self, elements: &mut [T], at: u32) {
        elements[at as usize].link().next = self.top;
        self.top = at;
    }

    /// Takes an element out.
    #[inline]
    pub fn pop<T: Linked>(&mut self, elements: &mut [T]) -> Option<u32> {
        let at = present(self.top)?;
        self.top = elements[at as usize].link().next;
        Some(at)
    }
}

#[inline(always)]
fn present(at: u32) -> Option<u32> {
    if at == NIL { None } else { Some(at) }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    struct Element(Link);

    impl Linked for Element {
        fn link(&mut self) -> &mut Link {
            &mut self.0
        }
    }

    fn contents(list: List, elements: &[Element]) -> Vec<u32> {
        let mut found = Vec::new();
        let mut at = list.front();
        while let Some(element) = at {
            found.push(element);
            at = elements[element as usize].0.next();
        }
        found
    }

    proptest! {
        #[test]
        fn a_list_behaves_like_a_deque(steps in prop::collection::vec((0_u8..5, 0_u32..8), 0..100)) {
            let mut elements: Vec<Element> = (0..8).map(|_| Element(Link::ALONE)).collect();
            let mut list = List::EMPTY;
            let mut model: VecDeque<u32> = VecDeque::new();
            for (step, at) in steps {
                match (step, model.iter().position(|&known| known == at)) {
                    (0, None) => {
                        list.push_back(&mut elements, at);
                        model.push_back(at);
                    }
                    (1, None) => {
                        list.push_front(&mut elements, at);
                        model.push_front(at);
                    }
                    (3, _) => prop_assert_eq!(list.pop_front(&mut elements), model.pop_front()),
                    (4, _) => {
                        list.rotate(&mut elements);
                        model.rotate_left(usize::from(!model.is_empty()));
                    }
                    (2, Some(index)) => {
                        list.remove(&mut elements, at);
                        model.remove(index);
                    }
                    _ => {}
                }
                prop_assert_eq!(contents(list, &elements), Vec::from(model.clone()));
                prop_assert_eq!(list.back(), model.back().copied());
                prop_assert_eq!(list.is_empty(), model.is_empty());
            }
        }
    }
}
