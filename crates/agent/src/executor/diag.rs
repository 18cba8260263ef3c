//! TCP_INFO of a namespace's connections, read by netlink (sock_diag(7)).

use std::os::fd::OwnedFd;

use nix::sys::socket::SockProtocol;

use super::socket::{DUMP, dump, open};
use super::{Context, Failure};
use crate::netlink::{attribute, number, request};

/// SOCK_DIAG_BY_FAMILY (linux/sock_diag.h).
const BY_FAMILY: u16 = 20;
/// INET_DIAG_INFO (linux/inet_diag.h).
const INFO: u16 = 2;
const AF_INET: u8 = 2;
const IPPROTO_TCP: u8 = 6;
/// TCP_ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING: a bit for each.
const CONNECTED: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
/// TCPI_OPT_ECN (linux/tcp.h).
const OPT_ECN: u8 = 8;
/// The slow start threshold before there is one (TCP_INFINITE_SSTHRESH).
const INFINITE: u32 = 0x7fff_ffff;
/// Offset of idiag_rqueue in inet_diag_msg, and the length of that.
const UNREAD: usize = 56;
const MESSAGE: usize = 72;

/// TCP_INFO of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection {
    /// The local port.
    pub local_port: u16,
    /// The remote port.
    pub remote_port: u16,
    /// Smoothed round-trip time in microseconds (tcpi_rtt).
    pub rtt_us: u32,
    /// The state of loss recovery (tcpi_ca_state).
    pub state: u8,
    /// Slow start threshold in segments (tcpi_snd_ssthresh), once there is one.
    pub ssthresh: Option<u32>,
    /// Congestion window in segments (tcpi_snd_cwnd).
    pub cwnd: u32,
    /// The rate that TCP would pace at, in bytes per second (tcpi_pacing_rate). Most congestion controls do not pace.
    pub pacing: u64,
    /// Segments retransmitted so far (tcpi_total_retrans).
    pub retransmits: u64,
    /// Payload bytes sent so far, without retransmissions (tcpi_bytes_sent − tcpi_bytes_retrans).
    pub sent: u64,
    /// Payload bytes that the program has read so far (tcpi_bytes_received − idiag_rqueue).
    pub read: u64,
    /// Whether ECN was negotiated.
    pub ecn: bool,
}

/// A netlink socket in one namespace.
pub struct Diag(OwnedFd);

impl Diag {
    /// Opens the socket.
    ///
    /// # Errors
    /// The kernel does not support it.
    pub fn open(namespace: &str) -> Result<Self, Failure> {
        open(Some(namespace), SockProtocol::NetlinkSockDiag).map(Self)
    }

    /// All TCP connections of the namespace.
    ///
    /// # Errors
    /// The kernel refuses, for example because it lacks tcp_diag.
    pub fn connections(&self) -> Result<Vec<Connection>, Failure> {
        let mut connections = Vec::new();
        dump(&self.0, &ask(), |body| connections.extend(connection(body)))
            .context(|| "asking for TCP_INFO by netlink (tcp_diag)".into())?;
        Ok(connections)
    }
}

/// A request for all connected IPv4 TCP sockets with their TCP_INFO.
fn ask() -> Vec<u8> {
    let mut body = vec![AF_INET, IPPROTO_TCP, 1 << (INFO - 1), 0];
    body.extend(CONNECTED.to_ne_bytes());
    body.extend([0; 48]);
    request(BY_FAMILY, DUMP, &body)
}

fn connection(body: &[u8]) -> Option<Connection> {
    let port = |at: usize| Some(u16::from_be_bytes(body.get(at..at + 2)?.try_into().ok()?));
    let info = attribute(body.get(MESSAGE..)?, INFO)?;
    // Offsets in tcp_info (linux/tcp.h), to which new fields are only appended.
    let received = number::<8>(info, 128)?;
    let sent = number::<8>(info, 200)?;
    let retransmitted = number::<8>(info, 208)?;
    Some(Connection {
        local_port: port(4)?,
        remote_port: port(6)?,
        rtt_us: number::<4>(info, 68)? as u32,
        state: number::<1>(info, 1)? as u8,
        ssthresh: Some(number::<4>(info, 76)? as u32).filter(|known| *known < INFINITE),
        cwnd: number::<4>(info, 80)? as u32,
        pacing: number::<8>(info, 104)?,
        retransmits: number::<4>(info, 100)?,
        sent: sent.saturating_sub(retransmitted),
        read: received.saturating_sub(number::<4>(body, UNREAD)?),
        ecn: number::<1>(info, 5)? as u8 & OPT_ECN != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_read_from_its_message() {
        let mut info = vec![0; 232];
        info[1] = 3;
        info[5] = 7 | OPT_ECN;
        info[68..72].copy_from_slice(&100_250_u32.to_le_bytes());
        info[76..80].copy_from_slice(&21_u32.to_le_bytes());
        info[80..84].copy_from_slice(&42_u32.to_le_bytes());
        info[104..112].copy_from_slice(&1_250_000_u64.to_le_bytes());
        info[100..104].copy_from_slice(&9_u32.to_le_bytes());
        info[128..136].copy_from_slice(&5000_u64.to_le_bytes());
        info[200..208].copy_from_slice(&14_480_u64.to_le_bytes());
        info[208..216].copy_from_slice(&1448_u64.to_le_bytes());
        let mut body = vec![0; MESSAGE];
        body[4..6].copy_from_slice(&1024_u16.to_be_bytes());
        body[6..8].copy_from_slice(&10_001_u16.to_be_bytes());
        body[56..60].copy_from_slice(&600_u32.to_le_bytes());
        body.extend([6, 0, 8, 0, 0, 0, 0, 0]); // another attribute of 6 bytes, padded to 8
        body.extend(236_u16.to_le_bytes());
        body.extend(INFO.to_le_bytes());
        body.extend(info);
        assert_eq!(
            connection(&body),
            Some(Connection {
                local_port: 1024,
                remote_port: 10_001,
                rtt_us: 100_250,
                state: 3,
                ssthresh: Some(21),
                cwnd: 42,
                pacing: 1_250_000,
                retransmits: 9,
                sent: 13_032,
                read: 4400,
                ecn: true,
            })
        );
    }

    #[test]
    fn a_request_has_the_length_that_it_states() {
        assert_eq!(ask().len(), 72);
    }
}
