//! Drives any discipline with any traffic and checks its packet and byte counts after every step. Property tests and
//! fuzz targets share this.

use std::ops::ControlFlow;

use sojourn_aqm::{AckView, Datagram, Ecn, Environment, FlowKey, Limit, Qdisc};
use sojourn_units::{Duration, Time};

/// The latest time of a drive: centuries, and far enough from the end of the clock.
const LATEST: Time = Time::from_nanos(1 << 62);
/// A queue must be empty after this many requests, besides one for each queued packet.
const PATIENCE: u64 = 10_000;

/// One event at a queue.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Time passes.
    Wait(Duration),
    /// A packet arrives.
    Enqueue {
        /// Its size on the link.
        bytes: u32,
        /// The number of its flow.
        flow: u32,
        /// The ECN field.
        ecn: Ecn,
        /// The DiffServ code point.
        dscp: u8,
        /// The acknowledgement that it carries.
        ack: Option<AckView>,
    },
    /// The link requests a packet.
    Dequeue,
}

/// The packets by their fate, in order.
#[derive(Default, PartialEq, Debug)]
pub struct Books {
    /// All packets, as they were offered.
    pub offered: Vec<Datagram<u64>>,
    /// Packets that left, as they left.
    pub dequeued: Vec<Datagram<u64>>,
    /// Packets that were dropped.
    pub dropped: Vec<Datagram<u64>>,
}

/// A discipline under test.
pub struct Drive<'a> {
    qdisc: &'a mut dyn Qdisc<Datagram<u64>>,
    limit: Option<Limit>,
    env: Environment<Datagram<u64>>,
    now: Time,
    books: Books,
}

impl<'a> Drive<'a> {
    /// An empty `qdisc` built with `limit`.
    pub fn new(qdisc: &'a mut dyn Qdisc<Datagram<u64>>, limit: Option<Limit>) -> Self {
        Self {
            qdisc,
            limit,
            env: Environment::new(42),
            now: Time::ZERO,
            books: Books::default(),
        }
    }

    /// Takes all steps and then fetches the queued packets.
    ///
    /// # Errors
    /// The first step that violated an invariant; or the queue does not empty before the latest time.
    pub fn play(mut self, steps: &[Step]) -> Result<Books, String> {
        for step in steps {
            self.run_timers();
            self.take(step);
            self.check().map_err(|what| format!("{step:?}: {what}"))?;
        }
        self.drain()?;
        Ok(self.books)
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Wait(span) => self.now = self.now.saturating_add(span).min(LATEST),
            Step::Enqueue {
                bytes,
                flow,
                ecn,
                dscp,
                ack,
            } => {
                let packet = Datagram::new(self.books.offered.len() as u64, bytes)
                    .with_ecn(ecn)
                    .with_dscp(dscp)
                    .with_ack(ack)
                    .with_flow(FlowKey::numbered(flow));
                self.books.offered.push(packet);
                self.qdisc.enqueue(packet, self.now, &mut self.env);
            }
            Step::Dequeue => self.dequeue(),
        }
    }

    fn drain(&mut self) -> Result<(), String> {
        for _ in 0..self.qdisc.packets() + PATIENCE {
            if self.qdisc.packets() == 0 || self.now == LATEST {
                return Ok(());
            }
            self.run_timers();
            self.dequeue();
            self.check()?;
            let ready = self.qdisc.ready_at().unwrap_or(self.now);
            self.now = ready.max(self.now).min(LATEST);
        }
        let left = self.qdisc.packets();
        Err(format!("{left} packets are never let go"))
    }

    fn dequeue(&mut self) {
        let fetched = self.qdisc.dequeue(self.now, &mut self.env);
        self.books.dequeued.extend(fetched);
    }

    /// After a long pause, a few of the missed timers and the last one are enough.
    fn run_timers(&mut self) {
        let caught_up = (0..20).try_for_each(|_| match self.qdisc.next_timer() {
            Some(due) if due <= self.now => {
                self.qdisc.on_timer(due, &mut self.env);
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(()),
        });
        if caught_up.is_continue() {
            self.qdisc.on_timer(self.now, &mut self.env);
        }
    }

    /// Checks that every packet and byte is counted once, the queue is within its limit, and every variable within its
    /// range.
    fn check(&mut self) -> Result<(), String> {
        let gone = self.env.take_dropped().map(|(packet, _)| packet);
        self.books.dropped.extend(gone);
        let books = &self.books;
        let bytes =
            |packets: &[Datagram<u64>]| packets.iter().map(|p| u64::from(p.bytes)).sum::<u64>();
        let packets = (books.dequeued.len() + books.dropped.len()) as u64 + self.qdisc.packets();
        if books.offered.len() as u64 != packets {
            let offered = books.offered.len();
            return Err(format!(
                "{offered} packets were offered, {packets} are known"
            ));
        }
        let known = bytes(&books.dequeued) + bytes(&books.dropped) + self.qdisc.bytes();
        if bytes(&books.offered) != known {
            let offered = bytes(&books.offered);
            return Err(format!("{offered} bytes were offered, {known} are known"));
        }
        let exceeded = match self.limit {
            Some(Limit::Packets(limit)) => self.qdisc.packets() > limit,
            Some(Limit::Bytes(limit)) => self.qdisc.bytes() > limit,
            None => false,
        };
        if exceeded {
            let (packets, bytes) = (self.qdisc.packets(), self.qdisc.bytes());
            return Err(format!("{packets} packets of {bytes} bytes are queued"));
        }
        let mut odd = None;
        self.qdisc.state(&mut |name, value| {
            let in_range = !name.contains("probability") || (0.0..=1.0).contains(&value);
            if !in_range || !value.is_finite() {
                odd = Some(format!("{name} is {value}"));
            }
        });
        odd.map_or(Ok(()), Err)
    }
}
