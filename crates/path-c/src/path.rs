//! The functions.

use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_char};
use std::time::Duration;

use ::sojourn_path::{Datagram, DropReason, Ecn, Event, FlowKey, Path, Verdict, Way};

use crate::options::{build, sojourn_options};
use crate::records::{
    read, size, sojourn_counts, sojourn_delivery, sojourn_event, sojourn_packet, write,
};
use crate::{
    SOJOURN_ABI_VERSION, SOJOURN_ARRIVED, SOJOURN_CE, SOJOURN_DOWN, SOJOURN_DROPPED,
    SOJOURN_DROPPED_AQM, SOJOURN_DROPPED_OVERFLOW, SOJOURN_DUPLICATED, SOJOURN_ECT0, SOJOURN_ECT1,
    SOJOURN_LEFT, SOJOURN_LOST, SOJOURN_MARKED, SOJOURN_NEVER, SOJOURN_NOT_ECT, SOJOURN_UP,
};

/// A path between two ends. Calls on one path must not overlap.
pub struct sojourn_path {
    path: Path<u64>,
    events: VecDeque<Event>,
    error: CString,
}

impl sojourn_path {
    /// What a function returns: an error is kept as a text.
    fn status(&mut self, result: Result<i32, String>) -> i32 {
        match result {
            Ok(status) => {
                self.error = CString::default();
                status
            }
            Err(error) => {
                self.error = text(&error);
                -1
            }
        }
    }

    /// An instant, unless it is before an earlier one.
    fn instant(&self, now_ns: u64) -> Result<Duration, String> {
        let (now, before) = (Duration::from_nanos(now_ns), self.path.now());
        if now < before {
            return Err(format!(
                "now_ns: got {now_ns}; must not be before {}",
                before.as_nanos()
            ));
        }
        Ok(now)
    }

    fn send(&mut self, now_ns: u64, packet: &sojourn_packet) -> Result<u64, String> {
        let now = self.instant(now_ns)?;
        let way = way(packet.way)?;
        let ecn = match packet.ecn {
            SOJOURN_NOT_ECT => Ecn::NotEct,
            SOJOURN_ECT0 => Ecn::Ect0,
            SOJOURN_ECT1 => Ecn::Ect1,
            SOJOURN_CE => Ecn::Ce,
            other => return Err(format!("ecn: got {other}; must be from 0 to 3")),
        };
        if packet.bytes == 0 {
            return Err("bytes: got 0; must be above 0".into());
        }
        if packet.dscp > 63 {
            return Err(format!("dscp: got {}; must be from 0 to 63", packet.dscp));
        }
        let flow = FlowKey {
            source: packet.source,
            destination: packet.destination,
            source_port: packet.source_port,
            destination_port: packet.destination_port,
            protocol: packet.protocol,
        };
        let mut datagram = Datagram::new(packet.user, packet.bytes)
            .with_ecn(ecn)
            .with_flow(flow);
        datagram.dscp = packet.dscp;
        Ok(self.path.send(now, way, datagram))
    }

    fn poll(&mut self, now_ns: u64) -> Result<Option<sojourn_delivery>, String> {
        let now = self.instant(now_ns)?;
        Ok(self.path.poll(now).map(|delivery| sojourn_delivery {
            size: size_of::<sojourn_delivery>(),
            user: delivery.payload,
            number: delivery.number,
            at_ns: nanos(delivery.at),
            sent_ns: nanos(delivery.sent),
            sojourn_ns: nanos(delivery.sojourn),
            bytes: delivery.bytes,
            ecn: match delivery.ecn {
                Ecn::NotEct => SOJOURN_NOT_ECT,
                Ecn::Ect0 => SOJOURN_ECT0,
                Ecn::Ect1 => SOJOURN_ECT1,
                Ecn::Ce => SOJOURN_CE,
            },
            dscp: delivery.dscp,
            way: way_of(delivery.way),
            damaged: delivery.damaged.into(),
        }))
    }

    fn event(&mut self) -> Option<sojourn_event> {
        if self.events.is_empty() {
            self.events.extend(self.path.verdicts());
        }
        let event = self.events.pop_front()?;
        let (verdict, reason, sojourn) = match event.verdict {
            Verdict::Arrived => (SOJOURN_ARRIVED, 0, Duration::ZERO),
            Verdict::Marked => (SOJOURN_MARKED, 0, Duration::ZERO),
            Verdict::Dropped {
                reason: DropReason::Overflow,
            } => (SOJOURN_DROPPED, SOJOURN_DROPPED_OVERFLOW, Duration::ZERO),
            Verdict::Dropped { .. } => (SOJOURN_DROPPED, SOJOURN_DROPPED_AQM, Duration::ZERO),
            Verdict::Left { sojourn } => (SOJOURN_LEFT, 0, sojourn),
            Verdict::Lost => (SOJOURN_LOST, 0, Duration::ZERO),
            Verdict::Duplicated => (SOJOURN_DUPLICATED, 0, Duration::ZERO),
            _ => (u8::MAX, 0, Duration::ZERO),
        };
        Some(sojourn_event {
            size: size_of::<sojourn_event>(),
            at_ns: nanos(event.at),
            number: event.number,
            sojourn_ns: nanos(sojourn),
            way: way_of(event.way),
            verdict,
            reason,
        })
    }

