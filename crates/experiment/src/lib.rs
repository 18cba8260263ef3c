//! The experiment file: what may stand in it, checked and with every default filled in.
//!
//! [`model`] holds the result of reading a file, which every backend runs from.

pub mod model;
