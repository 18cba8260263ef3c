//! Reads what arrives on a connection and discards it, without the run's loop.
//!
//! A thread waits in one call of the kernel that returns after a whole block. The kernel takes each segment from the
//! socket as soon as it arrives, and treats it in every respect like one that is read by a call of its own
//! (tcp_recvmsg: acknowledgements, the tuning of the receive window). In User-Mode Linux the calls of the kernel are
//! what a run's time is spent on.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::thread::{Builder, JoinHandle};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};

/// Bytes per call, as receivers of the simulator read (`BLOCK` of crates/tcp). They are not copied to this memory.
const BLOCK: usize = 256 << 10;
/// The thread's stack. The thread only calls the kernel, so little is enough.
const STACK: usize = 64 << 10;

/// A thread that reads from a socket until the peer closes it or the connection fails.
#[derive(Debug)]
pub struct Discard {
    socket: TcpStream,
    thread: Option<JoinHandle<u64>>,
}

impl Discard {
    /// Begins to read from a socket, which must be a blocking one.
    ///
    /// # Errors
    /// The kernel has no room for a thread.
    pub fn begin(socket: &TcpStream) -> io::Result<Self> {
        let socket = socket.try_clone()?;
        let own = socket.try_clone()?;
        let thread = Builder::new()
            .stack_size(STACK)
            .spawn(move || read_to_end(&own))?;
        Ok(Self {
            socket,
            thread: Some(thread),
        })
    }

    /// Waits until everything has been read: the peer must have closed the connection, or it must have failed. Returns
    /// the number of bytes. Reading from the socket does not wait afterwards.
    pub fn finish(mut self) -> u64 {
        // If this fails, the connection has ended, and reading does not wait.
        let _ = self.socket.set_nonblocking(true);
        self.thread.take().map_or(0, total)
    }

    /// Ends the connection and returns the number of bytes read.
    pub fn end(self) -> u64 {
        // If this fails, the connection has ended already.
        let _ = self.socket.shutdown(Shutdown::Both);
        self.finish()
    }
}

impl Drop for Discard {
    /// Ends the thread.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // As in `end`.
            let _ = self.socket.shutdown(Shutdown::Both);
            total(thread);
        }
    }
}

fn total(thread: JoinHandle<u64>) -> u64 {
    // The thread does not panic.
    thread.join().unwrap_or_default()
}

/// Returns the number of bytes read.
fn read_to_end(socket: &TcpStream) -> u64 {
    let mut block = vec![0; BLOCK];
    let flags = MsgFlags::MSG_WAITALL | MsgFlags::MSG_TRUNC;
    let mut read = 0;
    loop {
        match recv(socket.as_raw_fd(), &mut block, flags) {
            Ok(0) => return read,
            Ok(length) => read += length as u64,
            Err(Errno::EINTR) => {}
            Err(_) => return read,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    /// Both ends of a connection: the one that sends, and the one that reads.
    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (sender, listener.accept().unwrap().0)
    }

    #[test]
    fn everything_is_read_although_no_block_is_full_at_the_end() {
        let (mut sender, receiver) = pair();
        let discard = Discard::begin(&receiver).unwrap();
        let bytes = 3 * BLOCK + 17;
        sender.write_all(&vec![1; bytes]).unwrap();
        sender.shutdown(Shutdown::Write).unwrap();
        assert_eq!(discard.finish(), bytes as u64);
    }

    #[test]
    fn a_reader_that_waits_can_be_ended() {
        for is_dropped in [false, true] {
            let (mut sender, receiver) = pair();
            let discard = Discard::begin(&receiver).unwrap();
            sender.write_all(&[1; 100]).unwrap();
            // The sender keeps the connection open.
            if is_dropped {
                drop(discard);
            } else {
                assert!(discard.end() <= 100);
            }
        }
    }
}
