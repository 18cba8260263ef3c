//! `[[link]]` with `kind = "wifi"`: an access point and its stations.

use serde_json::{Value as Json, json};
use sojourn_aqm::cake::framing::Cells;
use sojourn_units::{Capacity, Duration, Rate};
use sojourn_wifi::modes;
use sojourn_wifi::phy::Mode;

use super::queue::QueueForm;
use super::routes::NodeName;
use crate::entry::Entry;
use crate::error::ReadError;
use crate::form::Form;
use crate::forms::{BufferForm, Bytes, Flag, Maybe, Packets, Span, Speed, Whole, Word};
use crate::keys::{Keys, TableOf, keys, table_schema};
use crate::model::{Buffer, Impaired, Link, Nodes, Queue, UpLink};
use crate::names::Names;
use crate::section::Section;
use crate::unknown::suggestion;
use crate::wifi::{Amsdu, Fading, Guard, Queueing, RateControl, Standard, Station, Width, Wifi};

/// Packets of a device ring unless the file says otherwise.
const RING_PACKETS: u64 = 64;

keys! {
    /// The keys of a link that is a Wi-Fi cell.
    struct WifiKeys {
        /// Makes the link a Wi-Fi cell, whose frames contend for one medium.
        kind: () = KIND, Required;
        /// Name of the link in keys, link.NAME.standard, and in results.
        name: String = NodeName, Required;
        /// The access point: the node where the forward ("down") direction begins.
        from: String = NodeName, Required;
        /// The stations: a node, or an array of nodes.
        to: Vec<String> = Stations, Required;
        /// The 802.11 standard.
        standard: Standard = STANDARD, Required;
        /// Width of the channel: 40 MHz from 802.11n on, 80 MHz with 802.11ac.
        width: Width = WIDTH, Is("20 MHz");
        /// The most spatial streams; one with 802.11b and 802.11g.
        streams: u32 = Whole { from: 1, to: 4 }, Is("1");
        /// Guard interval of the modes among which rate control chooses; 400 ns from 802.11n on.
        guard: Guard = GUARD, Is("800 ns");
        /// Stations by name, each with its keys; one that is left out has the defaults.
        station: Option<Vec<(String, StationKeys)>> = Maybe(StationTable), Words("all stations have the defaults");
        /// Where packets wait. mac80211: in queues per station with airtime fairness and airtime queue limits, as in Linux; an arm
        /// other than fq_codel takes the place of mac80211's FQ-CoDel. qdisc: in the arm's discipline above a device ring.
        queueing: Queueing = QUEUEING, Is("mac80211");
        /// Packets that the device ring below a discipline holds, with queueing = "qdisc".
        device_queue: u64 = Ring, Is("64 packets");
        /// The version of Linux whose rules mac80211's queues follow: 4.10 has no airtime fairness; since 5.5 the airtime in the
        /// device is limited; since 6.0 also per access category, and it counts in the order of stations; since 6.8 code points
        /// map to access categories by RFC 8325 (EF and VA to voice, CS3 and AF3x to video, AF1x, AF2x and CS2 to best effort),
        /// before by their upper three bits; since 6.16 slow stations no longer have laxer CoDel parameters, nor have they in
        /// late releases of 6.12 (6.12.117).
        kernel: (u32, u32) = Kernel, Is("\"6.12\"");
        /// With queueing = "mac80211": false gives stations turns, a transmission each, instead of shares of the airtime. Kernels before
        /// 4.11 always do.
        airtime_fairness: bool = Flag, Is("true");
        /// A packet joins the last queued frame of its flow, an A-MSDU, if both are at most so long, as with Linux's drivers iwlwifi, mt76,
        /// rtw88 and rtw89; up to 4095 B with 802.11n, 11454 B with 802.11ac. Linux has 3839 B unless a station takes more, and minstrel less
        /// at slow rates: 500 B below 13 Mbit/s, 1600 B below 26, 3200 B below 65. CoDel, limits of packets and fairness of flows take a
        /// frame for a packet. Needs queueing = "mac80211" and arms of fq_codel.
        amsdu: Option<u32> = Maybe(Bytes { from: 1, to: MOST_AMSDU }), Words("a frame has one packet");
        /// The most packets of a frame; 16 with mt76. Needs amsdu.
        amsdu_packets: Option<u32> = Maybe(Whole { from: 2, to: 1000 }), Words("any number");
        /// RTS and CTS go before frames longer than this.
        rts_above: Option<u32> = Maybe(Bytes { from: 0, to: 65_535 }), Words("never");
        /// The limit of each discipline: packets, bytes, or multiples of the fastest rate × largest base RTT.
        buffer: Option<Buffer> = Maybe(BufferForm), Words("the discipline's own limit");
        /// A discipline of its own, with its keys, that is not under test.
        queue: Option<Queue> = Maybe(QueueForm), Words("the arms of [[queue]] are compared here");
        /// What differs at the stations, which send in the up direction.
        up: Option<WifiUp> = Maybe(UP), Words("the stations queue as the access point does");
    }
    ; check check
}

