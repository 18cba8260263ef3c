//! A discrete-event simulator of bottleneck links.
