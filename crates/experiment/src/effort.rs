//! The cost of a run compared with other runs, for estimates of the time left.
//!
//! It follows from the packets that the run's links carry: what the traffic offers, or its fair share of the capacity if
//! that is less. The unit is the processor time of a TCP segment that crosses the network and is acknowledged, some
//! 0.12 µs. All costs were measured over runs of the published studies.

use sojourn_units::Duration;

use crate::derived::{is_queued, largest_packet, ways};
use crate::model::{
    Browsing, Capacity, Experiment, Hop, Kind, Link, Pace, Traffic, Transport, Way,
};
use crate::wifi::{RateControl, Wifi};

/// The start and the end of a run, with its rows in a store.
const RUN: f64 = 10_000.0;
/// The start and the end of a flow, with the distributions of its figures.
const FLOW: f64 = 1_000.0;
/// A datagram: nothing acknowledges it.
const DATAGRAM: f64 = 0.5;
/// Acknowledgements per segment: of every second (RFC 5681).
const ACKNOWLEDGEMENTS: f64 = 0.5;
/// A connection of PackMime, in addition to its segments.
const CONNECTION: f64 = 70.0;
/// A packet over Wi-Fi, in addition.
const OVER_WIFI: f64 = 2.5;
/// A packet over Wi-Fi without aggregation, in addition to that: it contends for the medium on its own, and so does its
/// acknowledgement.
const ALONE_OVER_WIFI: f64 = 7.0;
/// A row of a recorded table. Most of this is its way into a store.
const ROW: f64 = 2.0;

/// Bytes of a connection of PackMime, on average.
const CONNECTION_BYTES: f64 = 8_000.0;
/// Bytes of a game's datagram and the datagrams per second, on average over both directions.
const GAME: (f64, f64) = (150.0, 20.0);
const ETHERNET_HEADER: f64 = 14.0;
/// Bytes per second of a flow that nothing limits.
const UNLIMITED: f64 = 1e12;
/// The part of Wi-Fi's frame rate that is left for packets: with aggregation, and without.
const WIFI_SHARES: (f64, f64) = (0.6, 0.45);

/// The cost of a run of this experiment.
pub(crate) fn effort(experiment: &Experiment) -> f64 {
    let seconds = experiment.duration.as_secs_f64();
    let (mut cost, mut flows) = (RUN, 0.0);
    for (stream, own) in carried(experiment) {
        let connections = stream.sending * seconds * stream.connections_per_sec;
        cost += FLOW * stream.flows + stream.packet_cost * own + CONNECTION * connections;
        flows += stream.flows;
    }
    let record = &experiment.record;
    let per_packet = u8::from(record.packets) + u8::from(record.rtt);
    let bins = record.series.map_or(0.0, |bin| seconds / bin.as_secs_f64());
    let rows = f64::from(per_packet) * packets(experiment)
        + bins * (flows + experiment.links.len() as f64);
    cost + ROW * rows
}

/// The part of the packets of a run that is sent before an instant, as flows begin and end; from 0 to 1.
pub(crate) fn progress(experiment: &Experiment, at: Duration) -> f64 {
    let end_s = experiment.duration.as_secs_f64();
    let at_s = at.as_secs_f64().min(end_s);
    let (mut all, mut sent) = (0.0, 0.0);
    for (stream, packets) in carried(experiment) {
        let cost = stream.packet_cost * packets;
        let whole_s = stream.sending_before(end_s);
        if whole_s > 0.0 {
            all += cost;
            sent += cost * stream.sending_before(at_s) / whole_s;
        }
    }
    if all > 0.0 { sent / all } else { at_s / end_s }
}

/// The packets that the traffic sends in a run, without acknowledgements.
pub(crate) fn packets(experiment: &Experiment) -> f64 {
    carried(experiment).map(|(_, packets)| packets).sum()
}

/// The packets that enter queues in a run, one per queue, with acknowledgements.
pub(crate) fn queued_packets(experiment: &Experiment) -> f64 {
    carried(experiment)
        .map(|(stream, packets)| packets * stream.queued_per_packet)
        .sum()
}

