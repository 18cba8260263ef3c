//! Figures of inner queues, of groups, and histograms agree with those of all packets and of each flow.

mod common;

use common::{column, runs, with_queue};
use sojourn_sim::RunResult;
use sojourn_sim::result::{Bottleneck, InnerQueue};

fn down(run: &RunResult) -> &Bottleneck {
    &run.bottleneck["down"]
}

/// The inner queues of these names. Their deliveries and drops add up to those of the whole queue.
fn inner<'r>(run: &'r RunResult, names: &[&str]) -> Vec<&'r InnerQueue> {
    let down = down(run);
    assert_eq!(down.queues.keys().copied().collect::<Vec<_>>(), names);
    let inner: Vec<&InnerQueue> = down.queues.values().collect();
    let total = |of: fn(&InnerQueue) -> u64| inner.iter().map(|queue| of(queue)).sum::<u64>();
    assert_eq!(
        total(|queue| queue.delivered_packets),
        down.delivered_packets
    );
    assert_eq!(
        total(|queue| queue.dropped_packets),
        down.dropped_aqm + down.dropped_overflow
    );
    assert_eq!(total(|queue| queue.sojourn_ms.n), down.sojourn_ms.n);
    inner
}

/// RFC 9332: the classic queue stays near its target of 15 ms, the L queue near 1 ms.
#[test]
fn the_two_queues_of_dualpi2_are_measured_separately() {
    let traffic =
        "kind = 'bulk'\ntcp = 'prague'\nrtt = '20 ms'\n[[traffic]]\nkind = 'bulk'\nrtt = '20 ms'";
    let run = with_queue("40 Mbit/s", "{ aqm = 'dualpi2' }", traffic);
    let [classic, low_latency] = inner(&run, &["c", "l"])[..] else {
        unreachable!("two were named");
    };
    let p50 = |queue: &InnerQueue| queue.sojourn_ms.p50.expect("packets left it");
    assert!((5.0..30.0).contains(&p50(classic)), "{classic:?}");
    assert!(p50(low_latency) < 2.0, "{low_latency:?}");
    assert!(low_latency.marked > 0 && classic.marked == 0);
    assert!(low_latency.marked <= down(&run).marked);
}

/// `tc -s qdisc` for `cake bandwidth 10Mbit diffserv4`: thresholds of 1/16, 1, 1/2 and 1/4 of the rate. At 625 kbit/s a frame of
/// 1,514 bytes takes 19.4 ms, so the target is 1.5 times that, and the interval longer by as much.
#[test]
fn tins_say_what_they_were_given() {
    let queue = "{ aqm = 'cake', bandwidth = '10 Mbit/s', diffserv = 'diffserv4' }";
    let run = with_queue("20 Mbit/s", queue, "kind = 'bulk'\nrtt = '20 ms'");
    let given = |name: &str| {
        let tin = &down(&run).queues[name];
        let ms = [tin.target_ms, tin.interval_ms].map(|ms| ms.expect("a tin has it"));
        (tin.threshold_bps.expect("it shapes"), ms)
    };
    assert_eq!(given("besteffort"), (10_000_000, [5.0, 100.0]));
    assert_eq!(given("video").0, 5_000_000);
    assert_eq!(given("voice").0, 2_500_000);
    let (threshold, [target, interval]) = given("bulk");
    assert_eq!(threshold, 625_000);
    assert!((target - 29.07).abs() < 0.01, "{target}");
    assert!((interval - 124.07).abs() < 0.01, "{interval}");
}

#[test]
fn tins_and_sparse_flows_are_measured_separately() {
    let call = "[[traffic]]\nkind = 'voip'\nrtt = '40 ms'\ndscp = 'EF'";
    let traffic = format!("kind = 'bulk'\nflows = 4\nrtt = '40 ms'\n{call}");
    let cake = with_queue(
        "10 Mbit/s",
        "{ aqm = 'cake', bandwidth = '9 Mbit/s' }",
        &traffic,
    );
    let tins = inner(&cake, &["besteffort", "bulk", "voice"]);
    // 50 packets a second for a minute.
    assert_eq!(tins[2].delivered_packets, 3000);
    assert_eq!(tins[1].delivered_packets, 0);
    let fair = with_queue("10 Mbit/s", "{ aqm = 'fq_codel' }", &traffic);
    let [bulk, sparse] = inner(&fair, &["bulk", "sparse"])[..] else {
        unreachable!("two were named");
    };
    // A call's packet never finds another one queued: all 3000 are sparse. A frame takes 1.2 ms at 10 Mbit/s.
    assert!(sparse.delivered_packets >= 3000);
    assert!(sparse.sojourn_ms.p95 < Some(2.0) && bulk.sojourn_ms.p50 > Some(2.0));
    let pie = with_queue("10 Mbit/s", "{ aqm = 'pie' }", &traffic);
    assert!(down(&pie).queues.is_empty());
}

