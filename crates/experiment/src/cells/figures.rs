//! The figures of a cell.

use sojourn_measure::cell::{Cell as Figures, Exchanged, Medium, Station};
use sojourn_measure::delays::{Delays, Precision};
use sojourn_units::{Duration, Time, Way};
use sojourn_wifi::airtime::Account;
use sojourn_wifi::{Airtime, Packet};

use super::Cell;

/// Bytes of the Ethernet header, which the counts of the medium include.
const HEADER: u64 = 14;

/// The use of the medium between two instants.
struct Used<'a> {
    from: &'a Airtime,
    to: &'a Airtime,
}

impl Used<'_> {
    fn share(&self, of: impl Fn(&Airtime) -> Duration) -> f64 {
        let all = (self.to.until() - self.from.until()).as_nanos();
        let used = (of(self.to) - of(self.from)).as_nanos();
        if all == 0 {
            0.0
        } else {
            used as f64 / all as f64
        }
    }

    fn count(&self, of: impl Fn(&Airtime) -> u64) -> u64 {
        of(self.to) - of(self.from)
    }

    fn exchanged(
        &self,
        station: u16,
        ways: &[Way],
        lost: [u64; 2],
        latency: &[Delays; 2],
    ) -> Exchanged {
        let sum = |airtime: &Airtime, of: &dyn Fn(&Account) -> u64| -> u64 {
            let accounts = ways.iter().map(|way| airtime.account(station, *way));
            accounts.map(of).sum()
        };
        let transmissions = self.count(|airtime| sum(airtime, &|account| account.transmissions));
        let frames = self.count(|airtime| sum(airtime, &|account| account.frames));
        let ip_bytes =
            self.count(|airtime| sum(airtime, &|account| account.bytes - HEADER * account.packets));
        let mut latencies = Delays::new(Precision::Flow);
        for way in ways {
            latencies.add(&latency[*way as usize]);
        }
        let seconds = (self.to.until() - self.from.until()).as_secs_f64();
        Exchanged {
            airtime_share: self.share(|airtime| {
                Duration::from_nanos(sum(airtime, &|account| account.airtime.as_nanos()))
            }),
            aggregate_frames: (transmissions > 0).then(|| frames as f64 / transmissions as f64),
            retries: sum(self.to, &|account| account.retries),
            goodput_bps: if seconds > 0.0 {
                ip_bytes as f64 * 8.0 / seconds
            } else {
                0.0
            },
            latency_ms: latencies.quantiles(),
            lost_packets: ways.iter().map(|way| lost[*way as usize]).sum(),
        }
    }
}

impl<P: Packet> Cell<P> {
    /// The figures of a cell whose stations have these names, at the end of a run.
    pub fn figures(&self, names: &[String], end: Time) -> Figures {
        let airtime = self.medium.airtime_until(end);
        let used = Used {
            from: &self.at_warmup,
            to: &airtime,
        };
        let counts = &self.counts;
        let station = |(number, name): (u16, &String)| {
            let at = usize::from(number);
            let (lost, latency) = (counts.lost[at], &counts.latency[at]);
            let of = |ways: &[Way]| used.exchanged(number, ways, lost, latency);
            let station = Station {
                both: of(&[Way::Down, Way::Up]),
                down: of(&[Way::Down]),
                up: of(&[Way::Up]),
            };
            (name.clone(), station)
        };
        Figures {
            stations: (0..).zip(names).map(station).collect(),
            medium: Medium {
                idle_share: used.share(Airtime::idle),
                collision_share: used.share(Airtime::collisions),
                collisions: airtime.collided(),
            },
        }
    }

    /// The share of the time after the warm-up that frames of one direction took with their acknowledgements.
    pub fn utilization(&self, way: Way, end: Time) -> f64 {
        let airtime = self.medium.airtime_until(end);
        let used = Used {
            from: &self.at_warmup,
            to: &airtime,
        };
        let stations = 0..self.medium.stations() as u16;
        used.share(|airtime| {
            let of = |station| airtime.account(station, way).airtime;
            stations
                .clone()
                .fold(Duration::ZERO, |sum, station| sum + of(station))
        })
    }
}
