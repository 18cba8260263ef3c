//! Requests and responses over connections.

use sojourn_units::{Duration, Time};

use crate::application::{Connections, Id, Side};

/// The exchanges in progress, one per connection. The receiving side sends requests, the sending side responses.
#[derive(Default)]
pub struct Exchanges(Vec<Exchange>);

struct Exchange {
    connection: Id,
    /// All bytes of requests and responses on this connection, including the current exchange.
    asked: u64,
    answered: u64,
    began: Time,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The request is in transit.
    Asking,
    /// The server has the request.
    Asked,
    /// The response is in transit.
    Answering,
    /// The client has the response.
    Done,
}

/// The effect of an arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// The server has a request and must call [`Exchanges::respond`].
    Asked,
    /// The client has its response, this long after its request.
    Answered(Duration),
}

impl Exchanges {
    /// Sends a request of `bytes` bytes from the client.
    pub fn request(&mut self, connections: &mut dyn Connections, id: Id, bytes: u64, now: Time) {
        let at = self.find(id).unwrap_or_else(|| {
            self.0.push(Exchange {
                connection: id,
                asked: 0,
                answered: 0,
                began: now,
                state: State::Done,
            });
            self.0.len() - 1
        });
        let exchange = &mut self.0[at];
        exchange.asked += bytes;
        exchange.began = now;
        exchange.state = State::Asking;
        connections.write(id, Side::Receiving, bytes);
    }

    /// Sends a response of `bytes` bytes from the server.
    pub fn respond(&mut self, connections: &mut dyn Connections, id: Id, bytes: u64) {
        if let Some(at) = self.find(id) {
            self.0[at].answered += bytes;
            self.0[at].state = State::Answering;
            connections.write(id, Side::Sending, bytes);
        }
    }

    /// Handles a segment that has arrived at one end of a connection.
    pub fn on_arrival(
        &mut self,
        connections: &mut dyn Connections,
        id: Id,
        side: Side,
        now: Time,
    ) -> Option<Progress> {
        let exchange = self.find(id).map(|at| &mut self.0[at])?;
        let received = connections.received(id, side);
        match (exchange.state, side) {
            (State::Asking, Side::Sending) if received >= exchange.asked => {
                exchange.state = State::Asked;
                Some(Progress::Asked)
            }
            (State::Answering, Side::Receiving) if received >= exchange.answered => {
                exchange.state = State::Done;
                Some(Progress::Answered(now - exchange.began))
            }
            _ => None,
        }
    }

    /// Handles the end of a connection. Returns true if an exchange was in progress.
    pub fn on_end(&mut self, id: Id) -> bool {
        let Some(at) = self.find(id) else {
            return false;
        };
        self.0.swap_remove(at).state != State::Done
    }

    fn find(&self, id: Id) -> Option<usize> {
        self.0.iter().position(|exchange| exchange.connection == id)
    }
}
