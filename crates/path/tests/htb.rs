//! The classes of HTB, above drop-tail queues of 1000-byte packets that never run empty. Rates are checked by counting for
//! ten seconds; a packet is 8000 bits.

use sojourn_aqm::fifo::DropTail;
use sojourn_aqm::{Datagram, FlowKey, Limit, Single};
use sojourn_path::htb::{Class, boxed};
use sojourn_path::link::BoxedQdisc;
use sojourn_path::{Link, LinkConfig, NoObserver};
use sojourn_units::{Rate, Time};

const BYTES: u32 = 1000;
/// More than a turn of any class below, so that no tokens are lost while others have theirs.
const BURST: u64 = 40_000;
const SECONDS: u64 = 10;

type Packet = Datagram<()>;

fn kbps(rate: u64) -> Rate {
    Rate::from_bps(rate * 1000).expect("above zero")
}

fn class(parent: Option<usize>, rate: u64, ceil: u64) -> Class {
    Class {
        parent,
        rate: kbps(rate),
        ceil: kbps(ceil),
    }
}

fn packet(leaf: u32) -> Packet {
    let flow = FlowKey {
        destination: leaf,
        ..FlowKey::numbered(0)
    };
    Datagram::new((), BYTES).with_flow(flow)
}

/// A link of 8 Mbit/s with these classes; the number of a class is the address of its host.
fn link(classes: &[Class], burst: u64) -> Link<Packet> {
    let fifo = || Box::new(Single::new(DropTail, Limit::Packets(1000))) as BoxedQdisc<Packet>;
    let is_leaf = |number: &usize| classes.iter().all(|of| of.parent != Some(*number));
    let leaves: Vec<usize> = (0..classes.len()).filter(is_leaf).collect();
    let hosts: Vec<(u32, usize)> = leaves.iter().map(|leaf| (*leaf as u32, *leaf)).collect();
    let fifos = leaves.iter().map(|_| fifo()).collect();
    let config = LinkConfig::of_rate(Rate::from_mbps(8));
    Link::new(boxed(classes, burst, fifos, &hosts), config)
}

fn offer(link: &mut Link<Packet>, leaf: u32, now: Time) -> bool {
    if !link.is_idle() {
        link.enqueue(packet(leaf), now, 0, &mut NoObserver);
        return false;
    }
    let left = link.enqueue_idle(packet(leaf), now, 0, &mut NoObserver);
    left.map(|packet| link.hold(packet, now)).is_some()
}

/// kbit/s that each class sends while these never run empty, after a second in which the buckets' first contents are used up.
fn rates(classes: &[Class], busy: &[u32]) -> Vec<u64> {
    let mut link = link(classes, BURST);
    for leaf in busy {
        for _ in 0..20 {
            offer(&mut link, *leaf, Time::ZERO);
        }
    }
    let mut sent = vec![0; classes.len()];
    while link.wake() < Time::from_secs(1 + SECONDS) {
        let now = link.wake();
        while let Some(packet) = link.serve(now, 0, &mut NoObserver) {
            let leaf = packet.flow.destination;
            sent[leaf as usize] += u64::from(now >= Time::from_secs(1));
            offer(&mut link, leaf, now);
        }
    }
    let kbps = |packets: &u64| packets * u64::from(BYTES) * 8 / 1000 / SECONDS;
    sent.iter().map(kbps).collect()
}

fn is_near(found: &[u64], wanted: &[u64]) {
    let near = |(found, wanted): (&u64, &u64)| found.abs_diff(*wanted) <= 10 + wanted / 200;
    assert!(
        found.iter().zip(wanted).all(near),
        "{found:?}, not {wanted:?}"
    );
}

/// tc-htb(8), "rate: maximum rate this class and all its children are guaranteed".
#[test]
fn each_class_gets_its_rate() {
    let classes = [class(None, 6000, 6000), class(None, 2000, 2000)];
    is_near(&rates(&classes, &[0, 1]), &[6000, 2000]);
}

/// tc-htb(8), "ceil: maximum rate at which a class can send, if its parent has bandwidth to spare".
#[test]
fn a_class_alone_borrows_up_to_its_ceil() {
    let classes = [class(None, 1000, 4000), class(None, 4000, 8000)];
    is_near(&rates(&classes, &[0]), &[4000, 0]);
    is_near(&rates(&classes, &[1]), &[0, 8000]);
}