keys! {
    /// The keys of `up`: what differs at the stations of a cell.
    #[derive(Clone)]
    struct WifiUp {
        /// The limit of the stations' disciplines.
        buffer: Option<Buffer> = Maybe(BufferForm), Words("the access point's");
        /// The stations' discipline, with its keys.
        queue: Option<Queue> = Maybe(QueueForm), Words("the access point's");
    }
}

keys! {
    /// The keys of a station.
    #[derive(Clone, Copy)]
    struct StationKeys {
        /// How the station and the access point choose the rate of frames to each other: minstrel, as Linux does; ideal, the
        /// fastest that the signal carries; or always the same rate, of the standard or of an older one.
        rate: Choice = ChoiceForm, Is("minstrel");
        /// The signal-to-noise ratio over 20 MHz with one stream, the same in both directions; twice the width or the streams take 3 dB.
        snr: Option<f64> = Maybe(Decibels), Words("only collisions lose frames");
        /// Coherence time of the signal's Rayleigh fading; needs snr.
        fading: Option<Duration> = Maybe(Span::AboveZero), Words("the signal does not change");
    }
    ; check check_station
}

const KIND: Word<()> = Word(&[("wifi", ())]);
const STANDARD: Word<Standard> = Word(&[
    ("802.11b", Standard::B),
    ("802.11g", Standard::G),
    ("802.11n", Standard::N),
    ("802.11ac", Standard::Ac),
]);
const WIDTH: Word<Width> = Word(&[
    ("20 MHz", Width::Mhz20),
    ("40 MHz", Width::Mhz40),
    ("80 MHz", Width::Mhz80),
]);
const GUARD: Word<Guard> = Word(&[("800 ns", Guard::Long), ("400 ns", Guard::Short)]);
const QUEUEING: Word<Queueing> =
    Word(&[("mac80211", Queueing::Mac80211), ("qdisc", Queueing::Qdisc)]);
const CELL: TableOf<WifiKeys> = TableOf::new("a link of Wi-Fi", "a table with kind = \"wifi\"");
const UP: TableOf<WifiUp> = TableOf::new(
    "link.up of Wi-Fi",
    "a table like { buffer = \"100 packets\" }",
);
const STATION: TableOf<StationKeys> = TableOf::new(
    "a station",
    "a table like { rate = \"minstrel\", snr = \"35 dB\" }",
);

/// The most stations of a cell.
const MOST_STATIONS: usize = 100;

/// Bytes of the longest frame of 802.11ac (IEEE 802.11-2020, table 9-25), and of 802.11n in an aggregate (§10.12.2). mac80211
/// has the same limits (`IEEE80211_MAX_MPDU_LEN_VHT_11454`, `IEEE80211_MAX_MPDU_LEN_HT_BA`).
const MOST_AMSDU: u32 = 11_454;
const MOST_AMSDU_OF_N: u32 = 4_095;

/// Bytes of the Ethernet header that hosts count, which Wi-Fi replaces by its own.
const OVERHEAD: u32 = 14;

