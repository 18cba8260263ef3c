//! Decides about the packets of queues in another process: those of real packets.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use pyo3::prelude::*;
use serde::Serialize;
use sojourn_agent::decision::{Answer, Greeting, Occasion, Question, Seen};
#[cfg(target_os = "linux")]
use sojourn_agent::scheduling;
use sojourn_aqm::{Algorithm, Aqm, Backlog, Environment};
use sojourn_experiment::network;
use sojourn_units::Time;

use crate::errors::{RunError, failed_algorithm, failed_run};
use crate::own::{self, Built, Failure, PythonAqm};
use crate::run_spec::{Monitor, RunSpec};

/// The algorithms in Python of one run whose queues are in another process, which asks at a socket.
#[pyclass(frozen, module = "sojourn._core")]
pub struct Decider {
    failure: Failure,
    socket: PathBuf,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[pymethods]
impl Decider {
    /// Listens at a socket. `None`: the run has no algorithm in Python. The first exception of an algorithm cancels the monitor.
    #[staticmethod]
    fn begin(spec: &RunSpec, socket: PathBuf, monitor: Py<Monitor>) -> PyResult<Option<Self>> {
        let run = &spec.inner;
        if own::foreign(run).is_empty() {
            return Ok(None);
        }
        let failure = Failure::default();
        let built = Built::default();
        let catalogue = own::collecting(&failure, &built);
        network::links(&run.experiment, run.queue, run.seed, &catalogue).map_err(|error| {
            match failure.take() {
                Some(raised) => failed_algorithm(raised),
                None => failed_run(&error),
            }
        })?;
        let listener = UnixListener::bind(&socket)?;
        let (seed, noted) = (run.seed, failure.clone());
        let thread = thread::spawn(move || {
            let mut talks = Vec::new();
            for (number, aqm) in built.take().into_iter().enumerate() {
                let Ok((stream, _)) = listener.accept() else {
                    break;
                };
                let mut talk = Talk {
                    aqm,
                    env: Environment::new(seed.wrapping_add(number as u64)),
                    failure: noted.clone(),
                };
                let monitor = Python::attach(|py| monitor.clone_ref(py));
                talks.push(thread::spawn(move || {
                    // The path waits for every answer. If it is refused, the path's thread says so.
                    #[cfg(target_os = "linux")]
                    let _ = scheduling::ask_for_fifo(scheduling::Priority::Path);
                    // The other side has ended: the run has, too.
                    let _ = talk.hold(&stream);
                    if talk.failure.has_happened() {
                        monitor.get().cancel();
                    }
                }));
            }
            for talk in talks {
                // One that panicked has said so.
                let _ = talk.join();
            }
        });
        Ok(Some(Self {
            failure,
            socket,
            thread: Mutex::new(Some(thread)),
        }))
    }

    /// Ends it after the other process, and raises what an algorithm has raised.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            py.detach(|| {
                while !thread.is_finished() {
                    // Queues that were not built do not ask any more.
                    drop(UnixStream::connect(&self.socket));
                    thread::sleep(std::time::Duration::from_millis(1));
                }
                thread.join()
            })
            .map_err(|_| RunError::new_err("the thread of an algorithm has failed"))?;
        }
        self.failure
            .take()
            .map_or(Ok(()), |raised| Err(failed_algorithm(raised)))
    }
}

/// A connection with the queue of an algorithm.
struct Talk {
    aqm: PythonAqm,
    env: Environment<Seen>,
    failure: Failure,
}

impl Talk {
    /// Answers until the queue, or the algorithm, has failed.
    fn hold(&mut self, stream: &UnixStream) -> std::io::Result<()> {
        say(stream, &self.greeting())?;
        for line in BufReader::new(stream).lines() {
            let answer = self.answer(&serde_json::from_str(&line?)?);
            if self.failure.has_happened() {
                break;
            }
            say(stream, &answer)?;
        }
        Ok(())
    }

    fn greeting(&self) -> Greeting {
        Greeting {
            occasions: self.aqm.occasions(),
            timer_ns: self.aqm.next_timer().map(Time::as_nanos),
        }
    }

    fn answer(&mut self, question: &Question) -> Answer {
        let (backlog, now): (Backlog, Time) = (question.backlog(), question.now());
        let mut answer = Answer::default();
        match (question.occasion, &question.packet) {
            (Occasion::Enqueue, Some(packet)) => {
                let verdict = self.aqm.on_enqueue(packet, backlog, now, &mut self.env);
                answer.decision = verdict.into();
            }
            (Occasion::Dequeue, Some(packet)) => {
                let verdict = self.aqm.on_dequeue(packet, backlog, now, &mut self.env);
                answer.decision = verdict.into();
            }
            (Occasion::Enqueue | Occasion::Dequeue, None) => {}
            (Occasion::Overflow, _) => self.aqm.on_overflow(backlog, now),
            (Occasion::Empty, _) => self.aqm.on_empty(now),
            (Occasion::Timer, _) => self.aqm.on_timer(backlog, now),
            (Occasion::State, _) => self.aqm.state(&mut |name, value| {
                if name == "probability" {
                    answer.probability = Some(value);
                }
            }),
        }
        answer.timer_ns = self.aqm.next_timer().map(Time::as_nanos);
        answer
    }
}

fn say(mut stream: &UnixStream, message: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}
