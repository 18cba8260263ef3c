//! A TCP flow: an application of `sojourn_traffic`, such as a bulk transfer, and the sockets that it uses.

use std::rc::Rc;

use sojourn_measure::series::SenderState;
use sojourn_traffic::{Application, over_tcp};
use sojourn_units::Time;

use super::tcp_sockets::TcpSockets;
use super::{Ready, Socket, Traffic, Watch};
use crate::executor::Failure;
use crate::executor::diag::{self, Diag};
use crate::job::{Flow, Tcp};
use crate::recording::FlowFigures;

/// A TCP flow.
pub struct TcpFlow {
    application: Box<dyn Application>,
    /// The time at which the connection opens, if that precedes the flow's start; `None` once it is open.
    opens_ns: Option<i64>,
    sockets: TcpSockets,
    meter: FlowMeter,
}

/// The figures of a flow. The application reports to it, as [`sojourn_traffic::Meter`], the performance that a user would
/// notice.
pub struct FlowMeter {
    pub figures: FlowFigures,
}

impl TcpFlow {
    /// A flow before its start; `None` if its kind does not run over TCP. `few`: a thread may read what nobody asks for.
    /// The ends that are on this machine, and the netlink socket of its sender's host.
    ///
    /// # Errors
    /// The kernel refuses, probably because of the congestion control.
    pub fn open(
        (flow, tcp): (&Flow, &Tcp),
        seed: u64,
        few: bool,
        ends: ([bool; 2], Option<Rc<Diag>>),
        watch: &Watch<'_>,
    ) -> Result<Option<Self>, Failure> {
        let Some(application) = over_tcp(&flow.identity(), &flow.kind, seed) else {
            return Ok(None);
        };
        let discards = few && !application.hears_arrivals();
        Ok(Some(Self {
            application,
            opens_ns: flow.opens_ns.filter(|_| ends.0[0]),
            sockets: TcpSockets::listen(flow, tcp, discards, ends, watch)?,
            meter: FlowMeter {
                figures: FlowFigures::default(),
            },
        }))
    }

    /// Notifies the application of connections that have ended, until none is left. `now` returns the time.
    fn report_ended(
        &mut self,
        now: impl Fn() -> Result<Time, Failure>,
        watch: &Watch<'_>,
    ) -> Result<(), Failure> {
        while let Some(id) = self.sockets.take_ended() {
            let mut connections = self.sockets.connections(watch);
            self.application
                .on_end(id, now()?, &mut connections, &mut self.meter);
            connections.outcome()?;
        }
        Ok(())
    }
}

impl Traffic for TcpFlow {
    fn opens(&self) -> Option<i64> {
        self.opens_ns
    }

    fn open_ahead(&mut self, watch: &Watch<'_>) -> Result<(), Failure> {
        self.opens_ns = None;
        self.sockets.open_ahead(watch)
    }

    fn next_timer(&self) -> Option<u64> {
        let due = self.application.next_timer().map(Time::as_nanos);
        due.filter(|_| self.sockets.can_open())
    }

    fn on_timer(&mut self, now_ns: u64, watch: &Watch<'_>) -> Result<(), Failure> {
        let now = Time::from_nanos(now_ns);
        let mut connections = self.sockets.connections(watch);
        self.application
            .on_timer(now, &mut connections, &mut self.meter);
        connections.outcome()?;
        self.report_ended(|| Ok(now), watch)
    }

    fn on_ready(&mut self, ready: Ready, watch: &Watch<'_>) -> Result<(), Failure> {
        let now = || Ok(Time::from_nanos(ready.now_ns()?));
        match ready.socket {
            Socket::Listener => self.sockets.accept(watch)?,
            Socket::End(id, side) => {
                self.sockets.flush(id, side);
                let arrived = ready.to_read() && self.sockets.read(id, side, ready.at_end())?;
                self.meter.figures.received = self.sockets.received;
                if arrived && self.application.hears_arrivals() {
                    let mut connections = self.sockets.connections(watch);
                    self.application.on_arrival(
                        id,
                        side,
                        now()?,
                        &mut connections,
                        &mut self.meter,
                    );
                    connections.outcome()?;
                }
            }
        }
        self.report_ended(now, watch)
    }

    fn figures(&mut self) -> &mut FlowFigures {
        (self.meter.figures.retransmits, self.meter.figures.sent) = self.sockets.sent();
        &mut self.meter.figures
    }

    fn observe(
        &mut self,
        connections: &[diag::Connection],
        sample_at_ns: Option<u64>,
    ) -> Result<Option<SenderState>, Failure> {
        let seen = self.sockets.observe(connections)?;
        if let Some(at_ns) = sample_at_ns {
            let measured = seen.iter().map(|own| own.rtt_us).filter(|rtt| *rtt > 0);
            let samples = measured.map(|rtt_us| (at_ns, rtt_us));
            self.meter.figures.round_trips.extend(samples);
        }
        let paces = self.sockets.paces();
        let senders = seen.into_iter().map(|own| SenderState {
            cwnd: own.cwnd,
            ssthresh: own.ssthresh,
            pacing_bps: paces.then(|| own.pacing.saturating_mul(8)),
            state: Some(own.state),
        });
        Ok(senders.reduce(SenderState::and))
    }

    fn is_tcp(&self) -> bool {
        true
    }

    fn discards(&self) -> bool {
        self.sockets.discards()
    }

    fn count(&mut self, connections: &[diag::Connection], at_end: bool) {
        self.sockets.count(connections, at_end);
        self.meter.figures.received = self.sockets.received;
    }
}

mod meter {
    use sojourn_traffic::Meter;
    use sojourn_units::{Duration, Rate, Time};

    use super::super::micros;

    impl Meter for super::FlowMeter {
        fn completed(&mut self, after: Duration, now: Time) {
            let row = (now.as_nanos(), micros(after.as_nanos()));
            self.figures.completions.push(row);
        }

        fn page_loaded(&mut self, after: Duration, now: Time) {
            let row = (now.as_nanos(), micros(after.as_nanos()));
            self.figures.page_loads.push(row);
        }

        fn playing_began(&mut self, after: Duration) {
            self.figures.playback.on_start(after);
        }

        fn segment(&mut self, rate: Rate, stalled: Duration) {
            self.figures.playback.on_segment(rate, stalled);
        }
    }
}