/// The streams of a run with the packets that each sends.
fn carried(experiment: &Experiment) -> impl Iterator<Item = (Stream, f64)> {
    let seconds = experiment.duration.as_secs_f64();
    let groups = experiment.traffic.iter();
    let streams: Vec<Stream> = groups
        .flat_map(|traffic| streams(experiment, traffic))
        .collect();
    let shares = fair_shares(&streams, &capacities(experiment));
    let streams = streams.into_iter().zip(shares);
    streams.map(move |(stream, bytes_per_sec)| {
        let packets = stream.sending * seconds * bytes_per_sec / stream.packet_bytes;
        (stream, packets)
    })
}

/// The flows of a traffic group in one direction.
struct Stream {
    flows: f64,
    /// How many of them send, on average over the run.
    sending: f64,
    /// Bytes per second that each sends if no link limits it; infinite if it always has data.
    offered: f64,
    packet_bytes: f64,
    packet_cost: f64,
    /// New connections per second of each, of PackMime.
    connections_per_sec: f64,
    /// How often one of its packets enters a queue, with its share of an acknowledgement.
    queued_per_packet: f64,
    /// What it passes, as indices of [`capacities`].
    indices: Vec<usize>,
    /// When the first of its flows begins, when the last does, and when all end, in seconds.
    active: [f64; 3],
}

impl Stream {
    /// The mean time that its flows have sent by an instant; they begin evenly one after another.
    fn sending_before(&self, at: f64) -> f64 {
        let [first, last, stop] = self.active;
        let at = at.min(stop);
        let beginning = (at.min(last) - first).max(0.0);
        let of_these = if last > first {
            beginning * beginning / (2.0 * (last - first))
        } else {
            0.0
        };
        of_these + (at - last).max(0.0)
    }
}

fn streams(experiment: &Experiment, traffic: &Traffic) -> impl Iterator<Item = Stream> {
    let links = &experiment.links;
    let flows = f64::from(traffic.flows);
    let (first, last) = traffic.start;
    let start_s = (first.as_secs_f64() + last.as_secs_f64()) / 2.0;
    let sending_s = (traffic.stop.as_secs_f64() - start_s).max(0.0);
    let active = [first, last, traffic.stop].map(|at| at.as_secs_f64());
    let packet_bytes = packet_bytes(&traffic.kind);
    let access = traffic
        .access
        .map_or(f64::INFINITY, |access| access.bytes_per_sec() / flows);
    let cells = traffic.route.hops.iter();
    let cells = cells.filter_map(|hop| links[hop.link].wifi.as_ref());
    let over_wifi: f64 = cells.map(cost_over).sum();
    let alone = traffic.kind.tcp().map_or(DATAGRAM, |_| 1.0);
    let answers = traffic.kind.tcp().map_or(0.0, |_| ACKNOWLEDGEMENTS);
    let queues = |way| {
        let hops = traffic.route.hops(way).into_iter();
        hops.filter(|hop| is_queued(links, *hop)).count() as f64
    };
    let connections_per_sec = match &traffic.kind {
        Kind::Web(web) => match web.browsing {
            Browsing::PackMime(rate) => rate,
            Browsing::Pages(_) => 0.0,
        },
        _ => 0.0,
    };
    let offered = offered(traffic, packet_bytes, sending_s).min(access);
    ways(traffic.direction).iter().map(move |way| {
        let hops = traffic.route.hops(*way).into_iter();
        Stream {
            flows,
            sending: flows * sending_s / experiment.duration.as_secs_f64(),
            offered,
            packet_bytes,
            packet_cost: alone + over_wifi,
            connections_per_sec,
            queued_per_packet: queues(*way) + answers * queues(way.reversed()),
            indices: hops.filter_map(|hop| index(links, hop)).collect(),
            active,
        }
    })
}

/// Bytes of a packet on a link.
fn packet_bytes(kind: &Kind) -> f64 {
    let bytes = match kind {
        Kind::Game => return GAME.0,
        Kind::Cbr(cbr) => largest_packet(kind).min(cbr.mtu.unwrap_or(u32::MAX)),
        _ => largest_packet(kind),
    };
    f64::from(bytes) + ETHERNET_HEADER
}

