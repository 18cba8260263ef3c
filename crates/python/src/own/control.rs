//! An object of a Python class as a congestion control.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use sojourn_tcp::Config;
use sojourn_tcp::cc::{
    AckEvent, Capabilities, CongestionControl, RecoveryPhase, Sample, Signal, Window,
};
use sojourn_tcp::seq::Seq;
use sojourn_units::{Duration, Rate, Time};

use super::adapter::{Failure, wrong_answer};

/// A parameter of the constructor without a default: the connection gives it.
#[derive(Clone, Copy)]
pub enum Argument {
    /// Payload bytes of a full segment.
    Mss,
    /// The initial window in segments.
    InitialWindow,
}

impl Argument {
    /// The parameter called `name`.
    ///
    /// # Errors
    /// A connection has no such value.
    pub fn new(name: &str) -> PyResult<Self> {
        match name {
            "mss" => Ok(Self::Mss),
            "initial_window" => Ok(Self::InitialWindow),
            _ => Err(PyValueError::new_err(format!(
                "parameter {name}: got no default; only mss and initial_window, which the connection gives, may have none"
            ))),
        }
    }

    fn pass(self, config: &Config, arguments: &Bound<'_, PyDict>) -> PyResult<()> {
        match self {
            Self::Mss => arguments.set_item("mss", config.mss),
            Self::InitialWindow => arguments.set_item("initial_window", config.initial_window),
        }
    }
}

/// Checks that a class can be a congestion control.
///
/// # Errors
/// It lacks a method that it needs.
pub fn check(class: &Bound<'_, PyType>) -> PyResult<()> {
    if !class.hasattr("congestion")? {
        return Err(PyValueError::new_err("the class has no method congestion"));
    }
    if !class.hasattr("ack")? && !class.hasattr("sample")? {
        return Err(PyValueError::new_err(
            "the class has neither ack nor sample; it needs at least one",
        ));
    }
    Ok(())
}

/// Makes an object for a connection. If its constructor raises an exception, the run fails.
pub fn build(
    name: &'static str,
    class: &Py<PyType>,
    arguments: &[Argument],
    config: &Config,
    failure: &Failure,
) -> Box<dyn CongestionControl> {
    let built = Python::attach(|py| {
        let given = PyDict::new(py);
        for argument in arguments {
            argument.pass(config, &given)?;
        }
        let object = class.bind(py).call((), Some(&given))?;
        PythonControl::new(name, &object, failure.clone())
    });
    match built {
        Ok(control) => Box::new(control),
        Err(error) => {
            failure.note(error);
            Box::new(Idle(name))
        }
    }
}

/// Stands for an object that could not be made, until the run has stopped.
struct Idle(&'static str);

impl CongestionControl for Idle {
    fn name(&self) -> &'static str {
        self.0
    }

    fn on_ack(&mut self, _: &AckEvent, _: &mut Window) {}

    fn on_congestion(&mut self, _: Signal, window: &Window) -> u32 {
        window.cwnd.max(2)
    }
}

/// The bound methods of the object that it has.
struct Methods {
    ack: Option<Py<PyAny>>,
    congestion: Py<PyAny>,
    sample: Option<Py<PyAny>>,
    pacing_rate: Option<Py<PyAny>>,
    delivery: Option<Py<PyAny>>,
    recovered: Option<Py<PyAny>>,
    timeout: Option<Py<PyAny>>,
    undo: Option<Py<PyAny>>,
    restart: Option<Py<PyAny>>,
}

/// A congestion control written in Python. After its first exception the window stays as it is.
struct PythonControl {
    name: &'static str,
    methods: Methods,
    capabilities: Capabilities,
    rate: Option<Rate>,
    failure: Failure,
}