    fn counts(&self, of: u8) -> Result<sojourn_counts, String> {
        let counts = self.path.counts(way(of)?);
        Ok(sojourn_counts {
            size: size_of::<sojourn_counts>(),
            sent: counts.sent,
            delivered: counts.delivered,
            dropped: counts.dropped,
            marked: counts.marked,
            lost: counts.lost,
            duplicated: counts.duplicated,
        })
    }
}

fn nanos(span: Duration) -> u64 {
    span.as_nanos().try_into().unwrap_or(u64::MAX)
}

fn way(number: u8) -> Result<Way, String> {
    match number {
        SOJOURN_DOWN => Ok(Way::Down),
        SOJOURN_UP => Ok(Way::Up),
        other => Err(format!("way: got {other}; must be 0 (down) or 1 (up)")),
    }
}

const fn way_of(way: Way) -> u8 {
    match way {
        Way::Down => SOJOURN_DOWN,
        Way::Up => SOJOURN_UP,
    }
}

/// A message as a C string; messages quote what callers gave, which has no zero bytes.
fn text(message: &str) -> CString {
    CString::new(message.replace('\0', " ")).unwrap_or_default()
}

/// A text that a caller gives.
///
/// # Safety
/// `given` is null, or a string with its end, which lasts as long as `'a`.
unsafe fn given<'a>(name: &str, given: *const c_char) -> Result<&'a str, String> {
    if given.is_null() {
        return Err(format!("{name}: got NULL"));
    }
    // SAFETY: it is not null, so the caller promises a string.
    let text = unsafe { CStr::from_ptr(given) };
    text.to_str().map_err(|_| format!("{name}: must be UTF-8"))
}

/// The version of the ABI of this library, to be compared with SOJOURN_ABI_VERSION of the header.
#[unsafe(no_mangle)]
pub extern "C" fn sojourn_abi_version() -> u32 {
    SOJOURN_ABI_VERSION
}

/// Makes a path. Returns NULL on an error, whose text, cut to `error_size` bytes with its end, is then in `error`; `error` may
/// be NULL.
///
/// # Safety
/// `options` is NULL or valid for as many bytes as its `size` says, and its texts are NULL or end in a zero byte. `error` is
/// NULL or valid for `error_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_new(
    options: *const sojourn_options,
    error: *mut c_char,
    error_size: usize,
) -> *mut sojourn_path {
    // SAFETY: the caller promises so.
    match unsafe { build(options) } {
        Ok(path) => {
            let path = sojourn_path {
                path,
                events: VecDeque::new(),
                error: CString::default(),
            };
            Box::into_raw(Box::new(path))
        }
        Err(message) => {
            if !error.is_null() && error_size > 0 {
                let message = text(&message);
                let bytes = message.as_bytes();
                let bytes = &bytes[..bytes.len().min(error_size - 1)];
                // SAFETY: `error` is valid for `error_size` bytes, of which these and a zero are at most all.
                unsafe {
                    error
                        .cast::<u8>()
                        .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                    error.add(bytes.len()).write(0);
                }
            }
            std::ptr::null_mut()
        }
    }
}

/// Ends a path. NULL is allowed.
///
/// # Safety
/// `path` is NULL, or of `sojourn_path_new` and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_free(path: *mut sojourn_path) {
    if !path.is_null() {
        // SAFETY: it is of `Box::into_raw`, and freed once.
        drop(unsafe { Box::from_raw(path) });
    }
}

/// The text of the last call's error on this path, empty if there was none; valid until the next call.
///
/// # Safety
/// `path` is of `sojourn_path_new` and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_error(path: *const sojourn_path) -> *const c_char {
    // SAFETY: the caller promises a path.
    unsafe { &*path }.error.as_ptr()
}

