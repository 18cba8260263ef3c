//! The exchange before bulk data on a connection that opens before the flow's start.

use sojourn_traffic::{Id, OPENS_AHEAD};
use sojourn_units::{Duration, Time};

/// How far the exchange of a flow is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exchange {
    /// The connection is to be opened at this time.
    Ahead(Time),
    /// The connection counts as opened before the run. It is made at this time, the flow's start.
    Before(Time),
    /// The connection has been opened; the exchange is not sent.
    Open(Id),
    /// The bytes are sent. The application has written so much data.
    Sent(Id, u64),
    /// It is over, or the flow has none.
    Over,
}

impl Exchange {
    /// The exchange of a flow that starts at `start`.
    pub fn of(start: Time, rtt: Duration) -> Self {
        let ahead = rtt * OPENS_AHEAD;
        if start < Time::ZERO + ahead {
            return Self::Before(start);
        }
        Self::Ahead(start.saturating_sub(ahead))
    }
}
