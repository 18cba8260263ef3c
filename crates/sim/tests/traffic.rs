//! Each kind of traffic over a link of its own: rates, times and counts worked out by hand.

mod common;

use common::{column, flow, runs, with_queue};
use sojourn_sim::RunResult;
use sojourn_sim::result::Flow;

/// A minute of traffic on an idle link of 1 Gbit/s.
fn idle(traffic: &str) -> RunResult {
    with_queue("1 Gbit/s", "{ aqm = 'pfifo' }", traffic)
}

fn near(got: f64, expected: f64, tolerance: f64) {
    assert!((got - expected).abs() <= tolerance, "{got} for {expected}");
}

#[test]
fn a_call_sends_fifty_packets_a_second_and_is_rated_by_its_delay() {
    for (rtt, mos) in [("100 ms", 4.38), ("300 ms", 4.33), ("600 ms", 3.72)] {
        let run = idle(&format!("kind = 'voip'\nrtt = '{rtt}'"));
        // 60 s of 172 bytes every 20 ms; half of the base RTT each way.
        assert_eq!(flow(&run, 0).sent_bytes, 3000 * 172);
        near(flow(&run, 0).mos.unwrap(), mos, 0.005);
        near(
            flow(&run, 0).jitter_ms.as_ref().unwrap().max.unwrap(),
            0.0,
            0.001,
        );
    }
}

/// A call takes 85.6 kbit/s on the wire (172 + 28 + 14 bytes, 50 per second). A link of half that rate loses half of
/// the packets; a rating lowered by 95 · 50/54.3 leaves a score of 1.
#[test]
fn a_call_on_half_its_rate_loses_half_and_is_as_bad_as_can_be() {
    let queue = "{ aqm = 'pfifo', limit = '5 packets' }";
    let run = with_queue("42800 bit/s", queue, "kind = 'voip'\nrtt = '20 ms'");
    let call = flow(&run, 0);
    near(call.dropped_packets as f64 / 3000.0, 0.5, 0.01);
    near(call.mos.unwrap(), 1.0, 0.05);
    // An accepted packet finds four before it; it waits for them and for the one in transmission: 160 to 200 ms.
    near(call.one_way_ms.as_ref().unwrap().p50.unwrap(), 180.0, 21.0);
    near(call.pdv_ms.as_ref().unwrap().max.unwrap(), 200.0, 25.0);
}

/// Half of the datagrams of 2 Mbit/s wait behind a link of 1 Mbit/s when the minute ends: they are not lost. With room for
/// ten, nine out of twenty are, and those that wait are not.
#[test]
fn datagrams_that_wait_at_the_end_are_not_lost() {
    let keys = "kind = 'cbr'\nrtt = '20 ms'\nrate = '2 Mbit/s'";
    for keys in [keys, &format!("{keys}\npacket = '4000 B'\nmtu = '1500 B'")] {
        let wait = with_queue(
            "1 Mbit/s",
            "{ aqm = 'pfifo', limit = '50000 packets' }",
            keys,
        );
        assert_eq!(flow(&wait, 0).lost_packets, Some(0), "{keys}");
        assert!(flow(&wait, 0).sent_bytes > flow(&wait, 0).received_bytes * 19 / 10);
    }
    let run = with_queue("1 Mbit/s", "{ aqm = 'pfifo', limit = '10 packets' }", keys);
    let lost = flow(&run, 0);
    assert_eq!(lost.lost_packets, Some(lost.dropped_packets));
    assert!(lost.dropped_packets > lost.bottleneck_packets * 9 / 20);
}

/// Traffic whose link has too much to carry for 5 s, before the warm-up ends.
fn overloaded_at_first(traffic: &str) -> RunResult {
    common::text(&format!(
        "experiment = {{ duration = '20 s', warmup = '10 s' }}
link = {{ rate = '1 Mbit/s' }}
queue = [{{ aqm = 'pfifo', limit = '10 packets' }}]
record = {{ qoo = true }}
[[traffic]]
rtt = '20 ms'
{traffic}
[[traffic]]
kind = 'cbr'
rate = '2 Mbit/s'
rtt = '20 ms'
stop = '5 s'"
    ))
    .remove(0)
}

/// A call of which a third is lost before the warm-up ends, and nothing after it: its scores are of what came after.
#[test]
fn scores_are_of_what_came_after_the_warm_up() {
    let run = overloaded_at_first("kind = 'voip'");
    let call = flow(&run, 0);
    assert!(call.lost_packets.unwrap() > 50, "{:?}", call.lost_packets);
    near(call.mos.unwrap(), 4.4, 0.05);
    assert_eq!(run.groups[0].qoo, Some(100.0));
}

