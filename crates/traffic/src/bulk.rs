//! A connection with data without end.

use sojourn_units::Time;

use crate::application::{Application, Connections, Id, Identity, Meter, Side, UNLIMITED};

/// One connection, from the start to the stop.
pub struct Bulk {
    stop: Time,
    state: State,
}

enum State {
    /// The connection is to be opened at this time.
    Waiting(Time),
    Open(Id),
    Stopped,
}

impl Bulk {
    /// A transfer that has not started.
    pub const fn new(identity: &Identity) -> Self {
        Self {
            stop: identity.stop,
            state: State::Waiting(identity.start),
        }
    }
}

impl Application for Bulk {
    fn next_timer(&self) -> Option<Time> {
        match self.state {
            State::Waiting(start) => Some(start),
            State::Open(_) => Some(self.stop),
            State::Stopped => None,
        }
    }

    fn hears_arrivals(&self) -> bool {
        false
    }

    fn on_timer(&mut self, _now: Time, connections: &mut dyn Connections, _: &mut dyn Meter) {
        self.state = match self.state {
            State::Waiting(_) => {
                let id = connections.open(Side::Sending);
                connections.write(id, Side::Sending, UNLIMITED);
                State::Open(id)
            }
            State::Open(id) => {
                connections.close(id, Side::Sending);
                State::Stopped
            }
            State::Stopped => State::Stopped,
        };
    }
}