/// Checks the values of a cell's keys together.
fn check(cell: &WifiKeys, section: &Section<'_>) -> Result<(), ReadError> {
    let of_standard = format!("with {}", STANDARD.word(&cell.standard));
    let widths: &[&str] = match cell.standard {
        Standard::B | Standard::G => &["20 MHz"],
        Standard::N => &["20 MHz", "40 MHz"],
        Standard::Ac => &["20 MHz", "40 MHz", "80 MHz"],
    };
    let refuse = |key: &str, accepted: String| match section.given(key) {
        Some(given) => Err(given.refuse(accepted)),
        None => Ok(()),
    };
    if !widths.contains(&WIDTH.word(&cell.width)) {
        let accepted = widths.join("\" or \"");
        refuse("width", format!("\"{accepted}\" {of_standard}"))?;
    }
    if !cell.standard.has_qos() {
        if cell.streams > 1 {
            refuse("streams", format!("1 {of_standard}"))?;
        }
        if cell.guard == Guard::Short {
            refuse("guard", format!("\"800 ns\" {of_standard}"))?;
        }
    }
    // The document of a run names every default.
    if cell.queueing == Queueing::Mac80211 && cell.device_queue != RING_PACKETS {
        refuse(
            "device_queue",
            "left out, unless queueing = \"qdisc\": mac80211's queues have no ring below them"
                .into(),
        )?;
    }
    let needless = match (cell.queueing, cell.standard.has_qos()) {
        (Queueing::Qdisc, _) => {
            Some("with queueing = \"qdisc\": only mac80211's queues merge packets".to_string())
        }
        (_, false) => Some(format!("{of_standard}, which has no A-MSDU")),
        _ => None,
    };
    if let Some(why) = needless {
        refuse("amsdu", format!("left out {why}"))?;
    }
    if cell.standard == Standard::N && cell.amsdu.is_some_and(|bytes| bytes > MOST_AMSDU_OF_N) {
        refuse(
            "amsdu",
            format!("at most \"{MOST_AMSDU_OF_N} B\" {of_standard}"),
        )?;
    }
    if cell.amsdu.is_none() && cell.amsdu_packets.is_some() {
        refuse("amsdu_packets", "left out, unless amsdu is given".into())?;
    }
    if cell.to.contains(&cell.from) {
        refuse("to", "other nodes than from".into())?;
    }
    Ok(())
}

fn check_station(station: &StationKeys, section: &Section<'_>) -> Result<(), ReadError> {
    match (station.snr, section.given("fading")) {
        (None, Some(fading)) => {
            Err(fading.error("needs a signal that fades: must have snr beside it"))
        }
        _ => Ok(()),
    }
}

/// A Wi-Fi cell, which is read as a link.
pub(super) struct CellForm;

impl Form for CellForm {
    type Out = Link;

    fn read(&self, entry: &Entry<'_>) -> Result<Link, ReadError> {
        let cell = CELL.read(entry)?;
        let own = |name: &String| {
            let stations = cell.station.iter().flatten();
            let mut own = stations
                .filter(|(known, _)| known == name)
                .map(|(_, own)| *own);
            own.next().unwrap_or(StationKeys {
                rate: Choice::Minstrel,
                snr: None,
                fading: None,
            })
        };
        let unknown = cell
            .station
            .iter()
            .flatten()
            .find(|(name, _)| !cell.to.contains(name));
        if let Some((name, _)) = unknown {
            let known = cell.to.iter().map(String::as_str);
            let what = suggestion(name, known, " as a station of this link");
            return Err(entry
                .at("station")
                .at(name)
                .error(format!("unknown station; {what}")));
        }
        let mut stations = Vec::with_capacity(cell.to.len());
        for name in &cell.to {
            let own = own(name);
            stations.push(Station {
                rate: match own.rate {
                    Choice::Minstrel => RateControl::Minstrel,
                    Choice::Ideal => RateControl::Ideal,
                    Choice::Fixed(rate) => {
                        RateControl::Fixed(cell.mode(rate).ok_or_else(|| {
                            let given = entry.at("station").at(name).at("rate");
                            given.refuse(cell.rates())
                        })?)
                    }
                },
                snr_db: own.snr,
                fading: own.fading.map(|coherence| Fading { coherence, k: 0.0 }),
            });
        }
        let fastest = cell.fastest(&stations);
        let up = cell.up.clone();
        Ok(Link {
            name: cell.name,
            nodes: Some(Nodes {
                from: cell.from,
                to: cell.to,
            }),
            rate: Capacity::constant(fastest),
            delay: Duration::ZERO,
            delays: Vec::new(),
            impaired: Impaired::default(),
            buffer: cell.buffer,
            device_queue: cell.device_queue,
            overhead: OVERHEAD,
            cells: Cells::None,
            mpu: 0,
            burst: 0,
            queue: cell.queue,
            up: Some(UpLink {
                rate: Capacity::constant(fastest),
                buffer: up.as_ref().and_then(|up| up.buffer),
                queue: up.and_then(|up| up.queue),
                request_grant: None,
                impaired: Impaired::default(),
            }),
            wifi: Some(Wifi {
                standard: cell.standard,
                width: cell.width,
                streams: cell.streams as u8,
                guard: cell.guard,
                rts_above: cell.rts_above,
                queueing: cell.queueing,
                kernel: cell.kernel,
                airtime_fairness: cell.airtime_fairness,
                amsdu: cell.amsdu.map(|bytes| Amsdu {
                    bytes,
                    packets: cell.amsdu_packets.unwrap_or(u32::MAX),
                }),
                stations,
            }),
        })
    }