/// The loss of pings is that of the whole run, the warm-up included: of the requests that are done, without a reply.
#[test]
fn the_outcome_of_pings_counts_requests_without_a_reply() {
    let run = overloaded_at_first("kind = 'ping'\ninterval = '20 ms'\nqoo_loss = '0..50 %'");
    let lost = flow(&run, 0).lost_packets.unwrap() as f64;
    assert!(lost > 50.0, "{lost}");
    near(
        run.groups[0].qoo.unwrap(),
        100.0 * (1.0 - lost / 1000.0 / 0.5),
        1.0,
    );
}

#[test]
fn a_game_sends_its_states_down_and_its_moves_up() {
    let run = idle("kind = 'game'\nrtt = '40 ms'");
    let (down, up) = (flow(&run, 0), flow(&run, 1));
    assert_eq!((down.direction, up.direction), ("down", "up"));
    // A move every 40 ms, 83.3 bytes on average; a state every 58.46 ms, 140.8 bytes on average.
    near(up.sent_bytes as f64, 1500.0 * 83.3, 1500.0);
    near(down.sent_bytes as f64, 60_000.0 / 58.46 * 140.8, 4500.0);
}

/// draft-ietf-rmcat-gcc-02: a call takes what a link carries without standing in a queue (section 5), and at most its highest
/// media rate. Carlucci et al. 2017, section 5.2: some 80 % of a link of 1 Mbit/s, with a queue of some tens of ms.
#[test]
fn a_video_call_finds_the_rate_that_its_link_carries() {
    let call = "kind = 'call'\nrtt = '50 ms'\ndirection = 'down'";
    let run = idle(call);
    let video = flow(&run, 0).video.as_ref().unwrap();
    // 30 frames a second; the rate rises by 8 % a second from 0.3 to 2.5 Mbit/s, in 27.5 s: 1.83 Mbit/s on average.
    near(video.segments as f64, 1800.0, 5.0);
    assert_eq!((video.stalls, flow(&run, 0).lost_packets), (0, Some(0)));
    near(flow(&run, 0).goodput_bps, 1.83e6, 0.1e6);

    // The pacer spreads a frame of 33.3 ms over 13.3 ms: at first in two packets, of which the second is half of that later, and at
    // the highest rate in nine, the last 8/9 of it later.
    let frames = flow(&run, 0).frame_ms.as_ref().unwrap();
    assert_eq!(frames.n, video.segments);
    near(frames.min.unwrap(), 1000.0 / 30.0 / 2.5 / 2.0, 0.05);
    near(frames.max.unwrap(), 1000.0 / 30.0 / 2.5 * 8.0 / 9.0, 0.05);

    let run = with_queue("1 Mbit/s", "{ aqm = 'pfifo', limit = '50 packets' }", call);
    let flow = flow(&run, 0);
    near(flow.goodput_bps, 0.8e6, 0.12e6);
    let delays = flow.one_way_ms.as_ref().unwrap();
    assert!(delays.p50.unwrap() < 25.0 + 60.0, "{delays:?}");
    assert!(flow.lost_packets < Some(40), "{:?}", flow.lost_packets);
}

/// W3C webrtc-stats, freezeCount: on a link of an eighth of the lowest rate hardly any frame is whole.
#[test]
fn a_video_call_freezes_on_a_link_below_its_lowest_rate() {
    let queue = "{ aqm = 'pfifo', limit = '20 packets' }";
    let call = "kind = 'call'\nrtt = '50 ms'\ndirection = 'down'\nleast_rate = '250 kbit/s'";
    let run = with_queue("30 kbit/s", queue, call);
    let video = flow(&run, 0).video.as_ref().unwrap();
    assert!(video.stalled_ms > 10_000.0, "{video:?}");
    assert!(video.stalls > 10, "{video:?}");
}

/// Pings for 5 s, 10 s of four flows down, 10 s of four up: 30 s on a link of 20/2 Mbit/s.
#[test]
fn a_speed_test_loads_one_direction_after_the_other() {
    let text = "experiment = { duration = '30 s' }\nlink = { rate = '20 Mbit/s', buffer = '100 ms', up = { rate = '2 Mbit/s' } }
queue = [{ aqm = 'pfifo' }]\ntraffic = [{ kind = 'speed_test', rtt = '20 ms' }]\nrecord = { rtt = true }";
    let run = common::text(text).remove(0);
    let of = |direction| {
        run.flows
            .iter()
            .filter(move |flow| (flow.kind, flow.direction) == ("bulk", direction))
    };
    assert_eq!((of("down").count(), of("up").count()), (4, 4));
    let mbit = |direction| {
        of(direction)
            .map(|flow| flow.received_bytes as f64 * 8.0 / 10e6)
            .sum::<f64>()
    };
    near(mbit("down"), 19.0, 1.0);
    near(mbit("up"), 1.9, 0.2);
    let pings = |name: &str| {
        let found = run.flows.iter().find(|flow| flow.name == name);
        found.unwrap().rtt_ms
    };
    let idle = pings("ping idle");
    assert_eq!(idle.n, 25);
    near(idle.p50.unwrap(), 20.0, 0.5);
    // The others find one of the queues of 100 ms; some find it without room: upwards, where it holds 17 packets, 21 to 28 of
    // 50 come back in twelve seeds.
    for loaded in [pings("ping down"), pings("ping up")] {
        assert!((20..=50).contains(&loaded.n), "{loaded:?}");
        assert!((80.0..125.0).contains(&loaded.p50.unwrap()), "{loaded:?}");
    }
}

