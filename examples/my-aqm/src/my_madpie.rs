//! MADPIE (Kuhn and Ros 2016) from PIE: when an update finds more delay than `deterministic_above`, the next
//! packet that PIE would let pass is dropped.

use sojourn_aqm::pie::{self, Pie};
use sojourn_aqm::{Algorithm, Aqm, Backlog, Discipline, Environment, Limit, Packet, Parameters, Single, Verdict};
use sojourn_units::{Duration, Time};

// ANCHOR: algorithm
struct MyMadpie {
    pie: Pie,
    deterministic_above: Duration,
    armed: bool,
}

impl<P: Packet> Aqm<P> for MyMadpie {
    fn on_enqueue(&mut self, packet: &P, queue: Backlog, now: Time, env: &mut Environment<P>) -> Verdict {
        let verdict = self.pie.on_enqueue(packet, queue, now, env);
        if verdict == Verdict::Pass && std::mem::take(&mut self.armed) {
            return Verdict::DROP;
        }
        verdict
    }

    fn on_dequeue(&mut self, packet: &P, queue: Backlog, now: Time, env: &mut Environment<P>) -> Verdict {
        self.pie.on_dequeue(packet, queue, now, env)
    }
}

impl Algorithm for MyMadpie {
    fn on_overflow(&mut self, queue: Backlog, now: Time) {
        self.pie.on_overflow(queue, now);
    }

    fn next_timer(&self) -> Option<Time> {
        self.pie.next_timer()
    }

    fn on_timer(&mut self, queue: Backlog, now: Time) {
        self.pie.on_timer(queue, now);
        self.armed |= self.pie.qdelay() > self.deterministic_above;
    }
}
// ANCHOR_END: algorithm

sojourn_aqm::parameters! {
    struct Config {
        /// delay above which each update drops one packet
        deterministic_above: Duration,
    }
}

const DEFAULT: Config = Config { deterministic_above: Duration::from_millis(30) };

/// `my_madpie`, to be added to a catalogue.
pub fn my_madpie<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "my_madpie",
        summary: "PIE with a deterministic drop",
        source: "Kuhn and Ros 2016",
        keys: Box::new(|| DEFAULT.keys()),
        make: Box::new(|settings| {
            let Config { deterministic_above } = DEFAULT.given(settings)?;
            let pie = Pie::new(pie::Config::draft2013(settings.mtu));
            let aqm = MyMadpie { pie, deterministic_above, armed: false };
            Ok(Box::new(Single::new(aqm, settings.limit_or(Limit::Packets(1000)))))
        }),
    }
}