    fn write(&self, link: &Link) -> Json {
        let (Some(nodes), Some(wifi)) = (&link.nodes, &link.wifi) else {
            return Json::Null;
        };
        let station = |station: &Station| StationKeys {
            rate: match station.rate {
                RateControl::Minstrel => Choice::Minstrel,
                RateControl::Ideal => Choice::Ideal,
                RateControl::Fixed(mode) => Choice::Fixed(mode.rate()),
            },
            snr: station.snr_db,
            fading: station.fading.map(|fading| fading.coherence),
        };
        let stations = nodes
            .to
            .iter()
            .cloned()
            .zip(wifi.stations.iter().map(station));
        let up = link.up.as_ref().map(|up| WifiUp {
            buffer: up.buffer,
            queue: up.queue.clone(),
        });
        CELL.write(&WifiKeys {
            kind: (),
            name: link.name.clone(),
            from: nodes.from.clone(),
            to: nodes.to.clone(),
            standard: wifi.standard,
            width: wifi.width,
            streams: wifi.streams.into(),
            guard: wifi.guard,
            station: Some(stations.collect()),
            queueing: wifi.queueing,
            device_queue: link.device_queue,
            kernel: wifi.kernel,
            airtime_fairness: wifi.airtime_fairness,
            amsdu: wifi.amsdu.map(|amsdu| amsdu.bytes),
            amsdu_packets: wifi
                .amsdu
                .map(|amsdu| amsdu.packets)
                .filter(|&packets| packets < u32::MAX),
            rts_above: wifi.rts_above,
            buffer: link.buffer,
            queue: link.queue.clone(),
            up: up.filter(|up| up.buffer.is_some() || up.queue.is_some()),
        })
    }

    fn accepts(&self) -> String {
        CELL.accepts()
    }

    fn schema(&self, names: &Names) -> Json {
        CELL.schema(names)
    }
}

impl WifiKeys {
    /// The modes with this guard interval, slowest first.
    fn modes(&self, guard: Guard) -> Vec<Mode> {
        modes(self.standard, self.width, self.streams as u8, guard)
    }

    /// The mode with this rate, to a tenth of a Mbit/s, as tables print it. It is a mode of the standard itself or, if there is
    /// none, of an older standard in the same band. Of equally near modes, the one with the fewest streams is taken.
    fn mode(&self, rate: Rate) -> Option<Mode> {
        let older: &[Standard] = match self.standard {
            Standard::B => &[],
            Standard::G => &[Standard::B],
            Standard::N => &[Standard::G, Standard::B],
            // 802.11a, which has the modes of 802.11g at 5 GHz.
            Standard::Ac => &[Standard::G],
        };
        let older = older
            .iter()
            .flat_map(|standard| modes(*standard, Width::Mhz20, 1, Guard::Long));
        let own = [Guard::Long, Guard::Short].map(|guard| self.modes(guard));
        let off = |mode: &Mode| mode.rate().as_bps().abs_diff(rate.as_bps());
        let is_near = |mode: &Mode| off(mode) <= 50_000;
        let own = own.into_iter().flatten().filter(is_near);
        own.min_by_key(|mode| (off(mode), mode.streams()))
            .or_else(|| older.filter(is_near).min_by_key(off))
    }

