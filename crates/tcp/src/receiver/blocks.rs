//! The blocks that selective acknowledgements report (RFC 2018 §4).
//!
//! As Linux, a receiver remembers a few blocks and extends only these. A segment between two ranges that it no longer
//! remembers is reported as a block of its own, though RFC 2018 asks for all of the contiguous data.

use crate::segment::SackBlock;
use crate::seq::Seq;

/// Blocks that are remembered (Linux's TCP_NUM_SACKS).
const REMEMBERED: usize = 4;

/// The blocks last reported, the most recent first.
#[derive(Clone, Copy, Debug)]
pub struct Blocks([SackBlock; REMEMBERED]);

impl Blocks {
    pub const NONE: Self = Self([SackBlock::NONE; REMEMBERED]);

    /// The blocks, the most recent first.
    pub fn iter(&self) -> impl Iterator<Item = SackBlock> {
        self.0.into_iter().take_while(|block| !block.is_none())
    }

    /// How many blocks come before the one that new data extends; all if it extends none.
    pub fn number_before(&self, new: SackBlock) -> usize {
        self.iter().take_while(|known| !known.touches(new)).count()
    }

    /// Puts the block that new data extends or begins first in the next report (Linux's tcp_sack_new_ofo_skb).
    pub fn report(&mut self, new: SackBlock) {
        let [latest, others @ ..] = &mut self.0;
        if latest.end == new.start && !latest.is_none() {
            // Usually data goes on behind the latest block, and there is a hole behind it.
            let longer = latest.with(new);
            if !others.iter().any(|block| longer.touches(*block)) {
                *latest = longer;
                return;
            }
        }
        self.report_other(new);
    }

    /// The same of data that begins a block, joins some or extends another than the latest.
    #[cold]
    #[inline(never)]
    fn report_other(&mut self, new: SackBlock) {
        let mut first = new;
        self.keep(|block| {
            let joins = first.touches(block);
            if joins {
                first = first.with(block);
            }
            !joins
        });
        self.0.rotate_right(1);
        self.0[0] = first;
    }

    /// Forgets what is acknowledged by `next`.
    pub fn forget_before(&mut self, next: Seq) {
        self.keep(|block| block.end.after(next));
    }

    /// Keeps some blocks, in their order.
    fn keep(&mut self, mut stays: impl FnMut(SackBlock) -> bool) {
        let mut kept = [SackBlock::NONE; REMEMBERED];
        let staying = self
            .0
            .into_iter()
            .filter(|block| !block.is_none() && stays(*block));
        for (entry, block) in kept.iter_mut().zip(staying) {
            *entry = block;
        }
        self.0 = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u32, end: u32) -> SackBlock {
        SackBlock {
            start: Seq(start),
            end: Seq(end),
        }
    }

    fn reported(new: &[(u32, u32)]) -> (Blocks, Vec<(u32, u32)>) {
        let mut blocks = Blocks::NONE;
        for (start, end) in new {
            blocks.report(block(*start, *end));
        }
        let list = blocks
            .iter()
            .map(|block| (block.start.0, block.end.0))
            .collect();
        (blocks, list)
    }

    #[test]
    fn the_block_that_grows_comes_first() {
        let (_, list) = reported(&[(10, 20), (30, 40), (50, 60), (40, 45)]);
        assert_eq!(list, [(30, 45), (50, 60), (10, 20)]);
    }

    #[test]
    fn data_between_two_blocks_joins_them() {
        let (_, list) = reported(&[(10, 20), (70, 80), (30, 40), (50, 60), (20, 30)]);
        assert_eq!(list, [(10, 40), (50, 60), (70, 80)]);
    }

    /// What goes on behind the latest block joins it with the block behind the hole, though that is not the next in the list.
    #[test]
    fn the_latest_block_that_grows_is_joined_with_what_it_reaches() {
        let (_, list) = reported(&[(30, 40), (50, 60), (10, 20), (20, 25)]);
        assert_eq!(list, [(10, 25), (50, 60), (30, 40)]);
        let (_, list) = reported(&[(30, 40), (50, 60), (10, 20), (20, 25), (25, 30)]);
        assert_eq!(list, [(10, 40), (50, 60)]);
    }

    /// Observed on kernel 6.1: a retransmission between the fifth and the sixth block.
    #[test]
    fn data_beside_a_forgotten_block_is_a_block_of_its_own() {
        let (_, list) = reported(&[(10, 20), (30, 40), (50, 60), (70, 80), (90, 100), (20, 30)]);
        assert_eq!(list, [(20, 40), (90, 100), (70, 80), (50, 60)]);
        let (_, list) = reported(&[
            (10, 20),
            (30, 40),
            (50, 60),
            (70, 80),
            (90, 99),
            (100, 110),
            (20, 30),
        ]);
        assert_eq!(list, [(20, 30), (100, 110), (90, 99), (70, 80)]);
    }

    #[test]
    fn what_is_acknowledged_is_forgotten() {
        let (mut blocks, _) = reported(&[(10, 20), (30, 40), (50, 60)]);
        blocks.forget_before(Seq(40));
        assert_eq!(blocks.iter().collect::<Vec<_>>(), [block(50, 60)]);
        assert_eq!(blocks.number_before(block(45, 50)), 0);
        assert_eq!(blocks.number_before(block(41, 42)), 1);
    }
}
