//! 802.11 as a shared medium.
#![no_std]
extern crate alloc;

pub mod frames;
pub mod phy;