    /// The accepted rates, in words.
    fn rates(&self) -> String {
        let mut rates: Vec<Rate> = self
            .modes(self.guard)
            .iter()
            .map(|mode| mode.rate())
            .collect();
        rates.dedup();
        let rates: Vec<String> = rates
            .iter()
            .map(|rate| format!("{:.1}", rate.as_bps() as f64 / 1e6))
            .collect();
        format!(
            "\"minstrel\", \"ideal\", or a rate of {}, width and streams in Mbit/s: {}",
            STANDARD.word(&self.standard),
            rates.join(", ")
        )
    }

    /// The fastest rate that a frame can have.
    fn fastest(&self, stations: &[Station]) -> Rate {
        let all = self.modes(self.guard);
        let most = all.last().map_or(Rate::from_mbps(1), |mode| mode.rate());
        let of_station = |station: &Station| match station.rate {
            RateControl::Fixed(mode) => mode.rate(),
            RateControl::Minstrel | RateControl::Ideal => most,
        };
        stations.iter().map(of_station).max().unwrap_or(most)
    }
}

/// How the rate of frames is chosen.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Choice {
    Minstrel,
    Ideal,
    Fixed(Rate),
}

struct ChoiceForm;

impl Form for ChoiceForm {
    type Out = Choice;

    fn read(&self, entry: &Entry<'_>) -> Result<Choice, ReadError> {
        match entry.text() {
            Some("minstrel") => Ok(Choice::Minstrel),
            Some("ideal") => Ok(Choice::Ideal),
            _ => match Speed.read(entry) {
                Ok(rate) => Ok(Choice::Fixed(rate)),
                Err(_) => Err(entry.refuse(self.accepts())),
            },
        }
    }

    fn write(&self, choice: &Choice) -> Json {
        match choice {
            Choice::Minstrel => "minstrel".into(),
            Choice::Ideal => "ideal".into(),
            Choice::Fixed(rate) => Speed.write(rate),
        }
    }

    fn accepts(&self) -> String {
        "\"minstrel\", \"ideal\" or a rate like \"6.5 Mbit/s\"".into()
    }

    fn schema(&self, names: &Names) -> Json {
        json!({"anyOf": [{"type": "string", "enum": ["minstrel", "ideal"]}, Speed.schema(names)]})
    }
}

/// One station, or several different ones.
struct Stations;

impl Form for Stations {
    type Out = Vec<String>;

    fn read(&self, entry: &Entry<'_>) -> Result<Vec<String>, ReadError> {
        let Some(entries) = entry.items() else {
            return Ok(vec![
                NodeName
                    .read(entry)
                    .map_err(|_| entry.refuse(self.accepts()))?,
            ]);
        };
        if !(1..=MOST_STATIONS).contains(&entries.len()) {
            return Err(entry.refuse(self.accepts()));
        }
        let mut stations: Vec<String> = Vec::with_capacity(entries.len());
        for entry in &entries {
            let station = NodeName.read(entry)?;
            if stations.contains(&station) {
                return Err(entry.refuse("a station that is not listed before"));
            }
            stations.push(station);
        }
        Ok(stations)
    }

    fn write(&self, stations: &Vec<String>) -> Json {
        stations.as_slice().into()
    }

    fn accepts(&self) -> String {
        format!(
            "a station like \"laptop\", or an array of 1 to {MOST_STATIONS} like [\"laptop\", \"phone\"]"
        )
    }

    fn schema(&self, names: &Names) -> Json {
        let station = NodeName.schema(names);
        json!({"anyOf": [
            station,
            {"type": "array", "minItems": 1, "maxItems": MOST_STATIONS, "items": station},
        ]})
    }
}

/// Stations by name.
struct StationTable;