/// Bytes per second that a flow of this group sends over links without a limit, while it sends.
fn offered(traffic: &Traffic, packet_bytes: f64, sending_s: f64) -> f64 {
    let every = |interval: Duration| packet_bytes / interval.as_secs_f64();
    let application = match &traffic.kind {
        Kind::Bulk(_) => f64::INFINITY,
        Kind::Cbr(cbr) => cbr.rate.bytes_per_sec(),
        Kind::Ping(ping) => every(ping.interval),
        Kind::Voip(voip) => every(voip.interval),
        Kind::Game => GAME.0 * GAME.1,
        Kind::Call(call) => call.rates.1.bytes_per_sec(),
        Kind::Files(files) => {
            let per_sec = match files.pace {
                Pace::Think(think) => 1.0 / think.as_secs_f64(),
                Pace::Arrivals(rate) => rate,
            };
            let all = files.count.map_or(f64::INFINITY, |count| count as f64);
            files.sizes.mean() * per_sec.min(all / sending_s)
        }
        Kind::OnOff(onoff) => {
            let (on, off) = (onoff.on.as_secs_f64(), onoff.off.as_secs_f64());
            let rate = match &onoff.transport {
                Transport::Udp(rate) => Some(rate),
                Transport::Tcp(_, rate) => rate.as_ref(),
            };
            rate.map_or(f64::INFINITY, |rate| rate.bytes_per_sec()) * on / (on + off)
        }
        Kind::Web(web) => match &web.browsing {
            Browsing::PackMime(rate) => rate * CONNECTION_BYTES,
            Browsing::Pages(pages) => {
                f64::from(pages.objects) * pages.sizes.mean() / pages.think.as_secs_f64()
            }
        },
        Kind::Video(video) => {
            let rates = video.ladder.iter().map(|rate| rate.bytes_per_sec());
            rates.fold(0.0, f64::max)
        }
    };
    let window = traffic.kind.tcp().and_then(|tcp| tcp.window);
    let window = window.map_or(f64::INFINITY, |bytes| bytes as f64);
    application.min(window / traffic.rtt.as_secs_f64())
}

/// What a packet costs that passes this cell, in addition.
const fn cost_over(cell: &Wifi) -> f64 {
    if cell.standard.has_qos() {
        OVER_WIFI
    } else {
        OVER_WIFI + ALONE_OVER_WIFI
    }
}

/// The index in [`capacities`] of a direction of a link; `None` if nothing limits that direction.
fn index(links: &[Link], hop: Hop) -> Option<usize> {
    // Both directions of a cell share its medium.
    let is_up = hop.way == Way::Up && links[hop.link].wifi.is_none();
    is_queued(links, hop).then_some(2 * hop.link + usize::from(is_up))
}

/// Bytes per second of each link: down and up.
fn capacities(experiment: &Experiment) -> Vec<f64> {
    let links = experiment.links.iter();
    let each_way = links.flat_map(|link| {
        let mean = |capacity| mean_bytes_per_sec(capacity, experiment.duration);
        let down = match &link.wifi {
            Some(cell) => cell_bytes_per_sec(cell, mean(&link.rate)),
            None => mean(&link.rate),
        };
        [down, link.up.as_ref().map_or(0.0, |up| mean(&up.rate))]
    });
    each_way.collect()
}

/// The mean capacity over a run.
fn mean_bytes_per_sec(capacity: &Capacity, duration: Duration) -> f64 {
    let Capacity::Steps(steps) = capacity else {
        return capacity.nominal().bytes_per_sec();
    };
    let ends = steps[1..].iter().map(|(from, _)| *from).chain([duration]);
    let bytes: f64 = steps
        .iter()
        .zip(ends)
        .map(|((from, rate), end)| {
            rate.bytes_per_sec() * end.min(duration).saturating_sub(*from).as_secs_f64()
        })
        .sum();
    bytes / duration.as_secs_f64()
}

