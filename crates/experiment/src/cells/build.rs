//! Builds a cell from its link.

use sojourn_aqm::{Catalogue, Limit, Settings};
use sojourn_path::link::BoxedQdisc;
use sojourn_traffic::streams;
use sojourn_units::Value;
use sojourn_wifi::queues::mac80211::{self, FqSettings};
use sojourn_wifi::{Medium, Packet, PriorityMap, Protection, Station, UserPriority, modes};

use crate::derived::{self, Egress};
use crate::model::Experiment;
use crate::network::{RunError, at, discipline, settings};
use crate::resolved::Values;
use crate::wifi::{Queueing, Standard, Wifi};

/// The discipline built into mac80211.
const OWN: &str = "fq_codel";

/// A built cell.
pub struct Built<P> {
    /// The number of its link.
    pub link: usize,
    /// The number of the access point's queue; the stations' queue is the next.
    pub queue: usize,
    /// The cell.
    pub medium: Medium<P>,
    /// The names of the inner queues: down, up.
    pub inner: [&'static [&'static str]; 2],
}

/// The cells of arm number `queue`, in the order in which they are added to a network, behind its links.
///
/// # Errors
/// A discipline is unknown, refuses its settings, or cannot be used where the experiment puts it.
pub fn cells<P: Packet + Send + 'static>(
    experiment: &Experiment,
    queue: usize,
    seed: u64,
    catalogue: &Catalogue<P>,
) -> Result<Vec<Built<P>>, RunError> {
    let egresses = derived::queues(experiment, queue);
    let of_links = egresses.iter().filter(|egress| egress.link.wifi.is_none());
    let first = of_links.count();
    let mut cells = Vec::new();
    // A cell has two queues: the access point's and the stations'.
    for (number, pair) in egresses[first..].chunks_exact(2).enumerate() {
        let (medium, inner) = build(experiment, queue, seed, catalogue, [&pair[0], &pair[1]])?;
        cells.push(Built {
            link: pair[0].hop.link,
            queue: first + 2 * number,
            medium,
            inner,
        });
    }
    Ok(cells)
}

/// A cell, and the names of the inner queues of both directions.
type BuiltMedium<P> = (Medium<P>, [&'static [&'static str]; 2]);

/// Builds the cell of a link. `egresses` are its queues: the access point's and the stations'.
fn build<P: Packet + Send + 'static>(
    experiment: &Experiment,
    queue: usize,
    seed: u64,
    catalogue: &Catalogue<P>,
    egresses: [&Egress<'_>; 2],
) -> Result<BuiltMedium<P>, RunError> {
    let [down, up] = egresses;
    let link = down.link;
    let wifi = link.wifi.as_ref().expect("it is a cell");
    let mut makers = egresses.map(|egress| Maker {
        experiment,
        queue,
        catalogue,
        egress,
        wifi,
        inner: &[],
    });
    let access_point = makers[0].queueing(wifi.stations.len())?;
    let known = modes(wifi.standard, wifi.width, wifi.streams, wifi.guard);
    let mut stations = Vec::with_capacity(wifi.stations.len());
    for station in &wifi.stations {
        stations.push(Station {
            modes: known.clone(),
            rate_control: station.rate,
            snr_db: station.snr_db,
            fading: station.fading,
            queueing: makers[1].queueing(1)?,
        });
    }
    debug_assert_eq!(up.hop.link, down.hop.link);
    let (major, minor) = match wifi.queueing {
        Queueing::Mac80211 => wifi.kernel,
        // As disciplines stood above devices until Linux 4.9.
        Queueing::Qdisc => (4, 9),
    };
    let has_qos = wifi.standard.has_qos();
    let cell = sojourn_wifi::Cell {
        priorities: has_qos.then(|| PriorityMap::of_kernel(major, minor)),
        protection: Protection::RtsAbove(wifi.rts_above.unwrap_or(u32::MAX)),
        seed: streams::seed(seed, &format!("wifi/{}", link.name)),
        ..sojourn_wifi::Cell::new(wifi.standard)
    };
    let inner = [makers[0].inner, makers[1].inner];
    Ok((Medium::new(cell, access_point, stations), inner))
}

/// The values that mac80211's own FQ-CoDel uses in a queue; `None` if it has another discipline.
///
/// # Errors
/// As [`cells`].
pub fn in_use(
    experiment: &Experiment,
    queue: usize,
    egress: &Egress<'_>,
) -> Result<Option<Values>, RunError> {
    if let Some(wifi) = &egress.link.wifi {
        check(queue, egress, wifi)?;
    }
    match &egress.link.wifi {
        Some(wifi) if has_own(wifi, egress) => {
            let settings = settings(experiment, egress);
            let fq = flow_queueing(&settings, wifi.standard).map_err(|(key, message)| {
                RunError::Settings {
                    key: egress.key_of(queue, &key),
                    message,
                }
            })?;
            let mut values: Values = vec![
                ("ecn".into(), Value::Flag(fq.ecn)),
                ("flows".into(), Value::Count(fq.flows.into())),
                ("quantum".into(), Value::Bytes(fq.quantum.into())),
                ("target".into(), Value::Duration(fq.codel.0)),
                ("interval".into(), Value::Duration(fq.codel.1)),
            ];
            if settings.limit.is_none() {
                values.push(("limit".into(), Value::Packets(fq.packets)));
            }
            Ok(Some(values))
        }
        _ => Ok(None),
    }
}