impl Form for StationTable {
    type Out = Vec<(String, StationKeys)>;

    fn read(&self, entry: &Entry<'_>) -> Result<Self::Out, ReadError> {
        let section = Section::open(entry, self)?;
        let stations = section.entries();
        stations
            .map(|(name, entry)| Ok((name.to_string(), STATION.read(&entry)?)))
            .collect()
    }

    fn write(&self, stations: &Self::Out) -> Json {
        let written = stations
            .iter()
            .map(|(name, station)| (name.clone(), STATION.write(station)));
        Json::Object(written.collect())
    }

    fn accepts(&self) -> String {
        "a table like { phone = { rate = \"6.5 Mbit/s\" } }".into()
    }

    fn schema(&self, names: &Names) -> Json {
        json!({"type": "object", "additionalProperties": table_schema(&StationKeys::keys(), names)})
    }
}

/// A ratio in dB.
struct Decibels;

impl Form for Decibels {
    type Out = f64;

    fn read(&self, entry: &Entry<'_>) -> Result<f64, ReadError> {
        let number = entry.text().and_then(|text| text.trim().strip_suffix("dB"));
        let number = number.map(str::trim_end).filter(|number| {
            let plain = |c: char| c.is_ascii_digit() || c == '.';
            number.len() <= 16 && number.chars().all(plain)
        });
        match number.and_then(|number| number.parse::<f64>().ok()) {
            Some(ratio) if ratio <= 100.0 => Ok(ratio),
            _ => Err(entry.refuse(self.accepts())),
        }
    }

    fn write(&self, ratio: &f64) -> Json {
        format!("{ratio} dB").into()
    }

    fn accepts(&self) -> String {
        "a ratio from \"0 dB\" to \"100 dB\"".into()
    }

    fn schema(&self, _: &Names) -> Json {
        json!({"type": "string", "pattern": r"^(\d+\.?\d*|\.\d+) *dB$"})
    }
}

/// The capacity of a device ring: at least one packet.
struct Ring;

impl Form for Ring {
    type Out = u64;

    fn read(&self, entry: &Entry<'_>) -> Result<u64, ReadError> {
        let packets = Packets
            .read(entry)
            .map_err(|_| entry.refuse(self.accepts()))?;
        match packets {
            1..=1_000_000 => Ok(packets),
            _ => Err(entry.refuse(self.accepts())),
        }
    }

    fn write(&self, packets: &u64) -> Json {
        Packets.write(packets)
    }

    fn accepts(&self) -> String {
        "from \"1 packet\" to \"1000000 packets\"".into()
    }

    fn schema(&self, names: &Names) -> Json {
        Packets.schema(names)
    }
}

/// A version of Linux.
struct Kernel;

/// The first Linux with queues per station.
const FIRST: (u32, u32) = (4, 10);
/// The last release of each major version, the newest that is modelled last.
const LAST: [(u32, u32); 4] = [(4, 20), (5, 19), (6, 19), (7, 3)];

impl Form for Kernel {
    type Out = (u32, u32);

    fn read(&self, entry: &Entry<'_>) -> Result<(u32, u32), ReadError> {
        let number = |text: &str| {
            let digits = (1..=3).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit());
            text.parse().ok().filter(|_| digits)
        };
        let parts = entry.text().and_then(|text| text.split_once('.'));
        let version = parts.and_then(|(major, minor)| number(major).zip(number(minor)));
        version
            .filter(|version| *version >= FIRST)
            .filter(|(major, minor)| LAST.iter().any(|last| last.0 == *major && *minor <= last.1))
            .ok_or_else(|| entry.refuse(self.accepts()))
    }

    fn write(&self, (major, minor): &(u32, u32)) -> Json {
        format!("{major}.{minor}").into()
    }

    fn accepts(&self) -> String {
        let ((major, minor), (last, newest)) = (FIRST, LAST[LAST.len() - 1]);
        format!("a version of Linux like \"6.12\", from \"{major}.{minor}\" to \"{last}.{newest}\"")
    }

    fn schema(&self, _: &Names) -> Json {
        json!({"type": "string", "pattern": r"^\d{1,3}\.\d{1,3}$"})
    }
}
