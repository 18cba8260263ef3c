//! A TCP endpoint as a pure state machine.
