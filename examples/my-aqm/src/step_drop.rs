//! A first discipline: a threshold on the sojourn time.

use sojourn_aqm::{Aqm, Backlog, Discipline, Environment, Key, Limit, Packet, Single, Verdict};
use sojourn_units::{Duration, Kind, Time};

/// Drops what has waited longer than a threshold.
struct StepDrop {
    threshold: Duration,
}

impl Aqm for StepDrop {
    fn on_dequeue<P: Packet>(&mut self, packet: &P, _: Backlog, now: Time, _: &mut Environment<P>) -> Verdict {
        if now - packet.enqueued() > self.threshold { Verdict::Drop } else { Verdict::Pass }
    }
}

/// `step_drop`.
pub fn step_drop<P: Packet + Send + 'static>() -> Discipline<P> {
    const KEYS: &[Key] =
        &[Key { name: "threshold", kind: Kind::Duration, default: "20 ms", doc: "longest sojourn time" }];
    Discipline {
        name: "step_drop",
        summary: "drops what has waited longer than a threshold",
        source: "CONTRIBUTING.md",
        keys: KEYS,
        build: Box::new(|settings| {
            let threshold = settings.duration("threshold", Duration::from_millis(20));
            let limit = settings.limit.unwrap_or(Limit::Packets(1000));
            Ok(Box::new(Single::new(StepDrop { threshold }, limit)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::results;

    #[test]
    fn nothing_leaves_later_than_the_threshold() {
        let experiment = include_str!("../experiment.toml").replace("my_madpie", "step_drop");
        let results = results(&experiment).expect("the experiment is good");
        let longest = |label: &str| {
            let result = results.iter().find(|result| result.label == label);
            result.expect("it was run").bottleneck["down"].sojourn_ms.max
        };
        assert!(longest("pie") > Some(20.0));
        assert!(longest("step_drop") <= Some(20.0));
    }
}