impl PythonControl {
    fn new(name: &'static str, object: &Bound<'_, PyAny>, failure: Failure) -> PyResult<Self> {
        let method = |name| -> PyResult<Option<Py<PyAny>>> {
            Ok(object.getattr_opt(name)?.map(Bound::unbind))
        };
        let flag = |name| -> PyResult<bool> {
            object
                .getattr_opt(name)?
                .map_or(Ok(false), |flag| flag.extract())
        };
        let methods = Methods {
            ack: method("ack")?,
            congestion: object.getattr("congestion")?.unbind(),
            sample: method("sample")?,
            pacing_rate: method("pacing_rate")?,
            delivery: method("delivery")?,
            recovered: method("recovered")?,
            timeout: method("timeout")?,
            undo: method("undo")?,
            restart: method("restart")?,
        };
        let capabilities = Capabilities {
            samples: methods.sample.is_some() || methods.pacing_rate.is_some(),
            governs_window: flag("governs_window")?,
            paces: methods.pacing_rate.is_some(),
            keeps_unused: flag("keeps_unused")?,
            ..Capabilities::default()
        };
        if capabilities.governs_window && methods.sample.is_none() {
            return Err(PyValueError::new_err(
                "governs_window: a class that governs the window needs the method sample",
            ));
        }
        Ok(Self {
            name,
            methods,
            capabilities,
            rate: None,
            failure,
        })
    }