/// What a cell carries if its stations have equal shares of the medium.
fn cell_bytes_per_sec(cell: &Wifi, fastest: f64) -> f64 {
    let rates = cell.stations.iter().map(|station| match station.rate {
        RateControl::Fixed(mode) => mode.rate().bytes_per_sec(),
        RateControl::Ideal | RateControl::Minstrel => fastest,
    });
    let mean = rates.sum::<f64>() / cell.stations.len() as f64;
    let (aggregated, alone) = WIFI_SHARES;
    mean * if cell.standard.has_qos() {
        aggregated
    } else {
        alone
    }
}

/// Bytes per second of each flow of the streams while it sends: what it offers, or its equal share of a link.
fn fair_shares(streams: &[Stream], capacities: &[f64]) -> Vec<f64> {
    // A flow that sends for a part of the run gets no more than the link meanwhile.
    let alone = |stream: &Stream| {
        let all = stream
            .indices
            .iter()
            .map(|at| capacities[*at] / stream.flows);
        all.fold(stream.offered.min(UNLIMITED), f64::min)
    };
    let limits: Vec<f64> = streams.iter().map(alone).collect();
    let mut left = capacities.to_vec();
    let mut shares: Vec<Option<f64>> = vec![None; streams.len()];
    loop {
        let open = || (0..streams.len()).filter(|at| shares[*at].is_none());
        let mut sending = vec![0.0; left.len()];
        for stream in open().map(|at| &streams[at]) {
            for index in &stream.indices {
                sending[*index] += stream.sending;
            }
        }
        let most = |at: usize| {
            let indices = streams[at].indices.iter();
            let fair = indices.map(|index| left[*index] / sending[*index]);
            (at, fair.fold(limits[at], f64::min))
        };
        // The flows with the least are settled first; the others share what those leave.
        let least = open().map(most).min_by(|a, b| a.1.total_cmp(&b.1));
        let Some((at, share)) = least else { break };
        for index in &streams[at].indices {
            left[*index] = (left[*index] - share * streams[at].sending).max(0.0);
        }
        shares[at] = Some(share);
    }
    shares.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DisciplineKeys, Names, Source, read};

    const LINK: &str = "[link]\nrate = '12 Mbit/s'";
    /// Full packets per second on that link.
    const FULL: f64 = 1_500_000.0 / 1514.0;
    const WIFI: &str = "[[link]]\nname = 'w'\nkind = 'wifi'\nfrom = 'a'\nto = ['b']";

    /// The cost of ten seconds beyond that of the run and of `flows` flows.
    fn beyond(flows: f64, link: &str, traffic: &str) -> f64 {
        effort(&experiment(link, traffic)) - RUN - FLOW * flows
    }

    fn experiment(link: &str, traffic: &str) -> Experiment {
        let names = Names {
            disciplines: vec![DisciplineKeys {
                name: "pfifo".into(),
                keys: vec![],
            }],
            congestion_controls: vec!["cubic".into()],
        };
        let text = format!(
            "[experiment]\nduration = '10 s'\n[[queue]]\naqm = 'pfifo'\n{link}\n[[traffic]]\n{traffic}"
        );
        let source = Source {
            name: "f",
            text: &text,
        };
        let plan = read(source, &[], &names).unwrap_or_else(|error| panic!("{error}"));
        Experiment::clone(&plan.cells[0].experiment)
    }

    #[test]
    fn acknowledgements_enter_the_queues_of_the_way_back() {
        let queued = |link: &str| {
            let experiment = experiment(link, "kind = 'bulk'\nrtt = '20 ms'");
            queued_packets(&experiment) / packets(&experiment)
        };
        near(queued(LINK), 1.0);
        near(
            queued("[link]\nrate = '12 Mbit/s'\nup = { rate = '5 Mbit/s' }"),
            1.5,
        );
    }

    /// Of ten seconds and flows that begin over the first two, evenly: 0.25 s² of 9 s have been sent after one second.
    #[test]
    fn flows_that_begin_later_have_sent_less() {
        let starting = |start: &str| format!("kind = 'bulk'\nrtt = '20 ms'\nstart = '{start}'");
        let after = |start: &str, ms: u64| {
            progress(
                &experiment(LINK, &starting(start)),
                Duration::from_millis(ms),
            )
        };
        near(after("0 s", 1000), 0.1);
        near(after("0..2 s", 1000), 0.25 / 9.0);
        near(after("0..2 s", 5500), 4.5 / 9.0);
        near(after("0..2 s", 10_000), 1.0);
        near(after("4 s", 7000), 0.5);
    }

    fn near(got: f64, expected: f64) {
        assert!((got / expected - 1.0).abs() < 0.001, "{got} for {expected}");
    }

    #[test]
    fn flows_that_always_have_data_fill_the_link() {
        let one = beyond(1.0, LINK, "kind = 'bulk'\nrtt = '20 ms'");
        near(one, 10.0 * FULL);
        near(
            beyond(5.0, LINK, "kind = 'bulk'\nflows = 5\nrtt = '20 ms'"),
            one,
        );
        // A segment of 448 bytes is a packet of 514.
        let small = "kind = 'bulk'\nrtt = '20 ms'\nmss = '448 B'";
        near(beyond(1.0, LINK, small), one * 1514.0 / 514.0);
    }

    #[test]
    fn what_is_offered_counts_if_it_is_less_than_the_capacity() {
        let cbr = "kind = 'cbr'\nrtt = '20 ms'\npacket = '1000 B'\nrate = ";
        // 125 datagrams of 1042 bytes per second.
        near(
            beyond(1.0, LINK, &format!("{cbr}'1 Mbit/s'")),
            10.0 * 125_000.0 / 1042.0 * DATAGRAM,
        );
        near(
            beyond(1.0, LINK, &format!("{cbr}'99 Mbit/s'")),
            10.0 * 1_500_000.0 / 1042.0 * DATAGRAM,
        );
        // One datagram in 20 ms, whatever the codec.
        let call = "kind = 'voip'\nrtt = '20 ms'\ncodec = ";
        for codec in ["'g711'", "'g729a'"] {
            near(
                beyond(1.0, LINK, &format!("{call}{codec}")),
                500.0 * DATAGRAM,
            );
        }
    }

    #[test]
    fn a_window_an_access_link_and_the_time_of_sending_limit_a_flow() {
        let bulk = |keys: &str| beyond(1.0, LINK, &format!("kind = 'bulk'\nrtt = '20 ms'\n{keys}"));
        near(bulk("window = '15140 B'"), 10.0 * 500.0);
        near(bulk("access = '6 Mbit/s'"), 10.0 * FULL / 2.0);
        near(bulk("start = '5 s'\nstop = '8 s'"), 3.0 * FULL);
        near(bulk("start = '0 s..2 s'"), 9.0 * FULL);
    }

    #[test]
    fn files_and_pages_are_sent_one_after_another() {
        let files = "kind = 'files'\nrtt = '20 ms'\nsize = '15140 B'\n";
        near(beyond(1.0, LINK, &format!("{files}think = '1 s'")), 100.0);
        near(
            beyond(1.0, LINK, &format!("{files}think = '0 s'")),
            10.0 * FULL,
        );
        near(beyond(1.0, LINK, &format!("{files}arrivals = 2")), 200.0);
        near(beyond(1.0, LINK, &format!("{files}count = 3")), 30.0);
        let pages = "kind = 'web'\nrtt = '20 ms'\nobjects = 20\nsize = '1514 B'\nthink = '500 ms'";
        near(beyond(1.0, LINK, pages), 400.0);
    }

    #[test]
    fn on_and_off_times_weight_the_rate() {
        let on_off = "kind = 'onoff'\nrtt = '20 ms'\npacket = '958 B'\non = '1 s'\noff = '3 s'\n";
        near(
            beyond(
                1.0,
                LINK,
                &format!("{on_off}transport = 'udp'\nrate = '4 Mbit/s'"),
            ),
            10.0 * 125.0 * DATAGRAM,
        );
    }

    #[test]
    fn pings_games_and_videos_send_at_their_rates() {
        let of = |kind: &str| beyond(1.0, LINK, &format!("rtt = '20 ms'\nkind = {kind}"));
        near(of("'ping'\ninterval = '100 ms'"), 100.0 * DATAGRAM);
        near(
            of("'video'\nladder = ['1 Mbit/s', '6 Mbit/s']"),
            10.0 * FULL / 2.0,
        );
        // Down and up.
        let game = beyond(2.0, LINK, "rtt = '20 ms'\nkind = 'game'");
        near(game, 2.0 * 10.0 * GAME.1 * DATAGRAM);
    }

    #[test]
    fn a_web_connection_costs_more_than_its_segments() {
        let web = beyond(1.0, LINK, "kind = 'web'\nrtt = '20 ms'\nconnections = 5");
        near(web, 50.0 * (CONNECTION + CONNECTION_BYTES / 1514.0));
    }

    #[test]
    fn flows_share_the_narrowest_of_their_links() {
        let links = "[[link]]\nname = 'x'\nfrom = 'a'\nto = 'b'\nrate = '120 Mbit/s'\n\
            [[link]]\nname = 'y'\nfrom = 'b'\nto = 'c'\nrate = '12 Mbit/s'\nqueue = { aqm = 'pfifo' }";
        let traffic = "kind = 'bulk'\nrtt = '20 ms'\nfrom = 'a'\nto = 'c'\n\
            [[traffic]]\nkind = 'bulk'\nrtt = '20 ms'\nfrom = 'a'\nto = 'b'";
        // The second flow takes what the first leaves of the first link.
        near(beyond(2.0, links, traffic), 100.0 * FULL);
        let up = format!("{LINK}\nup = {{ rate = '1200 kbit/s' }}");
        near(
            beyond(2.0, &up, "kind = 'bulk'\ndirection = 'both'\nrtt = '20 ms'"),
            11.0 * FULL,
        );
    }

    #[test]
    fn a_schedule_of_rates_counts_with_its_mean() {
        let link =
            "[link]\nrate = [['0 s', '12 Mbit/s'], ['4 s', '24 Mbit/s'], ['20 s', '1 Gbit/s']]";
        near(
            beyond(1.0, link, "kind = 'bulk'\nrtt = '20 ms'"),
            16.0 * 10.0 / 10.0 * FULL,
        );
    }

    #[test]
    fn a_packet_over_wifi_costs_more_and_most_without_aggregation() {
        let traffic = "kind = 'cbr'\nrtt = '20 ms'\npacket = '958 B'\nrate = '1 Mbit/s'\nfrom = 'a'\nto = 'b'";
        let over =
            |standard: &str| beyond(1.0, &format!("{WIFI}\nstandard = '{standard}'"), traffic);
        near(over("802.11n"), 1250.0 * (DATAGRAM + OVER_WIFI));
        near(
            over("802.11g"),
            1250.0 * (DATAGRAM + OVER_WIFI + ALONE_OVER_WIFI),
        );
    }

    #[test]
    fn stations_share_the_medium() {
        let bulk = "kind = 'bulk'\nrtt = '20 ms'\nfrom = 'a'\nto = 'b'";
        let fixed = |rate: &str| {
            let link =
                format!("{WIFI}\nstandard = '802.11g'\nstation = {{ b = {{ rate = '{rate}' }} }}");
            beyond(1.0, &link, bulk)
        };
        let packets = |mbps: f64| 10.0 * mbps * 125_000.0 * WIFI_SHARES.1 / 1514.0;
        near(
            fixed("54 Mbit/s"),
            packets(54.0) * (1.0 + OVER_WIFI + ALONE_OVER_WIFI),
        );
        near(
            fixed("6 Mbit/s"),
            packets(6.0) * (1.0 + OVER_WIFI + ALONE_OVER_WIFI),
        );
    }

    #[test]
    fn recorded_rows_count() {
        let record = |keys: &str| {
            beyond(
                1.0,
                &format!("[record]\n{keys}\n{LINK}"),
                "kind = 'bulk'\nrtt = '20 ms'",
            )
        };
        near(record("packets = true"), 10.0 * FULL * (1.0 + ROW));
        // A row per bin of the queue and of the flow.
        near(record("series = '10 ms'"), 10.0 * FULL + 2000.0 * ROW);
    }
}
