//! On-off traffic over TCP: at a rate over one connection, or at full speed over one connection per on time.

use crate::jitter::Jitter;
use crate::kind;
use sojourn_units::{Rate, Time};

use crate::alternation::Alternation;
use crate::application::{Application, Connections, Id, Identity, Meter, Side, UNLIMITED};

/// An application that alternates between on and off.
pub struct OnOff {
    alternation: Alternation,
    /// The rate at which it writes while on; `None` for as fast as the connection accepts data.
    rate: Option<Rate>,
    packet: u64,
    /// Bytes in the connection's send buffer.
    send_buffer: u64,
    stop: Time,
    /// The current or next on time.
    on: (Time, Time),
    /// Writes since the on time began.
    written: u64,
    jitter: Jitter,
    /// When it next writes, opens or closes.
    next: Time,
    connection: Option<Id>,
    stopped: bool,
}

impl OnOff {
    /// An application before its start.
    pub fn new(identity: &Identity, config: &kind::OnOff, rate: Option<Rate>, seed: u64) -> Self {
        let mut alternation = Alternation::new(identity, config, seed);
        let mut jitter = Jitter::new(identity.jitter, identity.flow, seed);
        let on = alternation.next_on();
        Self {
            on,
            next: jitter.late(on.0),
            jitter,
            alternation,
            rate,
            packet: u64::from(config.packet),
            send_buffer: config.send_buffer.unwrap_or(u64::MAX),
            stop: identity.stop,
            written: 0,
            connection: None,
            stopped: false,
        }
    }

    /// When the next write is due, if it writes at a rate: in a later on time if this one is over by then.
    fn next_write(&mut self, rate: Rate) -> Time {
        loop {
            let due = self.on.0 + rate.tx_time(self.written.saturating_mul(self.packet));
            if due < self.on.1 {
                return due;
            }
            self.turn_off();
        }
    }

    fn turn_off(&mut self) {
        self.on = self.alternation.next_on();
        self.written = 0;
    }

    /// Writes the data due at `rate`. Data that does not fit in the send buffer is discarded.
    fn write(&mut self, rate: Rate, now: Time, connections: &mut dyn Connections) {
        while self.next <= now {
            let id = *self
                .connection
                .get_or_insert_with(|| connections.open(Side::Sending));
            let filled = connections.buffered(id, Side::Sending);
            if filled.saturating_add(self.packet) <= self.send_buffer {
                connections.write(id, Side::Sending, self.packet);
            }
            self.written += 1;
            let due = self.next_write(rate);
            self.next = self.jitter.late(due);
        }
    }

    /// Opens or closes connections that are due.
    fn switch(&mut self, now: Time, connections: &mut dyn Connections) {
        if self.next > now {
            return;
        }
        let due = match self.connection.take() {
            None => {
                let id = connections.open(Side::Sending);
                connections.write(id, Side::Sending, UNLIMITED);
                self.connection = Some(id);
                self.on.1
            }
            Some(id) => {
                connections.close(id, Side::Sending);
                self.turn_off();
                self.on.0
            }
        };
        self.next = self.jitter.late(due);
    }
}

impl Application for OnOff {
    fn next_timer(&self) -> Option<Time> {
        (!self.stopped).then_some(self.next.min(self.stop))
    }

    fn on_timer(&mut self, now: Time, connections: &mut dyn Connections, _: &mut dyn Meter) {
        if now >= self.stop {
            self.stopped = true;
            if let Some(id) = self.connection.take() {
                connections.close(id, Side::Sending);
            }
            return;
        }
        match self.rate {
            Some(rate) => self.write(rate, now, connections),
            None => self.switch(now, connections),
        }
    }

    fn on_end(&mut self, id: Id, now: Time, _: &mut dyn Connections, _: &mut dyn Meter) {
        if self.connection == Some(id) {
            self.connection = None; // the handshake failed; the next write tries again
            if self.rate.is_none() {
                self.next = now;
            }
        }
    }
}