    /// Calls a method unless there was an exception, and records its exception.
    fn call<T>(&self, method: impl FnOnce(&Methods, Python<'_>) -> PyResult<T>) -> Option<T> {
        if self.failure.has_happened() {
            return None;
        }
        match Python::attach(|py| method(&self.methods, py)) {
            Ok(answer) => Some(answer),
            Err(error) => {
                self.failure.note(error);
                None
            }
        }
    }

    /// Calls a method that may change the window.
    fn change(
        &self,
        window: &mut Window,
        call: impl FnOnce(&Methods, Bound<'_, WindowView>) -> PyResult<()>,
    ) {
        let changed = self.call(|methods, py| {
            let view = Bound::new(py, WindowView(window.clone()))?;
            call(methods, view.clone())?;
            Ok(view.borrow().0.clone())
        });
        if let Some(changed) = changed {
            *window = changed;
        }
    }
}

/// Calls a method if the object has it.
fn call_if<'py>(
    method: Option<&Py<PyAny>>,
    py: Python<'py>,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyResult<()> {
    let Some(method) = method else { return Ok(()) };
    method
        .bind(py)
        .call1(arguments.into_pyobject(py)?)
        .map(drop)
}

/// A number of segments that a method returns.
fn segments(
    answer: &Bound<'_, PyAny>,
    method: &Bound<'_, PyAny>,
    name: &str,
    least: u32,
) -> PyResult<u32> {
    let number = answer.extract::<u32>().ok();
    let number = number.filter(|number| (least..=Window::INFINITE).contains(number));
    number.ok_or_else(|| {
        let must = format!("a whole number of segments, at least {least}");
        wrong_answer(method, name, answer, &must)
    })
}

impl CongestionControl for PythonControl {
    fn name(&self) -> &'static str {
        self.name
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn on_sample(&mut self, ack: &AckEvent, sample: &Sample, window: &mut Window) {
        self.change(window, |methods, view| {
            let py = view.py();
            call_if(
                methods.sample.as_ref(),
                py,
                (AckView(*ack), SampleView(*sample), view),
            )
        });
        let rate = self.call(|methods, py| {
            let Some(method) = &methods.pacing_rate else {
                return Ok(None);
            };
            let answer = method.bind(py).call0()?;
            if answer.is_none() {
                return Ok(None);
            }
            let bps = answer.extract::<f64>().ok();
            let bps = bps.filter(|bps| (1.0..1e15).contains(bps));
            let rate = bps.and_then(|bps| Rate::from_bps(bps as u64));
            rate.map(Some).ok_or_else(|| {
                let must = "in bit/s, at least 1, or None";
                wrong_answer(method.bind(py), "pacing_rate", &answer, must)
            })
        });
        self.rate = rate.flatten();
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn on_delivery(&mut self, ack: &AckEvent, window: &mut Window) {
        if self.methods.delivery.is_some() {
            self.change(window, |methods, view| {
                let py = view.py();
                call_if(methods.delivery.as_ref(), py, (AckView(*ack), view))
            });
        }
    }

    fn on_ack(&mut self, ack: &AckEvent, window: &mut Window) {
        if self.methods.ack.is_some() {
            self.change(window, |methods, view| {
                let py = view.py();
                call_if(methods.ack.as_ref(), py, (AckView(*ack), view))
            });
        }
    }

    fn on_congestion(&mut self, signal: Signal, window: &Window) -> u32 {
        let signal = match signal {
            Signal::Loss => "loss",
            Signal::EcnEcho => "ecn",
            Signal::Timeout => "timeout",
        };
        let threshold = self.call(|methods, py| {
            let answer = methods
                .congestion
                .bind(py)
                .call1((signal, WindowView(window.clone())))?;
            segments(&answer, methods.congestion.bind(py), "congestion", 2)
        });
        threshold.unwrap_or(window.cwnd.max(2))
    }

    fn on_timeout(&mut self, now: Time, _: Seq) {
        self.call(|methods, py| call_if(methods.timeout.as_ref(), py, (now.as_secs_f64(),)));
    }

    fn on_recovered(&mut self, window: &mut Window) {
        self.change(window, |methods, view| {
            let py = view.py();
            call_if(methods.recovered.as_ref(), py, (view,))
        });
    }

    fn on_undo(&mut self, window: &Window, prior_cwnd: u32) -> u32 {
        let restored = window.cwnd.max(prior_cwnd);
        let answer = self.call(|methods, py| {
            methods.undo.as_ref().map_or(Ok(restored), |undo| {
                let answer = undo
                    .bind(py)
                    .call1((WindowView(window.clone()), prior_cwnd))?;
                segments(&answer, undo.bind(py), "undo", 1)
            })
        });
        answer.unwrap_or(restored)
    }

    fn on_restart(&mut self, idle: Duration, now: Time) {
        self.call(|methods, py| {
            let times = (idle.as_secs_f64(), now.as_secs_f64());
            call_if(methods.restart.as_ref(), py, times)
        });
    }
}

/// The congestion window and its state, in segments.
#[pyclass(name = "Window", module = "sojourn")]
pub struct WindowView(Window);

#[pymethods]
impl WindowView {
    /// The congestion window.
    #[getter]
    const fn cwnd(&self) -> u32 {
        self.0.cwnd
    }

    #[setter]
    fn set_cwnd(&mut self, cwnd: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.cwnd = assigned(cwnd, "cwnd", 1)?;
        Ok(())
    }

    /// The slow start threshold; very large before the first congestion.
    #[getter]
    const fn ssthresh(&self) -> u32 {
        self.0.ssthresh
    }

    #[setter]
    fn set_ssthresh(&mut self, ssthresh: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.ssthresh = assigned(ssthresh, "ssthresh", 2)?;
        Ok(())
    }

    /// True below the slow start threshold.
    #[getter]
    const fn in_slow_start(&self) -> bool {
        self.0.in_slow_start()
    }

    /// True if the window is used and so may grow; in slow start it is enough to have half of it in flight.
    #[getter]
    const fn is_used(&self) -> bool {
        self.0.is_used()
    }

    /// Segments sent and not cumulatively acknowledged when congestion was detected (FlightSize of RFC 5681).
    #[getter]
    const fn flight_size(&self) -> u32 {
        self.0.flight_size
    }

    /// Grows by one segment per segment acknowledged, up to the threshold; returns the part of ``acked`` that is left.
    fn slow_start(&mut self, acked: u32) -> u32 {
        self.0.slow_start(acked)
    }

