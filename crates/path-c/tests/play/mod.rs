//! Turns arbitrary bytes into calls of the C ABI and checks what comes back. For tests and for fuzzing.

use std::ffi::{CStr, CString, c_char};
use std::mem::size_of;
use std::ptr;

use sojournpath::*;

const RATES: [&str; 5] = ["1 Mbit/s", "100 kbit/s", "1 Tbit/s", "0 bit/s", "fast"];
const RTTS: [&str; 5] = ["40 ms", "0 ms", "1 s", "-1 ms", "40"];
const AQMS: [&str; 6] = ["fq_codel", "pfifo", "pie", "cake", "dualpi2", "blau"];
const KEYS: [&str; 6] = [
    "limit=10 packets",
    "",
    "ecn=true",
    "target=5 ms, ecn=true",
    "=,=",
    "target=0 ms",
];
const IMPAIRS: [&str; 6] = [
    "loss=0.1",
    "duplicate=0.2, corrupt=0.1",
    "jitter=3 ms",
    "loss=1.5",
    "jitter",
    "loss=nan",
];

/// Bytes as numbers; zeros when they are used up.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.next()))
    }

    /// Mostly the first of these texts, otherwise another, nothing, or whatever the bytes are.
    fn text(&mut self, known: &[&str]) -> Option<CString> {
        let which = self.next();
        let text = match which {
            0..=127 => known[0].into(),
            128..=223 => known[usize::from(which) % known.len()].into(),
            224..=239 => return None,
            _ => {
                let length = usize::from(self.next() % 24);
                (0..length).map(|_| self.next().max(1)).collect::<Vec<u8>>()
            }
        };
        Some(CString::new(text).expect("no zero"))
    }

    /// The size that a caller's struct says that it has: mostly its own, or a little less or more.
    fn size(&mut self, own: usize) -> usize {
        match self.next() {
            0..=223 => own,
            other => (own + usize::from(other % 32)).saturating_sub(16),
        }
    }
}

/// Memory for a struct, not aligned, with its size first and room for as much as that says.
struct Room(Vec<u8>, usize);

impl Room {
    fn new(size: usize, shift: usize) -> Self {
        let shift = shift % 8;
        let mut bytes = vec![0xa5; shift + size.max(size_of::<usize>())];
        bytes[shift..shift + size_of::<usize>()].copy_from_slice(&size.to_ne_bytes());
        Self(bytes, shift)
    }

    /// With the fields of `record`, as far as there is room, but for the size.
    fn with<T>(mut self, record: &T) -> Self {
        let first = size_of::<usize>();
        let most = (self.0.len() - self.1).min(size_of::<T>());
        // SAFETY: `record` has that many bytes, and so has the room behind its shift.
        unsafe {
            let to = self.0.as_mut_ptr().add(self.1);
            let from = ptr::from_ref(record).cast::<u8>();
            to.add(first)
                .copy_from_nonoverlapping(from.add(first), most - first);
        }
        self
    }

    fn place<T>(&mut self) -> *mut T {
        // SAFETY: the shift lies in the memory.
        unsafe { self.0.as_mut_ptr().add(self.1).cast() }
    }

    /// What was written, if the room was for all of it.
    fn read<T>(&mut self) -> T {
        assert!(self.0.len() - self.1 >= size_of::<T>());
        // SAFETY: it is long enough, and any bytes are a value of these structs of integers.
        unsafe { self.place::<T>().read_unaligned() }
    }
}

fn pointer(text: Option<&CString>) -> *const c_char {
    text.map_or(ptr::null(), |text| text.as_ptr())
}