fn has_own(wifi: &Wifi, egress: &Egress<'_>) -> bool {
    wifi.queueing == Queueing::Mac80211 && egress.arm.aqm == OWN
}

/// The constants of mac80211's FQ-CoDel, replaced by an arm's values where it gives some. The error is the key at fault
/// and what is accepted.
fn flow_queueing(settings: &Settings, standard: Standard) -> Result<FqSettings, (String, String)> {
    let mut fq = match standard {
        Standard::Ac => FqSettings::LINUX,
        Standard::B | Standard::G | Standard::N => FqSettings::LINUX_SMALL,
    };
    match settings.limit {
        None => {}
        Some(Limit::Packets(packets)) => fq.packets = packets,
        Some(Limit::Bytes(_)) => {
            let must = "must be in packets, as mac80211's FQ-CoDel counts them";
            return Err(("limit".into(), must.into()));
        }
    }
    for (key, value) in &settings.values {
        match (key.as_str(), value) {
            ("ecn", Value::Flag(ecn)) => fq.ecn = *ecn,
            ("flows", Value::Count(flows)) => fq.flows = *flows as u32,
            ("quantum", Value::Bytes(quantum)) => fq.quantum = *quantum as u32,
            ("target", Value::Duration(target)) => fq.codel.0 = *target,
            ("interval", Value::Duration(interval)) => fq.codel.1 = *interval,
            _ => {
                let must = "must be left out at a link of Wi-Fi, as mac80211's FQ-CoDel has no such parameter";
                return Err((key.clone(), must.into()));
            }
        }
    }
    Ok(fq)
}

/// Refuses an arm whose discipline cannot work in mac80211's queues.
fn check(queue: usize, egress: &Egress<'_>, wifi: &Wifi) -> Result<(), RunError> {
    let shapes = egress.arm.aqm == "cake"
        && egress
            .arm
            .settings
            .iter()
            .any(|(key, _)| key == "bandwidth");
    if wifi.amsdu.is_some() && !has_own(wifi, egress) {
        return Err(RunError::Settings {
            key: egress.key_of(queue, "aqm"),
            message: format!(
                "must be {OWN} with link.{}.amsdu: packets join frames in mac80211's own queues",
                egress.link.name
            ),
        });
    }
    if shapes && wifi.queueing == Queueing::Mac80211 {
        return Err(RunError::Settings {
            key: egress.key_of(queue, "bandwidth"),
            message: "must be left out inside mac80211's queues, which do not wait for a shaper; with queueing = \"qdisc\" it may shape above the device".into(),
        });
    }
    Ok(())
}

/// Makes the queues of a cell's nodes.
struct Maker<'a, P> {
    experiment: &'a Experiment,
    queue: usize,
    catalogue: &'a Catalogue<P>,
    egress: &'a Egress<'a>,
    wifi: &'a Wifi,
    /// The names of the discipline's inner queues.
    inner: &'static [&'static str],
}

impl<P: Packet + Send + 'static> Maker<'_, P> {
    /// Makes the queues of a node with this number of peers.
    fn queueing(&mut self, peers: usize) -> Result<sojourn_wifi::Queueing<P>, RunError> {
        check(self.queue, self.egress, self.wifi)?;
        let (major, minor) = self.wifi.kernel;
        let mut rules = mac80211::Settings::of_kernel(major, minor);
        if !self.wifi.airtime_fairness {
            rules.airtime_quantum = None;
        }
        if self.wifi.queueing == Queueing::Qdisc {
            return Ok(sojourn_wifi::Queueing::Ring {
                qdisc: self.discipline()?,
                packets: self.egress.link.device_queue,
            });
        }
        if has_own(self.wifi, self.egress) {
            // The arm's values are checked as those of the discipline.
            self.discipline()?;
            self.inner = &[];
            let settings = settings(self.experiment, self.egress);
            let fq = flow_queueing(&settings, self.wifi.standard);
            let mut fq = fq.map_err(|(key, message)| self.refusal(&key, message))?;
            fq.amsdu = self.wifi.amsdu;
            return Ok(sojourn_wifi::Queueing::Mac80211(mac80211::Settings {
                fq,
                ..rules
            }));
        }
        // In mac80211 each user priority of a station has a queue of its own.
        let queues = peers * UserPriority::ALL.len();
        let mut made = Vec::with_capacity(queues);
        for _ in 0..queues {
            made.push(self.discipline()?);
        }
        let make = move || made.pop().expect("one per peer and user priority");
        Ok(sojourn_wifi::Queueing::PerStation(rules, Box::new(make)))
    }

    fn discipline(&mut self) -> Result<BoxedQdisc<P>, RunError> {
        let discipline = discipline(self.egress.arm, self.catalogue)?;
        let qdisc = discipline
            .build(&settings(self.experiment, self.egress))
            .map_err(at(self.egress, self.queue))?;
        self.inner = qdisc.inner_queues();
        Ok(qdisc)
    }

    fn refusal(&self, key: &str, message: String) -> RunError {
        RunError::Settings {
            key: self.egress.key_of(self.queue, key),
            message,
        }
    }
}