    /// Grows by one segment per ``per_segment`` segments acknowledged.
    fn additive_increase(
        &mut self,
        acked: &Bound<'_, PyAny>,
        per_segment: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let acked = assigned(acked, "additive_increase: acked", 0)?;
        let per_segment = assigned(per_segment, "additive_increase: per_segment", 1)?;
        self.0.additive_increase(acked, per_segment);
        Ok(())
    }
}

fn assigned(given: &Bound<'_, PyAny>, key: &str, least: u32) -> PyResult<u32> {
    let number = given.extract::<u32>().ok();
    let number = number.filter(|number| (least..=Window::INFINITE).contains(number));
    number.ok_or_else(|| {
        PyValueError::new_err(format!(
            "{key}: got {given:?}; must be a whole number of segments from {least} to {}",
            Window::INFINITE
        ))
    })
}

/// What an acknowledgement tells.
#[pyclass(frozen, name = "Ack", module = "sojourn")]
pub struct AckView(AckEvent);

#[pymethods]
impl AckView {
    /// When it arrived, in seconds of the run.
    #[getter]
    fn now(&self) -> f64 {
        self.0.now.as_secs_f64()
    }

    /// Segments newly delivered.
    #[getter]
    const fn delivered(&self) -> u32 {
        self.0.delivered
    }

    /// Segments newly acknowledged, also if a SACK reported them before.
    #[getter]
    const fn acked(&self) -> u32 {
        self.0.acked
    }

    /// Segments newly reported as marked.
    #[getter]
    const fn marks(&self) -> u32 {
        self.0.marks
    }

    /// The RTT of the newest segment delivered, in seconds; None if that was retransmitted.
    #[getter]
    fn rtt_s(&self) -> Option<f64> {
        self.0.rtt.map(Duration::as_secs_f64)
    }
}

/// The details of an acknowledgement.
#[pyclass(frozen, name = "Sample", module = "sojourn")]
pub struct SampleView(Sample);

#[pymethods]
impl SampleView {
    /// The delivery rate in bit/s of payload (draft-cheng-iccrg-delivery-rate-estimation); None if it yields none.
    #[getter]
    fn delivery_rate_bps(&self) -> Option<f64> {
        let rate = self.0.rate?;
        let bits = rate.delivered as f64 * f64::from(self.0.mss) * 8.0;
        let seconds = rate.interval.as_secs_f64();
        (seconds > 0.0).then_some(bits / seconds)
    }

    /// True if the application had nothing to send for a part of the rate's interval.
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.rate.is_some_and(|rate| rate.app_limited)
    }

    /// Segments delivered since the connection began.
    #[getter]
    const fn total_delivered(&self) -> u64 {
        self.0.total_delivered
    }

    /// ``total_delivered`` when the newest of these segments was sent; None without a rate.
    #[getter]
    fn prior_delivered(&self) -> Option<u64> {
        self.0.rate.map(|rate| rate.prior_delivered)
    }

    /// Segments newly judged lost.
    #[getter]
    const fn lost(&self) -> u32 {
        self.0.lost
    }

    /// Segments in flight now.
    #[getter]
    const fn in_flight(&self) -> u32 {
        self.0.in_flight
    }

    /// Segments in flight before it arrived.
    #[getter]
    const fn prior_in_flight(&self) -> u32 {
        self.0.prior_in_flight
    }

    /// True in loss recovery.
    #[getter]
    fn in_recovery(&self) -> bool {
        self.0.phase != RecoveryPhase::None
    }

    /// The smoothed RTT in seconds; None before the first.
    #[getter]
    fn smoothed_rtt_s(&self) -> Option<f64> {
        self.0.smoothed_rtt.map(Duration::as_secs_f64)
    }

    /// Payload bytes of a full segment.
    #[getter]
    const fn mss(&self) -> u32 {
        self.0.mss
    }
}