/// Plays these bytes.
pub fn play(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let texts = [
        &RATES[..],
        &RTTS,
        &AQMS,
        &KEYS,
        &RATES,
        &AQMS,
        &KEYS,
        &IMPAIRS,
        &IMPAIRS,
    ]
    .map(|known| bytes.text(known));
    let at = |place: usize| pointer(texts[place].as_ref());
    let options = sojourn_options {
        size: size_of::<sojourn_options>(),
        rate: at(0),
        rtt: at(1),
        aqm: at(2),
        keys: at(3),
        up_rate: at(4),
        up_aqm: at(5),
        up_keys: at(6),
        impair: at(7),
        up_impair: at(8),
        seed: bytes.word(),
    };
    let size = bytes.size(options.size);
    let mut room = Room::new(size, bytes.next().into()).with(&options);
    let mut error = vec![0x7f_u8; usize::from(bytes.next() % 100)];
    // SAFETY: the room is as long as its size says, its texts end, the error's memory has this length.
    let path = unsafe { sojourn_path_new(room.place(), error.as_mut_ptr().cast(), error.len()) };
    if path.is_null() {
        assert!(error.is_empty() || error.contains(&0), "the message ends");
        return;
    }
    let mut now = 0_u64;
    let mut steps = 0;
    while !bytes.0.is_empty() && steps < 2000 {
        steps += 1;
        step(path, &mut bytes, &mut now);
    }
    // SAFETY: the path is of `sojourn_path_new` and is freed once.
    unsafe { sojourn_path_free(path) };
}

fn step(path: *mut sojourn_path, bytes: &mut Bytes<'_>, now: &mut u64) {
    let action = bytes.next();
    let status = match action {
        0..=139 => {
            let packet = sojourn_packet {
                size: size_of::<sojourn_packet>(),
                user: bytes.word(),
                bytes: u32::from(bytes.next()) << (bytes.next() % 20),
                source: action.into(),
                destination: 2,
                source_port: 3,
                destination_port: 4,
                protocol: 17,
                ecn: bytes.next() % 5,
                dscp: bytes.next() % 70,
                way: bytes.next() % 3,
            };
            let mut room = Room::new(bytes.size(packet.size), action.into()).with(&packet);
            let mut number = 0;
            // SAFETY: the path lives, the room is as long as its size says, the number is valid.
            unsafe { sojourn_path_send(path, *now, room.place(), &mut number) }
        }
        140..=179 => {
            let jump = bytes.word() >> (bytes.next() % 64);
            *now = now.saturating_add(jump.min(1 << 40));
            0
        }
        180..=219 => {
            let own = size_of::<sojourn_delivery>();
            let mut room = Room::new(bytes.size(own), action.into());
            // SAFETY: as above.
            let status = unsafe { sojourn_path_poll(path, *now, room.place()) };
            if status == 1 && room.0.len() - room.1 >= own {
                let found: sojourn_delivery = room.read();
                assert!(found.sent_ns <= found.at_ns && found.at_ns <= *now);
                assert!(found.sojourn_ns <= found.at_ns - found.sent_ns);
            }
            status
        }
        220..=234 => {
            let mut room = Room::new(bytes.size(size_of::<sojourn_event>()), action.into());
            // SAFETY: as above.
            unsafe { sojourn_path_event(path, room.place()) }
        }
        235..=241 => {
            let rate = bytes.text(&RATES);
            // SAFETY: the path lives, the text ends.
            unsafe { sojourn_path_set_rate(path, bytes.next() % 3, pointer(rate.as_ref())) }
        }
        242..=247 => {
            let rtt = bytes.text(&RTTS);
            // SAFETY: as above.
            unsafe { sojourn_path_set_delay(path, pointer(rtt.as_ref())) }
        }
        248..=250 => {
            // SAFETY: the path lives.
            let next = unsafe { sojourn_path_next_event(path) };
            if next != SOJOURN_NEVER {
                *now = next.max(*now);
            }
            0
        }
        // Back in time, or no record: refused.
        251..=253 => {
            let before = now.saturating_sub(1);
            // SAFETY: NULL is allowed.
            unsafe { sojourn_path_send(path, before, ptr::null(), ptr::null_mut()) }
        }
        _ => {
            let own = size_of::<sojourn_counts>();
            let mut room = Room::new(own, action.into());
            for way in [SOJOURN_DOWN, SOJOURN_UP] {
                // SAFETY: as above.
                let status = unsafe { sojourn_path_counts(path, way, room.place()) };
                assert_eq!(status, 0);
                let counts: sojourn_counts = room.read();
                let there = counts.sent + counts.duplicated;
                assert!(counts.delivered + counts.dropped + counts.lost <= there);
            }
            0
        }
    };
    // SAFETY: the path lives, and its error ends.
    let error = unsafe { CStr::from_ptr(sojourn_path_error(path)) };
    assert_eq!(status == -1, status < 0);
    if status == -1 {
        assert!(!error.is_empty(), "an error has its words");
    }
}