/// Sends a packet. `now_ns` is in nanoseconds since the path's beginning and must not go back from one call to the next. The
/// packet's number, counted from 0, is written to `number` unless that is NULL. Returns 0, or -1 on an error.
///
/// # Safety
/// `path` is of `sojourn_path_new` and was not freed. `packet` is NULL or valid for as many bytes as its `size` says. `number`
/// is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_send(
    path: *mut sojourn_path,
    now_ns: u64,
    packet: *const sojourn_packet,
    number: *mut u64,
) -> i32 {
    // SAFETY: the caller promises a path that no other call uses.
    let path = unsafe { &mut *path };
    // SAFETY: the caller promises so.
    let packet = unsafe { read(packet) };
    let sent = packet
        .and_then(|packet| path.send(now_ns, &packet))
        .map(|sent| {
            if !number.is_null() {
                // SAFETY: it is not null, so the caller promises that it is valid.
                unsafe { number.write_unaligned(sent) };
            }
            0
        });
    path.status(sent)
}

/// When to call `sojourn_path_poll` next, in nanoseconds since the path's beginning, never before the last call's instant;
/// SOJOURN_NEVER: only after a packet was sent.
///
/// # Safety
/// `path` is of `sojourn_path_new` and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_next_event(path: *const sojourn_path) -> u64 {
    // SAFETY: the caller promises a path.
    unsafe { &*path }
        .path
        .next_event()
        .map_or(SOJOURN_NEVER, nanos)
}

/// Handles what is due by `now_ns`. Returns 1 if a packet has arrived and is written to `delivery`, 0 if none has, -1 on an
/// error. To be called until it returns 0.
///
/// # Safety
/// `path` is of `sojourn_path_new` and was not freed. `delivery` is NULL or valid for as many bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_poll(
    path: *mut sojourn_path,
    now_ns: u64,
    delivery: *mut sojourn_delivery,
) -> i32 {
    // SAFETY: the caller promises a path that no other call uses.
    let path = unsafe { &mut *path };
    // SAFETY: the caller promises so. It is read first, so that no delivery is taken that cannot be written.
    let room = unsafe { size(delivery.cast_const()) };
    let polled = room
        .and_then(|_| path.poll(now_ns))
        .and_then(|found| match found {
            // SAFETY: the caller promises so.
            Some(found) => unsafe { write(delivery, &found) }.map(|()| 1),
            None => Ok(0),
        });
    path.status(polled)
}

/// What happened to a packet, oldest first; the newest 65,536 events are kept. Returns 1 if there was one and it is written to
/// `event`, 0 if there was none, -1 on an error.
///
/// # Safety
/// `path` is of `sojourn_path_new` and was not freed. `event` is NULL or valid for as many bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_event(
    path: *mut sojourn_path,
    event: *mut sojourn_event,
) -> i32 {
    // SAFETY: the caller promises a path that no other call uses.
    let path = unsafe { &mut *path };
    // SAFETY: the caller promises so.
    let room = unsafe { size(event.cast_const()) };
    let told = room.and_then(|_| match path.event() {
        // SAFETY: the caller promises so.
        Some(told) => unsafe { write(event, &told) }.map(|()| 1),
        None => Ok(0),
    });
    path.status(told)
}

/// Counts the packets of a direction. Returns 0, or -1 on an error.
///
/// # Safety
/// `path` is of `sojourn_path_new` and was not freed. `counts` is NULL or valid for as many bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_counts(
    path: *mut sojourn_path,
    way: u8,
    counts: *mut sojourn_counts,
) -> i32 {
    // SAFETY: the caller promises a path that no other call uses.
    let path = unsafe { &mut *path };
    let counted = path.counts(way);
    // SAFETY: the caller promises so.
    let counted = counted
        .and_then(|found| unsafe { write(counts, &found) })
        .map(|()| 0);
    path.status(counted)
}

/// Sets the rate of a direction's link, such as "5 Mbit/s". Returns 0, or -1 on an error.
///
/// # Safety
/// `path` is of `sojourn_path_new` and was not freed. `rate` is NULL or ends in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_set_rate(
    path: *mut sojourn_path,
    of: u8,
    rate: *const c_char,
) -> i32 {
    // SAFETY: the caller promises a path that no other call uses.
    let path = unsafe { &mut *path };
    // SAFETY: the caller promises so.
    let rate = unsafe { given("rate", rate) };
    let set = way(of).and_then(|way| {
        path.path
            .set_rate(way, rate?)
            .map_err(|error| error.to_string())
    });
    path.status(set.map(|()| 0))
}

/// Sets the propagation there and back, such as "80 ms". Returns 0, or -1 on an error.
///
/// # Safety
/// `path` is of `sojourn_path_new` and was not freed. `rtt` is NULL or ends in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_set_delay(
    path: *mut sojourn_path,
    rtt: *const c_char,
) -> i32 {
    // SAFETY: the caller promises a path that no other call uses.
    let path = unsafe { &mut *path };
    // SAFETY: the caller promises so.
    let rtt = unsafe { given("rtt", rtt) };
    let set = rtt.and_then(|rtt| path.path.set_delay(rtt).map_err(|error| error.to_string()));
    path.status(set.map(|()| 0))
}