/// Requests and grants in intervals of 2 ms: a packet that finds the queue empty waits for 2 to 4 ms, and a queue that is never
/// empty is sent at the link's rate.
#[test]
fn a_cable_modem_waits_for_its_grants() {
    let run = |traffic: &str, granted: &str| {
        common::text(&format!(
            "experiment = {{ duration = '10 s' }}\nlink = {{ rate = '100 Mbit/s', burst = '0 B', up = {{ rate = '10 Mbit/s'{granted} }} }}
queue = [{{ aqm = 'pfifo' }}]\ntraffic = [{{ {traffic}, direction = 'up', rtt = '20 ms' }}]"
        ))
        .remove(0)
    };
    let sparse = "kind = 'cbr', rate = '11 kbit/s', packet = '100 B'";
    let up = |run: &RunResult| run.bottleneck["up"].sojourn_ms;
    let (without, with) = (run(sparse, ""), run(sparse, ", request_grant = '2 ms'"));
    assert_eq!(up(&without).max, Some(0.0));
    let delays = up(&with);
    assert!(
        delays.min.unwrap() >= 2.0 && delays.max.unwrap() <= 4.0,
        "{delays:?}"
    );
    near(delays.mean.unwrap(), 3.0, 0.15);
    let bulk = "kind = 'bulk'";
    let goodput = |granted| flow(&run(bulk, granted), 0).goodput_bps;
    near(goodput(", request_grant = '2 ms'") / goodput(""), 1.0, 0.02);
}

/// A ping whose period is a multiple of the interval meets the same wait each time, and another one with another seed.
#[test]
fn the_intervals_of_grants_begin_with_the_seed() {
    let waits = [1, 2, 3, 4, 5, 6].map(|seed| {
        let run = common::text(&format!(
            "experiment = {{ duration = '5 s', seed = {seed} }}
link = {{ rate = '100 Mbit/s', up = {{ rate = '10 Mbit/s', request_grant = '2 ms' }} }}
queue = [{{ aqm = 'pfifo' }}]
traffic = [{{ kind = 'ping', rtt = '20 ms', jitter = '0 s' }}]"
        ));
        flow(&run[0], 0).rtt_ms.p50.expect("there are replies") - 20.0
    });
    assert!(
        waits.iter().all(|wait| (1.9..4.2).contains(wait)),
        "{waits:?}"
    );
    let least = waits.into_iter().fold(f64::MAX, f64::min);
    let most = waits.into_iter().fold(0.0, f64::max);
    assert!(most - least > 0.5, "{waits:?}");
}

#[test]
fn on_off_datagrams_come_while_it_is_on() {
    let keys = "kind = 'onoff'\nrtt = '40 ms'\nrate = '1 Mbit/s'\npacket = '1250 B'";
    // 100 packets per second: for all of a minute, half of it, and a quarter of it on average.
    let all = idle(&format!("{keys}\noff = '0 s'"));
    assert_eq!(flow(&all, 0).sent_bytes, 6000 * 1250);
    let half = idle(&format!("{keys}\ntimes = 'fixed'"));
    assert_eq!(flow(&half, 0).sent_bytes, 3000 * 1250);
    let quarter = idle(&format!(
        "{keys}\non = '100 ms'\noff = '300 ms'\nflows = 20"
    ));
    let sent: u64 = quarter.flows.iter().map(|flow| flow.sent_bytes).sum();
    // The first packet leaves at once: an exponential on time of ten packet intervals on average, 100 ms, holds 1/(1 −
    // e^(−1/10)) = 10.51 packets.
    near(sent as f64 / 20.0 / 1250.0, 150.0 * 10.51, 100.0);
}

#[test]
fn on_off_tcp_writes_at_its_rate_or_sends_all_it_can() {
    let keys = "kind = 'onoff'\ntransport = 'tcp'\nrtt = '20 ms'\ntimes = 'fixed'";
    let paced = idle(&format!("{keys}\nrate = '1 Mbit/s'\npacket = '1250 B'"));
    assert_eq!(flow(&paced, 0).sent_bytes, 3000 * 1250);
    let greedy = with_queue("10 Mbit/s", "{ aqm = 'fq_codel' }", keys);
    // Half of the time at 9.56 Mbit/s of payload, less connection setup.
    near(flow(&greedy, 0).goodput_bps, 4.7e6, 0.3e6);
}

