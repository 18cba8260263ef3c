//! After its queues have grown to their size, no discipline allocates, whatever happens to the packets.

use sojourn_aqm::{Catalogue, Datagram, Ecn, Environment, FlowKey, Limit, Qdisc, Settings};
use sojourn_units::{Rate, Time, Value};

/// Offers bursts of 16 flows, 30 % more than is fetched, for `rounds` of 13 packets in 12 ms each.
fn congest(
    qdisc: &mut dyn Qdisc<Datagram<u64>>,
    env: &mut Environment<Datagram<u64>>,
    begin: Time,
    rounds: u64,
) -> Time {
    let mut now = begin;
    for round in 0..rounds {
        for id in 0..13 {
            let packet = Datagram::new(id, 1514)
                .with_flow(FlowKey::numbered(((round * 13 + id) % 16) as u32))
                .with_ecn(if id % 3 == 0 { Ecn::Ect0 } else { Ecn::NotEct });
            qdisc.enqueue(packet, now, env);
            env.take_dropped();
        }
        for _ in 0..10 {
            now = Time::from_nanos(now.as_nanos() + 1_200_000);
            while let Some(due) = qdisc.next_timer().filter(|due| *due <= now) {
                qdisc.on_timer(due, env);
            }
            qdisc.dequeue(now, env);
            env.take_dropped();
        }
    }
    now
}

#[test]
fn allocations_are_counted() {
    let measured = allocation_counter::measure(|| drop(std::hint::black_box(vec![1_u8; 9])));
    assert_eq!(measured.count_total, 1);
}

#[test]
fn no_discipline_allocates_after_warm_up() {
    for discipline in Catalogue::<Datagram<u64>>::new().iter() {
        for ce_exclude in [false, true] {
            if ce_exclude && discipline.key("ce_exclude").is_none() {
                continue;
            }
            let mut settings = Settings::new(Rate::from_mbps(10), 1514);
            settings.limit = Some(Limit::Packets(200));
            settings.values.push(("ecn".into(), Value::Flag(true)));
            if ce_exclude {
                settings
                    .values
                    .push(("ce_exclude".into(), Value::Flag(true)));
            }
            let mut qdisc = discipline.build(&settings).unwrap();
            let mut env = Environment::new(1);
            let warm = congest(qdisc.as_mut(), &mut env, Time::ZERO, 2000);
            let measured = allocation_counter::measure(|| {
                congest(qdisc.as_mut(), &mut env, warm, 500);
            });
            assert_eq!(measured.count_total, 0, "{}", discipline.name);
        }
    }
}
