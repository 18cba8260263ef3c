//! The exchange before the data of a flow whose connection opens before its start.
//!
//! A few bytes are sent at the flow's start, and their acknowledgement starts the data, as in the simulator. The exchange gives
//! the kernel's congestion control a round-trip time before the flow has a queue of its own, because the kernel does not pass
//! on the round-trip time of the handshake. CUBIC's HyStart compares later times with this one.

use std::io::Write;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

use nix::sys::socket::{MsgFlags, TimestampingFlag, recvmsg, setsockopt, sockopt};

use sojourn_traffic::EXCHANGE_BYTES;

use super::is_for_later;

/// SOF_TIMESTAMPING_TX_ACK and SOF_TIMESTAMPING_OPT_TSONLY (linux/net_tstamp.h): the kernel puts a message, without the
/// data, on the socket's error queue when the data is acknowledged.
const ON_ACKNOWLEDGEMENT: u32 = 1 << 9 | 1 << 11;

/// The state of the exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The flow has not started.
    Ahead,
    /// To be sent as soon as the connection is established.
    Due,
    /// In transit.
    Sent,
    /// There is no exchange, or it is acknowledged.
    Over,
}

/// The exchange before the data of a connection.
#[derive(Debug)]
pub struct Greeting {
    state: State,
    /// Its bytes sent.
    pub sent: u64,
    /// Its bytes that the receiver has not read.
    unread: u64,
}

impl Greeting {
    /// No exchange: data begins at once.
    pub const NONE: Self = Self {
        state: State::Over,
        sent: 0,
        unread: 0,
    };

    /// An exchange that waits for the flow's start.
    pub const fn ahead() -> Self {
        Self {
            state: State::Ahead,
            ..Self::NONE
        }
    }

    /// An exchange that begins on another machine: its bytes arrive first.
    pub const fn to_come() -> Self {
        Self {
            sent: EXCHANGE_BYTES as u64,
            unread: EXCHANGE_BYTES as u64,
            ..Self::NONE
        }
    }

    /// Starts the flow.
    pub const fn start(&mut self) {
        self.state = State::Due;
    }

    /// True if data may be sent.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Continues as far as possible. After sending, the socket becomes ready when the acknowledgement arrives.
    ///
    /// # Errors
    /// The connection has failed.
    pub fn advance(&mut self, stream: &mut TcpStream) -> std::io::Result<()> {
        if self.state == State::Due {
            setsockopt(stream, sockopt::Timestamping, &flags(ON_ACKNOWLEDGEMENT))?;
            match stream.write(&[0; EXCHANGE_BYTES]) {
                Ok(written) => {
                    self.state = State::Sent;
                    (self.sent, self.unread) = (written as u64, written as u64);
                }
                Err(error) if is_for_later(&error) => {}
                Err(error) => return Err(error),
            }
        } else if self.state == State::Sent
            && recvmsg::<()>(stream.as_raw_fd(), &mut [], None, MsgFlags::MSG_ERRQUEUE).is_ok()
        {
            setsockopt(stream, sockopt::Timestamping, &flags(0))?;
            self.state = State::Over;
        }
        Ok(())
    }

    /// Its bytes that the receiver has read.
    pub const fn received(&self) -> u64 {
        self.sent - self.unread
    }

    /// Subtracts the exchange's bytes from those that the receiver has read; returns the rest.
    pub fn strip(&mut self, bytes: u64) -> u64 {
        let own = bytes.min(self.unread);
        self.unread -= own;
        bytes - own
    }
}

/// The crate has names for only some of the flags.
const fn flags(bits: u32) -> TimestampingFlag {
    TimestampingFlag::from_bits_retain(bits)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn data_waits_until_the_greeting_is_acknowledged() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        let mut greeting = Greeting::ahead();
        greeting.advance(&mut sender).unwrap();
        assert_eq!((greeting.state, greeting.sent), (State::Ahead, 0));
        greeting.start();
        greeting.advance(&mut sender).unwrap();
        assert_eq!((greeting.is_over(), greeting.sent), (false, 8));
        let began = Instant::now();
        while !greeting.is_over() && began.elapsed() < Duration::from_secs(10) {
            greeting.advance(&mut sender).unwrap();
            sleep(Duration::from_millis(1));
        }
        assert!(greeting.is_over());
        sender.write_all(&[1; 5]).unwrap();
        let mut read = 0;
        while read < 13 {
            read += receiver.read(&mut [0; 64]).unwrap();
        }
        // However the bytes arrive, the first eight belong to the exchange.
        assert_eq!(
            (greeting.strip(3), greeting.strip(10), greeting.strip(4)),
            (0, 5, 4)
        );
        assert_eq!(greeting.received(), 8);
    }
}