/// 10 kB are seven segments and fit in the initial window: they arrive one round trip after the SYN is sent.
#[test]
fn files_arrive_independently() {
    let run = idle("kind = 'files'\nrtt = '100 ms'\nsize = '10 kB'\narrivals = 20");
    let completion = flow(&run, 0).completion_ms.as_ref().unwrap();
    // Poisson with mean 1200: four standard deviations are 139.
    near(completion.n as f64, 1200.0, 139.0);
    near(completion.p50.unwrap(), 100.0, 1.5);
    assert_eq!(flow(&run, 0).received_bytes / 10_000, completion.n);
}

#[test]
fn files_in_a_closed_loop_wait_for_each_other() {
    let run = idle("kind = 'files'\nrtt = '100 ms'\nsize = '10 kB'\nthink = '1 s'\nflows = 20");
    let files = run
        .flows
        .iter()
        .map(|flow| flow.completion_ms.as_ref().unwrap().n);
    // 100 ms for the handshake, 100 ms until both ends have closed, 1 s of think time: 50 per minute and flow.
    near(files.sum::<u64>() as f64 / 20.0, 50.0, 5.0);
}

/// Seven objects of one segment each over three connections with an RTT of 100 ms: the document arrives at 200 ms; at
/// 300 ms one object over the open connection; at 400 ms its next one and the first ones of two more connections; the
/// last two at 500 ms.
#[test]
fn a_page_loads_over_parallel_connections() {
    let keys = "objects = 7\nparallel = 3\nsize = '1 kB'\nthink = '500 ms'";
    let run = idle(&format!("kind = 'web'\nrtt = '100 ms'\n{keys}"));
    let pages = flow(&run, 0).page_load_ms.as_ref().unwrap();
    near(pages.p50.unwrap(), 500.0, 4.0);
    near(pages.max.unwrap(), 500.0, 1.0);
    // About a second each, think time included.
    near(pages.n as f64, 60.0, 25.0);
    assert!(flow(&run, 0).received_bytes >= pages.n * 7000);
}

/// 1200 connections with 1.089 requests each; the first request takes two round trips and the server's time.
#[test]
fn packmime_connections_come_at_their_rate() {
    let run = idle("kind = 'web'\nrtt = '100 ms'\nconnections = 20");
    let responses = flow(&run, 0).completion_ms.as_ref().unwrap();
    near(responses.n as f64, 1300.0, 200.0);
    assert!(responses.p50.unwrap() >= 200.0, "{responses:?}");
    assert!(flow(&run, 0).page_load_ms.is_none());
}

#[test]
fn a_player_finds_the_rate_that_its_link_carries() {
    // 0.85 of 1.9 Mbit/s: 1050 kbit/s is the highest media rate below that; 10 Mbit/s carry the highest of all.
    for (link, bps) in [("2 Mbit/s", 1.05e6), ("10 Mbit/s", 5.8e6)] {
        let run = with_queue(
            link,
            "{ aqm = 'fq_codel' }",
            "kind = 'video'\nrtt = '40 ms'",
        );
        let video = flow(&run, 0).video.as_ref().unwrap();
        // A minute is played and up to thirty seconds are buffered, in segments of four seconds.
        assert!((19..=23).contains(&video.segments), "{video:?}");
        let mean = ((video.segments - 1) as f64 * bps + 235e3) / video.segments as f64;
        near(video.media_rate_bps.unwrap(), mean, 0.1 * bps);
        assert_eq!((video.stalls, video.stalled_ms), (0, 0.0));
        // Four seconds at the lowest rate are 117.5 kB: 94 ms at 10 Mbit/s, 470 ms at 2 Mbit/s; plus a few round trips.
        assert!(
            (94.0..800.0).contains(&video.startup_ms.unwrap()),
            "{video:?}"
        );
    }
}

#[test]
fn a_player_stalls_on_a_link_below_its_lowest_rate() {
    let run = with_queue(
        "200 kbit/s",
        "{ aqm = 'fq_codel' }",
        "kind = 'video'\nrtt = '40 ms'",
    );
    let video = flow(&run, 0).video.as_ref().unwrap();
    assert!(video.stalls > 3 && video.switches == 0, "{video:?}");
    // 235 kbit/s over 190 kbit/s of payload: stalled for a fifth of the time.
    near(video.stalled_ms, 12_000.0, 5_000.0);
}

#[test]
fn an_echo_over_udp_is_answered_like_one_over_icmp() {
    for protocol in ["icmp", "udp"] {
        let keys = format!("protocol = '{protocol}'\npacket = '1 B'");
        let run = idle(&format!("kind = 'ping'\nrtt = '40 ms'\n{keys}"));
        let ping = flow(&run, 0);
        assert_eq!((ping.sent_bytes, ping.lost_packets), (60, Some(0)));
        near(ping.rtt_ms.p50.unwrap(), 40.0, 0.5);
    }
}

