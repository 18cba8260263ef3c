//! A path between two ends from an experiment file, for tests of one's own protocol on a link that experiments have.

use std::fmt;

use sojourn_aqm::Catalogue;
use sojourn_experiment::network::{RunError, impairments, links};
use sojourn_experiment::{ReadError, Source, derived, read};
use sojourn_path::{Carried, Part, Path};
use sojourn_units::Way;

use crate::names::names;

/// Why a file has no path.
#[derive(Clone, PartialEq, Debug)]
pub enum PathFileError {
    /// The file is wrong.
    Read(ReadError),
    /// A discipline refuses its settings.
    Settings(RunError),
    /// It is no path between two ends, or has no queue of this label.
    Unfit(String),
}

impl fmt::Display for PathFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Settings(error) => error.fmt(f),
            Self::Unfit(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for PathFileError {}

/// The `[link]` of an experiment file with the queue of this label, as a path around packets of the caller's own. Its traffic
/// is not used, except that the first group's `rtt` is that of the path; the seed is the file's.
///
/// ```
/// use std::time::Duration;
///
/// use sojourn_path::{Datagram, Way};
///
/// let home = r#"
/// link    = { rate = "20 Mbit/s", loss = 0.01, up = { rate = "2 Mbit/s", queue = { aqm = "fq_codel" } } }
/// queue   = [{ aqm = "pfifo" }, { aqm = "cake" }]
/// traffic = [{ kind = "bulk", rtt = "40 ms" }]
/// experiment = { duration = "10 s" }
/// "#;
/// let mut path = sojourn_sim::path_from_toml(home, "cake")?;
/// path.send(Duration::ZERO, Way::Up, Datagram::new("hello", 1000));
/// while let Some(now) = path.next_event() {
///     while let Some(out) = path.poll(now) {
///         assert_eq!(out.at, Duration::from_millis(20));
///     }
/// }
/// # Ok::<(), sojourn_sim::PathFileError>(())
/// ```
///
/// # Errors
/// The file is wrong, has several links or Wi-Fi, or has no such queue.
pub fn path_from_toml<T: Clone + Send + 'static>(
    text: &str,
    label: &str,
) -> Result<Path<T>, PathFileError> {
    let source = Source {
        name: "path.toml",
        text,
    };
    let plan = read(source, &[], &names()).map_err(PathFileError::Read)?;
    let [cell] = &plan.cells[..] else {
        return Err(PathFileError::Unfit(
            "sweep: a path has one value of each key".into(),
        ));
    };
    let experiment = &cell.experiment;
    let link = &experiment.links[0];
    if link.nodes.is_some() || link.wifi.is_some() {
        return Err(PathFileError::Unfit(
            "link: a path has one [link], wired and without nodes".into(),
        ));
    }
    let queues = &experiment.queues;
    let Some(queue) = queues.iter().position(|queue| queue.label == label) else {
        let known: Vec<&str> = queues.iter().map(|queue| &*queue.label).collect();
        return Err(PathFileError::Unfit(format!(
            "queue: got \"{label}\"; must be one of {}",
            known.join(", ")
        )));
    };
    let built = links(
        experiment,
        queue,
        experiment.seed,
        &Catalogue::<Carried<T>>::new(),
    );
    let mut built = built.map_err(PathFileError::Settings)?.into_iter();
    let ways: Vec<Way> = derived::queues(experiment, queue)
        .iter()
        .map(|egress| egress.hop.way)
        .collect();
    let impaired = impairments(experiment, experiment.seed);
    let rtt = experiment.traffic[0].rtt;
    let parts = [(Way::Down, rtt / 2), (Way::Up, rtt - rtt / 2)].map(|(way, delay)| Part {
        link: if ways.contains(&way) {
            built.next()
        } else {
            None
        },
        impairment: impaired
            .iter()
            .find(|(hop, ..)| hop.way == way)
            .map(|(_, impair, seed)| {
                (
                    impair.clone(),
                    *seed,
                    Carried::clone as fn(&Carried<T>) -> Carried<T>,
                )
            }),
        delay,
    });
    Ok(Path::from_parts(parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_path::Datagram;

    const HOME: &str = r#"
        experiment = { duration = "10 s", seed = 5 }
        link       = { rate = "8 Mbit/s", buffer = "100 packets", loss = 0.1 }
        queue      = [{ aqm = "pfifo" }, { aqm = "codel", label = "mine", target = "2 ms", interval = "10 ms" }]
        traffic    = [{ kind = "bulk", rtt = "30 ms" }]
    "#;

    fn arrivals(text: &str, label: &str) -> Vec<(u32, std::time::Duration)> {
        let mut path = path_from_toml(text, label).expect("the file is good");
        for number in 0..400 {
            path.send(
                std::time::Duration::ZERO,
                Way::Down,
                Datagram::new(number, 1000),
            );
        }
        let mut all = Vec::new();
        while let Some(now) = path.next_event() {
            all.extend(std::iter::from_fn(|| path.poll(now)).map(|out| (out.payload, out.at)));
        }
        all
    }

    #[test]
    fn the_link_has_the_files_queue_buffer_delay_and_losses() {
        let fifo = arrivals(HOME, "pfifo");
        assert_eq!(fifo[0].1.as_millis(), 15);
        // Of 400 at once, the buffer, the device queue and what may leave at once are kept; a tenth of those is lost.
        assert!((80..110).contains(&fifo.len()), "{}", fifo.len());
        assert!(arrivals(HOME, "mine").len() < fifo.len());
        assert_eq!(arrivals(HOME, "pfifo"), fifo);
        assert_ne!(
            arrivals(&HOME.replace("seed = 5", "seed = 6"), "pfifo"),
            fifo
        );
    }

    #[test]
    fn what_is_no_path_is_told() {
        let refused = |text: &str, label: &str| {
            path_from_toml::<()>(text, label)
                .expect_err("it is none")
                .to_string()
        };
        assert_eq!(
            refused(HOME, "cake"),
            "queue: got \"cake\"; must be one of pfifo, mine"
        );
        let typo = refused(&HOME.replace("loss", "lost"), "pfifo");
        assert!(typo.starts_with("path.toml:3"), "{typo}");
        let sweep = HOME.to_owned() + "sweep = { \"link.loss\" = [0, 0.1] }";
        assert!(refused(&sweep, "pfifo").starts_with("sweep: "));
    }
}
