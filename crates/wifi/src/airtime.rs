//! What the medium was used for. The parts sum to the elapsed time.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_units::{Duration, Time, Way};

/// The airtime of a station's frames in one direction, and how many were received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Account {
    /// Airtime of exchanges, and of transmissions without an answer.
    pub airtime: Duration,
    /// Transmissions.
    pub transmissions: u64,
    /// Frames in these transmissions. The mean size of aggregates is `frames / transmissions`.
    pub frames: u64,
    /// Transmissions that repeat one without an answer.
    pub retries: u64,
    /// Packets received.
    pub packets: u64,
    /// Bytes of these, as [`sojourn_aqm::Packet::bytes`] counts.
    pub bytes: u64,
}

/// What the medium was used for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Airtime {
    /// By station: for each direction, down and up.
    accounts: Vec<[Account; 2]>,
    collisions: Duration,
    collided: u64,
    idle: Duration,
    /// Until when the medium has been accounted for.
    until: Time,
}

const fn side(way: Way) -> usize {
    match way {
        Way::Down => 0,
        Way::Up => 1,
    }
}

impl Airtime {
    pub(crate) fn new(stations: usize) -> Self {
        Self {
            accounts: vec![[Account::default(); 2]; stations],
            collisions: Duration::ZERO,
            collided: 0,
            idle: Duration::ZERO,
            until: Time::ZERO,
        }
    }

    /// A station's account in a direction.
    pub fn account(&self, station: u16, way: Way) -> &Account {
        &self.accounts[usize::from(station)][side(way)]
    }

    /// Airtime lost to collisions.
    pub const fn collisions(&self) -> Duration {
        self.collisions
    }

    /// How often nodes collided.
    pub const fn collided(&self) -> u64 {
        self.collided
    }

    /// Airtime in which nobody sent: interframe spaces, back-off, and nothing to send.
    pub const fn idle(&self) -> Duration {
        self.idle
    }

    /// The time until which the medium has been accounted for.
    pub const fn until(&self) -> Time {
        self.until
    }

    /// The sum of all uses, which equals [`Airtime::until`].
    pub fn total(&self) -> Duration {
        let accounts = self.accounts.iter().flatten();
        accounts.fold(self.idle + self.collisions, |sum, account| {
            sum + account.airtime
        })
    }

    pub(crate) fn of(&mut self, station: u16, way: Way) -> &mut Account {
        &mut self.accounts[usize::from(station)][side(way)]
    }

    /// Nobody sent until `now`.
    pub(crate) fn note_idle(&mut self, now: Time) {
        self.idle = self.idle + (now - self.until);
        self.until = now;
    }

    /// A station's exchange ends.
    pub(crate) fn note_exchange(&mut self, station: u16, way: Way, now: Time) {
        let span = now - self.until;
        let account = self.of(station, way);
        account.airtime = account.airtime + span;
        self.until = now;
    }

    /// A collision ends.
    pub(crate) fn note_collision(&mut self, now: Time) {
        self.collisions = self.collisions + (now - self.until);
        self.collided += 1;
        self.until = now;
    }
}