/// pfifo_fast serves packets that ask for low delay (TOS 0x10, code point 4) first: of two flows of 8 Mbit/s at 10
/// Mbit/s, the marked one gets its full rate.
#[test]
fn a_discipline_sees_the_code_points() {
    let cbr = |dscp| format!("kind = 'cbr'\nrtt = '40 ms'\nrate = '8 Mbit/s'\ndscp = {dscp}");
    let traffic = format!("{}\n[[traffic]]\n{}", cbr(0), cbr(4));
    let queue = "{ aqm = 'pfifo_fast', variant = 'linux' }";
    let run = with_queue("10 Mbit/s", queue, &traffic);
    near(flow(&run, 1).goodput_bps, 8e6, 0.05e6);
    assert!(flow(&run, 0).goodput_bps < 2e6);
    assert_eq!((flow(&run, 0).dscp, flow(&run, 1).dscp), (0, 4));
}

#[test]
fn rrul_loads_both_ways_and_probes() {
    let link = "10 Mbit/s', up = { rate = '2 Mbit/s' }, buffer = '1000 packets";
    let run = with_queue(link, "{ aqm = 'fq_codel' }", "kind = 'rrul'\nrtt = '40 ms'");
    let bulk = |direction: &str| {
        let wanted = |flow: &&Flow| flow.kind == "bulk" && flow.direction == direction;
        let goodputs = run.flows.iter().filter(wanted).map(|flow| flow.goodput_bps);
        goodputs.collect::<Vec<f64>>()
    };
    assert_eq!((bulk("down").len(), bulk("up").len()), (4, 4));
    // They send in the last 55 of 60 s; acknowledgements of the other direction take their share.
    near(bulk("down").iter().sum(), 9.2e6, 0.5e6);
    near(bulk("up").iter().sum(), 1.7e6, 0.2e6);
    let pings = run.flows.iter().filter(|flow| flow.kind == "ping");
    // 300 requests per minute, of 56 bytes over ICMP and of one byte over UDP.
    assert_eq!(
        pings.map(|flow| flow.sent_bytes / 300).collect::<Vec<_>>(),
        [56, 1, 1, 1]
    );
}

const EVERY_KIND: &str = "
kind = 'bulk'\nflows = 3\nrtt = '40 ms'\necn = true
[[traffic]]\nkind = 'cbr'\nrtt = '20 ms'\nrate = '2 Mbit/s'
[[traffic]]\nkind = 'voip'\nrtt = '40 ms'\ndscp = 'EF'
[[traffic]]\nkind = 'game'\nrtt = '40 ms'\ndirection = 'down'
[[traffic]]\nkind = 'web'\nrtt = '40 ms'\nconnections = 10
[[traffic]]\nkind = 'web'\nrtt = '40 ms'\nobjects = 10
[[traffic]]\nkind = 'files'\nrtt = '40 ms'\narrivals = 3\nsize = { distribution = 'pareto', mean = '20 kB', shape = 1.3 }
[[traffic]]\nkind = 'video'\nrtt = '40 ms'
[[traffic]]\nkind = 'onoff'\nrtt = '40 ms'\nrate = '1 Mbit/s'
[[traffic]]\nkind = 'onoff'\nrtt = '40 ms'\ntransport = 'tcp'";

