//! CAKE shares a link between hosts, however many groups of traffic each has (tc-cake(8), "Flow isolation parameters").

mod common;

use common::text;

/// Two PCs behind one link, the first with two groups of nine flows, the second with a group of one.
fn goodputs(isolation: &str, more: &str) -> Vec<f64> {
    let run = text(&format!(
        "experiment = {{ duration = '20 s', warmup = '5 s' }}
        [[queue]]
        aqm = 'cake'
        variant = 'linux'
        bandwidth = '49 Mbit/s'
        isolation = '{isolation}'
        {more}"
    ))
    .remove(0);
    let groups = run.groups.iter();
    groups.map(|group| group.goodput_bps / 1e6).collect()
}

/// The groups, with the keys that say where each belongs.
fn groups(of_first: &str, of_second: &str) -> String {
    let group = |flows, place: &str| {
        format!("[[traffic]]\nkind = 'bulk'\nrtt = '20 ms'\nflows = {flows}\n{place}\n")
    };
    [group(8, of_first), group(1, of_first), group(1, of_second)].concat()
}

fn assert_halves(shares: &[f64], of: &str) {
    let (first, second) = (shares[0] + shares[1], shares[2]);
    for share in [first, second] {
        assert!(
            (share / 23.5 - 1.0).abs() < 0.05,
            "{of}: {first} and {second} Mbit/s"
        );
    }
}

/// A link of 50 Mbit/s between a server and a router, with a link to each PC behind it; the traffic leads away from the server,
/// or to it.
fn two_pcs(is_up: bool) -> String {
    let link = |name: &str, rate: &str, from: &str, to: &str, queue: &str| {
        let (from, to) = if is_up { (to, from) } else { (from, to) };
        format!(
            "[[link]]\nname = '{name}'\nrate = '{rate}'\nfrom = '{from}'\nto = '{to}'\n{queue}\n"
        )
    };
    let lan = "queue = { aqm = 'pfifo' }";
    let links = [
        link("wan", "50 Mbit/s", "server", "router", ""),
        link("lan1", "1 Gbit/s", "router", "pc1", lan),
        link("lan2", "1 Gbit/s", "router", "pc2", lan),
    ];
    let between = |pc: &str| match is_up {
        false => format!("from = 'server'\nto = '{pc}'"),
        true => format!("from = '{pc}'\nto = 'server'"),
    };
    links.concat() + &groups(&between("pc1"), &between("pc2"))
}

#[test]
fn nodes_are_hosts() {
    for isolation in ["dual-dsthost", "dsthost", "hosts"] {
        assert_halves(&goodputs(isolation, &two_pcs(false)), isolation);
    }
    for isolation in ["dual-srchost", "srchost", "hosts"] {
        assert_halves(&goodputs(isolation, &two_pcs(true)), isolation);
    }
}

/// Measured on Linux 7.3, Mbit/s, with the same flows between the same namespaces. The single flow leaves some of its half.
/// With one server for all, its ten flows count more than either PC's, so that triple-isolate is fair between flows.
#[test]
fn nodes_get_what_they_get_on_linux() {
    for (is_up, isolation, linux) in [
        (false, "dual-dsthost", [21.5, 2.69, 22.68]),
        (false, "triple-isolate", [37.49, 4.69, 4.69]),
        (false, "hosts", [20.89, 2.74, 23.22]),
        (true, "dual-srchost", [21.50, 2.69, 22.66]),
        (true, "triple-isolate", [37.49, 4.69, 4.69]),
        (true, "hosts", [21.00, 2.63, 23.22]),
    ] {
        let ours = goodputs(isolation, &two_pcs(is_up));
        for (ours, linux) in ours.iter().zip(linux) {
            assert!(
                (ours - linux).abs() < 0.5,
                "{isolation}: {ours}, on Linux {linux}"
            );
        }
    }
}

/// Hosts whose queues never run empty have half of the link each to the packet, with nine flows or with one, as on Linux
/// 7.3: flows of UDP, and of TCP where COBALT lets queues be longer. What a single flow of TCP leaves of its half otherwise
/// is its own doing: its window falls below what the half needs.
#[test]
fn hosts_that_always_have_packets_share_to_the_packet() {
    for (is_up, isolation) in [(false, "dual-dsthost"), (true, "dual-srchost")] {
        let tcp = two_pcs(is_up);
        let udp = |rate: &str| format!("kind = 'cbr'\nrate = '{rate}'\n");
        let (first, last) = tcp.rsplit_once("kind = 'bulk'\n").unwrap();
        let first = first.replace("kind = 'bulk'\n", &udp("5 Mbit/s"));
        let udp = first + &udp("40 Mbit/s") + last;
        let tcp = format!("rtt = '300 ms'\n{tcp}");
        for (traffic, linux) in [(udp, 23.81), (tcp, 23.43)] {
            let shares = goodputs(isolation, &traffic);
            let (first, second) = (shares[0] + shares[1], shares[2]);
            assert!((first - second).abs() < 0.03, "{first} and {second} Mbit/s");
            assert!((second - linux).abs() < 0.02, "{second}, on Linux {linux}");
        }
    }
}

#[test]
fn groups_behind_one_link_share_a_host_by_its_name() {
    let link = "link = { rate = '50 Mbit/s', up = { rate = '50 Mbit/s' } }\n";
    let cases = [
        ("down", "dual-dsthost"),
        ("down", "triple-isolate"),
        ("up", "dual-srchost"),
    ];
    for (direction, isolation) in cases {
        let of = |host: &str| format!("direction = '{direction}'\nhost = '{host}'");
        let run = |traffic: &str| {
            let text = format!(
                "experiment = {{ duration = '20 s', warmup = '5 s' }}\n{link}queue = [{{ aqm = 'cake', variant = 'linux', \
                 bandwidth = '49 Mbit/s', isolation = '{isolation}' }}]\n{traffic}"
            );
            let run = self::text(&text).remove(0);
            run.groups
                .iter()
                .map(|group| group.goodput_bps / 1e6)
                .collect::<Vec<_>>()
        };
        assert_halves(&run(&groups(&of("pc1"), &of("pc2"))), direction);
        let apart = run(&groups(
            &format!("direction = '{direction}'"),
            &format!("direction = '{direction}'"),
        ));
        let third = 47.0 / 3.0;
        assert!(
            apart.iter().all(|share| (share / third - 1.0).abs() < 0.05),
            "{apart:?}"
        );
    }
}
