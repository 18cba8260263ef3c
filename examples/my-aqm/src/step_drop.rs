//! A first discipline: a threshold on the sojourn time.

use sojourn_aqm::{Algorithm, Aqm, Backlog, Discipline, Environment, Limit, Packet, Parameters, Single, Verdict};
use sojourn_units::{Duration, Time};

sojourn_aqm::parameters! {
    /// Drops what has waited longer than a threshold.
    struct StepDrop {
        /// longest sojourn time
        threshold: Duration,
    }
}

const DEFAULT: StepDrop = StepDrop { threshold: Duration::from_millis(20) };

impl Algorithm for StepDrop {}

impl<P: Packet> Aqm<P> for StepDrop {
    fn on_dequeue(&mut self, packet: &P, _: Backlog, now: Time, _: &mut Environment<P>) -> Verdict {
        if now - packet.enqueued() > self.threshold { Verdict::DROP } else { Verdict::Pass }
    }
}

/// The catalogue's entry of `step_drop`.
pub fn step_drop<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "step_drop",
        summary: "drops what has waited longer than a threshold",
        source: "CONTRIBUTING.md",
        keys: Box::new(|| DEFAULT.keys()),
        make: Box::new(|settings| {
            let aqm = DEFAULT.given(settings)?;
            Ok(Box::new(Single::new(aqm, settings.limit_or(Limit::Packets(1000)))))
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