#[test]
fn every_packet_is_delivered_dropped_or_still_queued() {
    for queue in [
        "{ aqm = 'pfifo', limit = '50 packets' }",
        "{ aqm = 'fq_codel' }",
        "{ aqm = 'pie', ecn = true }",
    ] {
        let run = with_queue("10 Mbit/s", queue, EVERY_KIND);
        let down = &run.bottleneck["down"];
        // Requests and acknowledgements go upstream, where there is no bottleneck.
        let total = |of: fn(&Flow) -> u64| run.flows.iter().map(of).sum::<u64>();
        let dropped = total(|flow| flow.dropped_packets);
        assert_eq!(dropped, down.dropped_aqm + down.dropped_overflow, "{queue}");
        assert!(dropped > 0, "{queue}");
        let waiting = total(|flow| flow.bottleneck_packets) - dropped - down.delivered_packets;
        assert!(waiting <= 1000, "{queue}: {waiting} packets");
        // A marked packet still queued at the end is not counted.
        let marked = total(|flow| flow.marked_packets);
        assert!(
            marked <= down.marked && down.marked - marked <= waiting,
            "{queue}"
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let one = || {
        let mut run = with_queue("10 Mbit/s", "{ aqm = 'fq_codel' }", EVERY_KIND);
        run.wall_s = 0.0;
        serde_json::to_string(&run).unwrap()
    };
    assert_eq!(one(), one());
}

#[test]
fn other_traffic_does_not_change_a_flows_random_draws() {
    let web = "kind = 'web'\nrtt = '40 ms'\nconnections = 10";
    let alone = idle(web);
    let beside = idle(&format!(
        "{web}\n[[traffic]]\nkind = 'files'\nrtt = '40 ms'\nsize = '9 kB'"
    ));
    assert_eq!(flow(&alone, 0).sent_bytes, flow(&beside, 0).sent_bytes);
}

#[test]
fn madpie_reports_its_deterministic_drops_separately() {
    let bulk = "kind = 'bulk'\nflows = 10\nrtt = '500 ms'";
    let queue = "{ aqm = 'madpie', deterministic_above = '25 ms' }";
    let run = with_queue("10 Mbit/s", queue, bulk);
    let down = &run.bottleneck["down"];
    let n = |reason: &str| down.drop_delay_ms.get(reason).map_or(0, |spread| spread.n);
    assert!(n("deterministic") > 0 && n("aqm") > 0);
    assert_eq!(n("deterministic") + n("aqm"), down.dropped_aqm);
    // Armed above 25 ms; the drop comes before much of the queue has left.
    assert!(down.drop_delay_ms["deterministic"].p50.unwrap() > 20.0);
    let plain = with_queue("10 Mbit/s", "{ aqm = 'pie' }", bulk);
    assert!(
        !plain.bottleneck["down"]
            .drop_delay_ms
            .contains_key("deterministic")
    );
}

/// Drop-tail with room for 40 packets: an overflow drop finds a full queue; 40 · 1514 bytes take 48.4 ms at 10 Mbit/s.
#[test]
fn an_overflow_has_the_delay_of_the_full_queue() {
    let bulk = "kind = 'bulk'\nflows = 4\nrtt = '40 ms'";
    let run = with_queue("10 Mbit/s", "{ aqm = 'pfifo', limit = '40 packets' }", bulk);
    let down = &run.bottleneck["down"];
    near(down.drop_delay_ms["overflow"].p50.unwrap(), 48.4, 1.0);
    assert_eq!(down.drop_delay_ms.len(), 1);
    assert!(down.loss_events > 0);
    let share = down.loss_synchronization.unwrap();
    assert!((0.25..=1.0).contains(&share), "{share}");
    assert!((0.25..=1.0).contains(&run.jain_drop_share.unwrap()));
    let received: u64 = run.flows.iter().map(|flow| flow.received_bytes).sum();
    near(run.transferred_kilobytes, received as f64 / 1000.0, 1e-6);
}

/// The power of one flow is its goodput divided by its mean RTT.
#[test]
fn network_power_is_goodput_over_delay() {
    let run = with_queue(
        "10 Mbit/s",
        "{ aqm = 'codel' }",
        "kind = 'bulk'\nrtt = '40 ms'",
    );
    let bulk = flow(&run, 0);
    let expected = bulk.goodput_bps / (bulk.rtt_ms.mean.unwrap() / 1000.0);
    near(bulk.power_bps_per_s.unwrap() / expected, 1.0, 1e-6);
    near(run.power_bps_per_s.unwrap() / expected, 1.0, 1e-6);
}

/// Frames of 1,500 bytes on a serial line of 12 Mbit/s, one per millisecond from 0 on: 1,000 have arrived before the stop at 1 s,
/// and over a thousand are queued. Each of two flows has its own stop; one that stops within the warm-up has no goodput.
#[test]
fn goodput_counts_what_arrives_until_the_flow_stops() {
    let group = |stop: &str| {
        format!(
            "kind = 'cbr'\nrate = '24 Mbit/s'\npacket = '1458 B'\nrtt = '20 ms'\nstart = '{stop}'\n"
        )
    };
    let traffic = group("0 s'\nstop = '1 s") + "[[traffic]]\n" + &group("4 s'\nstop = '6 s");
    let goodput = |warmup: &str| {
        let text = format!(
            "experiment = {{ duration = '10 s', warmup = '{warmup}' }}\nlink = {{ rate = '12 Mbit/s', buffer = '5000 packets', burst = '0 B' }}
queue = [{{ aqm = 'pfifo' }}]\n[[traffic]]\n{traffic}"
        );
        let run = common::text(&text).remove(0);
        let received = [0, 1].map(|at| flow(&run, at).received_bytes / 1458);
        assert_eq!(received, [2058, 4115]);
        [0, 1].map(|at| flow(&run, at).goodput_bps)
    };
    let frames = |arrived: f64, s: f64| arrived * 1458.0 * 8.0 / s;
    assert_eq!(goodput("0 s"), [frames(1000.0, 1.0), frames(2000.0, 2.0)]);
    assert_eq!(goodput("1.5 s")[0], 0.0);
    assert_eq!(goodput("5 s"), [0.0, frames(1000.0, 1.0)]);
}

/// As TCP counts what its receiver has in order: the full link carries 11.36 Mbit/s of payload until the stop, not the 250 packets
/// that are queued then.
#[test]
fn goodput_of_a_connection_ends_with_its_stop() {
    let text = "experiment = { duration = '10 s', warmup = '2 s' }\nlink = { rate = '12 Mbit/s', buffer = '250 packets' }
queue = [{ aqm = 'pfifo' }]\ntraffic = [{ kind = 'bulk', rtt = '20 ms', stop = '4 s' }]";
    let run = common::text(text).remove(0);
    let carried = 12e6 * 1448.0 / 1500.0;
    near(flow(&run, 0).goodput_bps / carried, 1.0, 0.01);
    assert!(flow(&run, 0).goodput_bps <= carried * 1.001);
}

#[test]
fn round_trips_are_recorded_one_by_one_and_per_bin() {
    let run = &runs(
        "10 s",
        "10 Mbit/s",
        "{ aqm = 'codel' }",
        "kind = 'ping'\ninterval = '250 ms'\nrtt = '40 ms'",
        "[record]\nrtt = true\nseries = '1 s'",
    )[0];
    let rtts = run.rtts.as_ref().unwrap();
    assert_eq!(column(rtts, "rtt_ns").len(), 40);
    let fits = |nanos: &f64| (40e6..40.5e6).contains(nanos);
    assert!(column(rtts, "rtt_ns").iter().all(fits));
    near(column(rtts, "time_ns")[0], 40e6, 0.5e6);
    let series = run.flow_series.as_ref().unwrap();
    assert_eq!(column(series, "rtt_ms").len(), 10);
    near(column(series, "rtt_ms")[9], 40.0, 0.5);
}

#[test]
fn completions_are_recorded_one_by_one() {
    let run = &runs(
        "20 s",
        "10 Mbit/s",
        "{ aqm = 'codel' }",
        "kind = 'files'\nflows = 2\nsize = '15 kB'\nthink = '1 s'\nrtt = '40 ms'",
        "",
    )[0];
    let completions = run.completions.as_ref().unwrap();
    for flow in 0..2 {
        let known = run.flows[flow].completion_ms.as_ref().unwrap();
        let of_flow: Vec<f64> = column(completions, "completion_ns")
            .into_iter()
            .zip(column(completions, "flow"))
            .filter(|(_, number)| *number as usize == flow)
            .map(|(nanos, _)| nanos / 1e6)
            .collect();
        assert!(of_flow.len() > 5);
        assert_eq!(of_flow.len() as u64, known.n);
        let mean = of_flow.iter().sum::<f64>() / of_flow.len() as f64;
        near(mean, known.mean.unwrap(), 1e-3);
    }
}

/// Ten segments that meet no queue: one row each, with the base RTT plus the transmission time of a full window.
#[test]
fn round_trips_can_be_recorded_per_segment() {
    let run = &runs(
        "2 s",
        "1 Gbit/s",
        "{ aqm = 'pfifo' }",
        "kind = 'files'\nsize = '14480 B'\ncount = 1\nrtt = '40 ms'",
        "[record]\nrtt = true\nrtt_of = 'segments'",
    )[0];
    let rtts = column(run.rtts.as_ref().unwrap(), "rtt_ns");
    assert_eq!(rtts.len(), 10);
    assert!(rtts.iter().all(|nanos| (40e6..40.2e6).contains(nanos)));
}

/// Nichols and Jacobson 2012, figure 1: packets that arrive 1 ms apart and take 10 ms each wait 9 ms longer than the
/// previous one. Here three packets of 1500 bytes at 12 and at 1.2 Mbit/s.
#[test]
fn a_burst_reaches_the_bottleneck_at_the_rate_of_the_access_link() {
    let run = &runs(
        "2 s",
        "1.2 Mbit/s', overhead = '0 B', burst = '0 B",
        "{ aqm = 'pfifo' }",
        "kind = 'files'\nsize = '4344 B'\ncount = 1\nrtt = '40 ms'\naccess = '12 Mbit/s'",
        "[record]\npackets = true",
    )[0];
    let packets = run.packets.as_ref().unwrap();
    let bytes = column(packets, "bytes").into_iter();
    let data = bytes
        .zip(column(packets, "sojourn_ns"))
        .filter(|(bytes, _)| *bytes == 1500.0);
    let waits: Vec<f64> = data.map(|(_, nanos)| nanos / 1e6).collect();
    assert_eq!(waits, [0.0, 9.0, 18.0]);
}

/// Two flows of a group share the access link: each gets half of its 2 Mbit/s, 1448 of 1514 bytes of which are payload.
#[test]
fn flows_of_a_host_share_its_access_link() {
    let run = with_queue(
        "10 Mbit/s",
        "{ aqm = 'pfifo' }",
        "kind = 'bulk'\nflows = 2\nrtt = '20 ms'\naccess = '2 Mbit/s'\nwindow = '64 kB'",
    );
    let total: f64 = (0..2).map(|at| flow(&run, at).goodput_bps).sum();
    near(total, 2e6 * 1448.0 / 1514.0, 10_000.0);
    assert_eq!(run.bottleneck["down"].sojourn_ms.p99, Some(0.0));
}

/// The access link is the bottleneck: 64 kB in flight would queue there for 52 ms. TCP small queues let two bursts of
/// two segments wait there and one more join, 7.3 ms at 10 Mbit/s, without loss of throughput.
#[test]
fn tcp_small_queues_keep_the_host_queue_short() {
    let of = |keys| {
        let kind = "kind = 'bulk'\nrtt = '20 ms'\naccess = '10 Mbit/s'\nwindow = '64 kB'\n";
        with_queue("100 Mbit/s", "{ aqm = 'pfifo' }", &format!("{kind}{keys}"))
    };
    let rtt = |run| flow(run, 0).rtt_ms.p50.expect("round trips");
    let (short, long) = (of(""), of("small_queues = false"));
    near(rtt(&short), 20.0 + 6.0 * 1.21, 1.5);
    near(rtt(&long), 64.0 * 8.0 / 10.0 * 1514.0 / 1448.0, 2.0);
    let [short, long] = [&short, &long].map(|run| flow(run, 0).goodput_bps);
    near(short, long, 1e4);
}

/// A datagram of 1500 bytes needs two packets of at most 1500 bytes: 5000 datagrams per minute at 1 Mbit/s.
#[test]
fn datagrams_larger_than_the_mtu_are_fragmented() {
    let run =
        idle("kind = 'cbr'\nrate = '1 Mbit/s'\npacket = '1500 B'\nmtu = '1500 B'\nrtt = '20 ms'");
    let cbr = flow(&run, 0);
    assert_eq!(
        (cbr.sent_bytes, cbr.bottleneck_packets),
        (7_500_000, 10_000)
    );
    near(cbr.received_bytes as f64, 7_500_000.0, 1500.0);
}

/// The application writes 4 Mbit/s for 10 s onto a link of 1 Mbit/s. Without a limit all 5 MB arrive in the end. With a
/// send buffer of 64 kB, data that does not fit is lost: what arrives is 10 s of the link, 1448 of 1514 bytes of which
/// are payload, plus the buffer at the end.
#[test]
fn a_write_that_does_not_fit_the_send_buffer_is_lost() {
    let received = |keys| {
        let keys = format!("kind = 'onoff'\ntransport = 'tcp'\noff = '0 s'\nrtt = '20 ms'\n{keys}");
        let traffic = format!("{keys}\nrate = '4 Mbit/s'\npacket = '1000 B'\nstop = '10 s'");
        let run = with_queue(
            "1 Mbit/s",
            "{ aqm = 'pfifo', limit = '100 packets' }",
            &traffic,
        );
        flow(&run, 0).received_bytes as f64
    };
    near(received(""), 5_000_000.0, 1000.0);
    let carried = 10.0 * 1e6 / 8.0 * 1448.0 / 1514.0;
    // Less the handshake, the last round trip and the first segments, each of which carries one write.
    near(
        received("send_buffer = '64 kB'"),
        carried + 64_000.0,
        20_000.0,
    );
}

/// A write of 1500 bytes leaves as 536 + 536 + 428 bytes. At 5 Mbit/s, with 54 bytes of headers, the second segment
/// waits 0.944 ms and the third 1.888 ms; the pairwise differences are 0.944, 0.944 and 1.888 ms. The device queue
/// below the discipline holds them, and the delay counts all the same.
#[test]
fn one_way_delays_of_segments_include_the_device_queue() {
    let line =
        "5 Mbit/s', delay = '25 ms', burst = '0 B', overhead = '2 B', device_queue = '100 packets";
    let keys = "kind = 'onoff'\ntransport = 'tcp'\noff = '0 s'\nrtt = '50 ms'\nmss = '536 B'";
    let run = &runs(
        "20 s",
        line,
        "{ aqm = 'pfifo' }",
        &format!("{keys}\nrate = '3 Mbit/s'\npacket = '1500 B'"),
        "[record]\none_way = true",
    )[0];
    let flow = flow(run, 0);
    assert_eq!(run.bottleneck["down"].sojourn_ms.max, Some(0.0));
    near(flow.one_way_ms.as_ref().unwrap().p5.unwrap(), 25.0, 0.2);
    near(flow.one_way_ms.as_ref().unwrap().p50.unwrap(), 25.9, 0.2);
    near(
        flow.jitter_ms.as_ref().unwrap().p50.unwrap(),
        4.0 * 0.944 / 3.0,
        0.05,
    );
}

/// The base RTT excludes only the queues, wherever the propagation delay lies: echoes over an idle link take exactly
/// that, even if the way back is a bottleneck with the same propagation delay behind it.
#[test]
fn the_base_rtt_counts_the_links_delay_once_each_way() {
    let ping = "kind = 'ping'\ninterval = '1 s'\nrtt = '40 ms'\ndirection = 'both'";
    for up in ["", ", up = { rate = '1 Gbit/s' }"] {
        let rate = format!("1 Gbit/s', delay = '10 ms'{up}, burst = '1600 B");
        for echoes in &with_queue(&rate, "{ aqm = 'pfifo' }", ping).flows {
            near(echoes.rtt_ms.p50.unwrap(), 40.0, 0.001);
        }
    }
}
