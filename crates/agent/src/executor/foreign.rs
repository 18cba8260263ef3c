//! Disciplines whose algorithm runs in another process, which is asked by a socket.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use sojourn_aqm::{
    Algorithm, Aqm, Backlog, Catalogue, Discipline, Environment, Key, Limit, Packet, SettingError,
    Single, Verdict,
};
use sojourn_experiment::KeySpec;
use sojourn_units::Time;

use crate::decision::{Answer, Foreign, Greeting, Occasion, Question, Seen};

/// The built-in disciplines, and those of another process, which listens at this socket.
pub fn catalogue<P: Packet + Send + 'static>(
    foreign: &[Foreign],
    socket: Option<&Path>,
) -> Catalogue<P> {
    let mut catalogue = Catalogue::new();
    for one in foreign {
        let socket = socket.map(Path::to_owned);
        catalogue.add(Discipline {
            // It lasts as long as the process: a run has few.
            name: String::leak(one.name.clone()),
            summary: "an algorithm in another process",
            source: "",
            keys: {
                let keys: Vec<Key> = one.keys().keys.into_iter().map(lasting).collect();
                Box::new(move || keys.clone())
            },
            make: Box::new(move |settings| {
                let asked = socket.as_ref().map(Asked::at).transpose();
                let asked = asked.map_err(|error| {
                    SettingError::new("aqm", format!("its process does not answer: {error}"))
                })?;
                let limit = settings.limit_or(Limit::Packets(1000));
                Ok(Box::new(Single::new(asked.unwrap_or_default(), limit)))
            }),
        });
    }
    catalogue
}

fn lasting(key: KeySpec) -> Key {
    Key {
        name: String::leak(key.name),
        kind: key.kind,
        default: key.default.into(),
        doc: "",
    }
}

/// An algorithm in another process. Once that has ended, every packet passes.
#[derive(Default)]
struct Asked {
    line: RefCell<Option<Line>>,
    occasions: BTreeSet<u8>,
    timer: Option<Time>,
}

/// A connection.
struct Line {
    heard: BufReader<UnixStream>,
    said: Vec<u8>,
}

impl Line {
    fn hear<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let mut text = String::new();
        if self.heard.read_line(&mut text)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&text)?)
    }

    fn ask(&mut self, question: &Question) -> io::Result<Answer> {
        self.said.clear();
        serde_json::to_writer(&mut self.said, question)?;
        self.said.push(b'\n');
        self.heard.get_mut().write_all(&self.said)?;
        self.hear()
    }
}

impl Asked {
    fn at(socket: &PathBuf) -> io::Result<Self> {
        let mut line = Line {
            heard: BufReader::new(UnixStream::connect(socket)?),
            said: Vec::new(),
        };
        let greeting: Greeting = line.hear()?;
        Ok(Self {
            line: RefCell::new(Some(line)),
            occasions: greeting
                .occasions
                .into_iter()
                .map(|one| one as u8)
                .collect(),
            timer: greeting.timer_ns.map(Time::from_nanos),
        })
    }

    fn ask(&self, question: &Question) -> Option<Answer> {
        if !self.occasions.contains(&(question.occasion as u8)) {
            return None;
        }
        let mut line = self.line.borrow_mut();
        let answer = line.as_mut()?.ask(question).ok();
        if answer.is_none() {
            *line = None;
        }
        answer
    }

    fn decide(
        &self,
        occasion: Occasion,
        packet: &impl Packet,
        backlog: Backlog,
        now: Time,
    ) -> Verdict {
        let question = Question::new(occasion, Some(Seen::new(packet)), backlog, now);
        (self.ask(&question).unwrap_or_default()).decision.into()
    }

    fn tell(&self, occasion: Occasion, backlog: Backlog, now: Time) -> Option<Answer> {
        self.ask(&Question::new(occasion, None, backlog, now))
    }
}

impl<P: Packet> Aqm<P> for Asked {
    fn on_enqueue(
        &mut self,
        packet: &P,
        backlog: Backlog,
        now: Time,
        _: &mut Environment<P>,
    ) -> Verdict {
        self.decide(Occasion::Enqueue, packet, backlog, now)
    }

    fn on_dequeue(
        &mut self,
        packet: &P,
        backlog: Backlog,
        now: Time,
        _: &mut Environment<P>,
    ) -> Verdict {
        self.decide(Occasion::Dequeue, packet, backlog, now)
    }
}

impl Algorithm for Asked {
    fn on_overflow(&mut self, backlog: Backlog, now: Time) {
        self.tell(Occasion::Overflow, backlog, now);
    }

    fn on_empty(&mut self, now: Time) {
        self.tell(Occasion::Empty, Backlog::default(), now);
    }

    fn next_timer(&self) -> Option<Time> {
        self.timer
    }

    fn on_timer(&mut self, backlog: Backlog, now: Time) {
        let answer = self.tell(Occasion::Timer, backlog, now);
        self.timer = answer.and_then(|answer| answer.timer_ns.map(Time::from_nanos));
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let answer = self.tell(Occasion::State, Backlog::default(), Time::ZERO);
        if let Some(probability) = answer.and_then(|answer| answer.probability) {
            visit("probability", probability);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::thread;

    use sojourn_aqm::{Datagram, Qdisc, Settings};
    use sojourn_units::Rate;

    use super::*;
    use crate::decision::Decision;

    /// An algorithm that drops every second arrival, and ends after so many questions.
    fn answering(listener: &UnixListener, questions: usize) {
        let (stream, _) = listener.accept().unwrap();
        let mut said = stream.try_clone().unwrap();
        let mut say = |text: String| said.write_all((text + "\n").as_bytes()).unwrap();
        let greeting = Greeting {
            occasions: vec![Occasion::Enqueue],
            timer_ns: None,
        };
        say(serde_json::to_string(&greeting).unwrap());
        for (number, line) in BufReader::new(stream).lines().take(questions).enumerate() {
            let question: Question = serde_json::from_str(&line.unwrap()).unwrap();
            assert_eq!(question.occasion, Occasion::Enqueue);
            assert_eq!(question.packet.unwrap().bytes(), 1000 + number as u32);
            let decision = [Decision::Pass, Decision::Drop][number % 2];
            let answer = Answer {
                decision,
                ..Answer::default()
            };
            say(serde_json::to_string(&answer).unwrap());
        }
    }

    #[test]
    fn another_process_decides_until_it_has_ended() {
        let folder = std::env::temp_dir().join(format!("sojourn-foreign-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let socket = folder.join("decide");
        let listener = UnixListener::bind(&socket).unwrap();
        let other = thread::spawn(move || answering(&listener, 4));
        let foreign = Foreign {
            name: "halving".into(),
            keys: Vec::new(),
        };
        let catalogue = catalogue::<Datagram<()>>(&[foreign], Some(&socket));
        let settings = Settings::new(Rate::from_bps(1_000_000).unwrap(), 1514);
        let discipline = catalogue.get("halving").unwrap();
        let Ok(mut queue) = discipline.build(&settings) else {
            panic!("it is built");
        };
        let mut env = Environment::new(1);
        let mut queued = Vec::new();
        for number in 0..8 {
            let packet = Datagram::new((), 1000 + number);
            Qdisc::enqueue(&mut *queue, packet, Time::from_millis(1), &mut env);
            queued.push(queue.packets());
            if number == 3 {
                // Four were asked about; the process ends.
                while !other.is_finished() {
                    thread::yield_now();
                }
            }
        }
        assert_eq!(queued, [1, 1, 2, 2, 3, 4, 5, 6]);
        other.join().unwrap();
        std::fs::remove_dir_all(folder).unwrap();
    }
}