/// HTB Theory, section 3: spare bandwidth is shared in proportion to the quanta, which follow the rates: 1 : 3 of 4 Mbit/s.
#[test]
fn spare_bandwidth_is_shared_by_the_rates() {
    let classes = [class(None, 1000, 8000), class(None, 3000, 8000)];
    is_near(&rates(&classes, &[0, 1]), &[2000, 6000]);
}

/// Two classes borrow from the one above, up to its ceil, although the link has more; a third takes the rest.
#[test]
fn the_ceil_of_a_class_holds_for_all_below_it() {
    let classes = [
        class(None, 1000, 2000),
        class(Some(0), 500, 8000),
        class(Some(0), 500, 8000),
        class(None, 1000, 8000),
    ];
    is_near(&rates(&classes, &[1, 2, 3]), &[0, 1000, 1000, 6000]);
}

/// What the class above does not need is not lent to others before its own children: lowest level first (HTB Theory, section 2).
#[test]
fn siblings_borrow_before_cousins() {
    let classes = [
        class(None, 6000, 8000),
        class(Some(0), 1000, 8000),
        class(Some(0), 1000, 8000),
        class(None, 2000, 8000),
    ];
    // The sibling that is silent leaves 5 Mbit/s to its only active sibling; nothing is left over for more.
    is_near(&rates(&classes, &[1, 3]), &[0, 6000, 0, 2000]);
}

/// While one class waits for its ceil, a packet of another leaves as it arrives.
#[test]
fn an_arrival_does_not_wait_for_another_class() {
    let mut link = link(&[class(None, 8, 8), class(None, 1000, 8000)], 1600);
    let now = Time::from_secs(1);
    let left: Vec<bool> = (0..3).map(|_| offer(&mut link, 0, now)).collect();
    // A bucket of 1600 bytes lets two packets of 1000 go.
    assert_eq!(left, [true, true, false]);
    let later = Time::from_millis(1100);
    while link.wake() <= later {
        link.serve(link.wake(), 0, &mut NoObserver);
    }
    assert!(
        link.wake() > later,
        "the next packet of the slow class waits"
    );
    assert!(offer(&mut link, 1, later));
    assert!(link.serve(later, 0, &mut NoObserver).is_some());
}

/// Every packet leaves or is still there, with a discipline that shapes by itself in one class.
#[test]
fn a_discipline_that_holds_its_packets_back_does_not_stop_others() {
    use sojourn_aqm::{Catalogue, Settings};
    use sojourn_units::Value;
    let catalogue = Catalogue::<Packet>::new();
    let mut settings = Settings::new(Rate::from_mbps(8), 1000);
    settings.values = vec![("bandwidth".into(), Value::Rate(kbps(800)))];
    let cake = catalogue
        .get("cake")
        .expect("it is built in")
        .build(&settings)
        .expect("valid");
    let fifo = Box::new(Single::new(DropTail, Limit::Packets(1000)));
    let classes = [class(None, 4000, 8000), class(None, 4000, 8000)];
    let config = LinkConfig::of_rate(Rate::from_mbps(8));
    let mut link = Link::new(
        boxed(&classes, 1600, vec![cake, fifo], &[(0, 0), (1, 1)]),
        config,
    );
    for leaf in [0, 1] {
        for _ in 0..10 {
            offer(&mut link, leaf, Time::ZERO);
        }
    }
    let mut left = [(0, Time::ZERO); 2];
    while link.wake() < Time::MAX {
        let now = link.wake();
        while let Some(packet) = link.serve(now, 0, &mut NoObserver) {
            let of = &mut left[packet.flow.destination as usize];
            *of = (of.0 + 1, now);
        }
    }
    assert_eq!((left[0].0, left[1].0, link.packets()), (10, 10, 0));
    let ms = left.map(|(_, last)| last.as_nanos() / 1_000_000);
    // Ten packets at 800 kbit/s: the last begins after 90 ms. The others have the link, but for one packet of CAKE: the last of
    // 11 packets finds the bucket of 1600 bytes not empty after 8.4 ms.
    assert_eq!(ms, [90, 8]);
}