#[test]
fn a_group_is_its_flows_together() {
    let groups = "kind = 'bulk'\nflows = 3\ndirection = 'both'\nwindow = '30 kB'\nrtt = '40 ms'\n[[traffic]]\nkind = 'ping'\nrtt = '40 ms'\n\
        [[traffic]]\nkind = 'bulk'\nrtt = '80 ms'\n[[traffic]]\nkind = 'voip'\nflows = 2\nrtt = '40 ms'";
    let run = with_queue("10 Mbit/s", "{ aqm = 'codel' }", groups);
    let named: Vec<_> = run
        .groups
        .iter()
        .map(|group| (group.name.as_str(), group.direction, group.flows))
        .collect();
    assert_eq!(
        named,
        [
            ("bulk 0", "down", 3),
            ("bulk 0", "up", 3),
            ("ping", "down", 1),
            ("bulk 2", "down", 1),
            ("voip", "down", 2),
        ]
    );
    for group in &run.groups {
        let members = || {
            let own = |flow: &&sojourn_sim::result::Flow| {
                (flow.traffic, flow.direction) == (group.traffic, group.direction)
            };
            run.flows.iter().filter(own)
        };
        assert!(members().all(|flow| flow.name == group.name));
        let goodput: f64 = members().map(|flow| flow.goodput_bps).sum();
        assert!((group.goodput_bps - goodput).abs() < 1e-6 * goodput);
        let n: u64 = members().map(|flow| flow.rtt_ms.n).sum();
        assert_eq!(group.pooled.rtt_ms.n, n);
        let most = members()
            .filter_map(|flow| flow.rtt_ms.max)
            .fold(0.0, f64::max);
        assert_eq!(group.pooled.rtt_ms.max.unwrap_or(0.0), most);
    }
    let calls = run.groups.last().expect("there are five");
    let of_each = run.flows.iter().filter(|flow| flow.kind == "voip");
    let n: u64 = of_each
        .filter_map(|flow| Some(flow.one_way_ms.as_ref()?.n))
        .sum();
    assert_eq!(calls.pooled.one_way_ms.map(|delays| delays.n), Some(n));
    let of_each = run.flows.iter().filter_map(|flow| flow.mos);
    assert_eq!(calls.mos, Some(of_each.sum::<f64>() / 2.0));
    assert!(calls.pooled.completion_ms.is_none());
}

/// The table has the packets of the summary, and its quantiles agree with the summary's within 1 %.
#[test]
fn the_histogram_holds_every_steady_packet() {
    let traffic = "kind = 'bulk'\nflows = 4\nrtt = '40 ms'";
    let run = &runs("20 s", "10 Mbit/s", "{ aqm = 'codel' }", traffic, "")[0];
    let table = run.histogram.as_ref().expect("it is always there");
    let (edges, packets) = (column(table, "sojourn_ms"), column(table, "packets"));
    assert!(
        column(table, "direction")
            .iter()
            .all(|direction| *direction == 0.0)
    );
    assert!(edges.windows(2).all(|pair| pair[0] < pair[1]) && packets.iter().all(|n| *n > 0.0));
    let sojourn = down(run).sojourn_ms;
    assert_eq!(packets.iter().sum::<f64>(), sojourn.n as f64);
    assert_eq!(edges.last().copied(), sojourn.max);
    for (share, quantile) in [(0.05, sojourn.p5), (0.5, sojourn.p50), (0.95, sojourn.p95)] {
        let rank = (share * sojourn.n as f64).ceil();
        let mut seen = 0.0;
        let place = packets.iter().position(|n| {
            seen += n;
            seen >= rank
        });
        let (edge, quantile) = (
            edges[place.expect("a bucket")],
            quantile.expect("packets left"),
        );
        assert!(
            edge >= quantile && edge < 1.01 * quantile + 0.001,
            "{edge} for {quantile}"
        );
    }
}
