//! Plays the scripts of `tests/scripts`: tables of the segments that one endpoint receives and must send, with their
//! times. The test fails if a segment is missing, differs, is unexpected or comes at another time.
//!
//! One event a line; `#` begins a comment. `config KEY=VALUE …` comes first. Times are milliseconds.
//!
//! ```text
//! config cc=reno mss=1000 initial_window=10 ecn=on accecn=on ecn_fallback=off abe=on sack=off quickack=off ack_every=20
//!        recovery=rfc6675 min_rto=1000 max_window=60000 clock=jiffies gso=on iss=4294967000
//! TIME open RTT [win N]    connects at TIME and plays the peer's part of the handshake, RTT later
//! TIME accept RTT [win N]  the same, the peer connecting
//! TIME connect | listen | write BYTES | close
//! TIME < SEGMENT           arrives
//! TIME > SEGMENT           must leave, with exactly these flags, numbers, SACK blocks and ECT
//! TIME = NAME VALUE …      must hold: cwnd, ssthresh, in_flight, retransmits, received, srtt (ms), next_timer (ms),
//!                          closed, failed, established (0 or 1)
//!
//! SEGMENT = FLAGS FIRST:END [ack N] [win N] [sack A:B …] [bytes N/N/N] [ecr TIME] [ect | ect1 | ce] [x COUNT]
//! ```
//!
//! FLAGS: `S` SYN, `F` FIN, `P` PSH, `E` ECE, `W` CWR, `A` AE, `.` ACK. FIRST:END is the payload, without the sequence
//! numbers of SYN and FIN. Numbers count from the sender's SYN. `sackOK` is an option of a SYN. `x COUNT`: the payload
//! arrives as that many equal segments. `ecr TIME`: the segment echoes the timestamp of TIME; without it the segment
//! echoes none, so that no reduction is undone because of timestamps alone. `win` of a sent segment is checked if it
//! is given. `bytes`: the AccECN option with its fields for ECT(1), CE and ECT(0), as many as it has.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::Path;

use sojourn_tcp::cc;
use sojourn_tcp::config::{Abe, Clock, Kernel, Recovery};
use sojourn_tcp::ecn::{EcnBytes, Feedback, setup_report};
use sojourn_tcp::segment::{Flags, MAX_SACK_BLOCKS, SackBlock};
use sojourn_tcp::seq::Seq;
use sojourn_tcp::{Arrival, Config, Endpoint, Segment, Transmit};
use sojourn_units::Time;

/// The peer's initial sequence number: near the wrap, so that every script crosses it early.
const PEER_ISS: Seq = Seq(u32::MAX - 500);

#[test]
fn every_script_plays_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .expect("tests/scripts is part of the source")
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    paths.sort();
    let mut failures = Vec::new();
    for path in &paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let text = std::fs::read_to_string(path).expect("a readable script");
        if let Err(failure) = Player::play(&text) {
            failures.push(format!("{name}:{failure}"));
        }
    }
    assert!(
        paths.len() > 20,
        "scripts are missing from {}",
        folder.display()
    );
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// A segment of a script.
#[derive(Clone, PartialEq, Debug)]
struct Row {
    flags: Flags,
    first: u32,
    end: u32,
    ack: Option<u32>,
    window: Option<u32>,
    sack: Vec<(u32, u32)>,
    bytes: Vec<u32>,
    echo: Option<Time>,
    ecn: Arrival,
    count: u32,
}

/// The congestion control called `name`.
fn control(name: &str) -> Option<cc::Algorithm> {
    cc::Catalogue::new().get(name).cloned()
}

struct Player {
    config: Config,
    algorithm: cc::Algorithm,
    iss: Seq,
    endpoint: Option<Endpoint>,
    now: Time,
    sent: VecDeque<(Time, Transmit)>,
}

impl Player {
    fn play(text: &str) -> Result<(), String> {
        let mut player = Self {
            config: Config {
                mss: 1000,
                clock: Clock::Exact,
                gso: false,
                ..Config::default()
            },
            algorithm: control("reno").expect("reno is listed"),
            iss: Seq(u32::MAX - 2500),
            endpoint: None,
            now: Time::ZERO,
            sent: VecDeque::new(),
        };
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.is_empty() {
                continue;
            }
            let number = number + 1;
            player
                .play_line(&words)
                .map_err(|failure| format!("{number}: {line}\n    {failure}"))?;
        }
        player.nothing_more_was_sent()
    }

    fn play_line(&mut self, words: &[&str]) -> Result<(), String> {
        if words[0] == "config" {
            return words[1..].iter().try_for_each(|word| self.configure(word));
        }
        let at = time(words[0])?;
        let (what, rest) = (*words.get(1).ok_or("nothing happens")?, &words[2..]);
        match what {
            ">" | "=" => {
                self.advance(at, true);
                if what == ">" {
                    self.expect_segments(at, &row(rest)?)
                } else {
                    self.check(rest)
                }
            }
            _ => {
                self.advance(at, false);
                self.nothing_more_was_sent()?;
                self.now = at;
                self.act(what, rest)?;
                self.collect();
                Ok(())
            }
        }
    }

    fn configure(&mut self, setting: &str) -> Result<(), String> {
        let (key, value) = setting.split_once('=').ok_or("a setting is KEY=VALUE")?;
        match key {
            "cc" => self.algorithm = control(value).ok_or("no such congestion control")?,
            "mss" => self.config.mss = whole(value)? as u16,
            "initial_window" => self.config.initial_window = whole(value)?,
            "ecn" => self.config.ecn = value == "on",
            "accecn" => self.config.accecn = value == "on",
            "ecn_fallback" => self.config.ecn_fallback = value == "on",
            "abe" => {
                self.config.abe = if value == "on" {
                    Abe::Recommended
                } else {
                    Abe::Off
                }
            }
            "sack" => self.config.sack = value == "on",
            "quickack" => self.config.quickack = value == "on",
            "kernel" if value == "6.12" => self.config.kernel = Kernel::V6_12,
            "kernel" if value == "6.18" => self.config.kernel = Kernel::V6_18,
            "kernel" if value == "7.3" => self.config.kernel = Kernel::V7_3,
            "recovery" if value == "rfc6675" => self.config.recovery = Recovery::Rfc6675,
            "min_rto" => self.config.rto_min = time(value)? - Time::ZERO,
            "ack_every" => self.config.ack_every = whole(value)?,
            "max_window" => self.config.max_window = whole(value)?,
            "clock" if value == "jiffies" => self.config.clock = Clock::Jiffies,
            "gso" => self.config.gso = value == "on",
            "iss" => self.iss = Seq(whole(value)?),
            _ => return Err(format!("unknown setting {setting}")),
        }
        Ok(())
    }

    fn act(&mut self, what: &str, rest: &[&str]) -> Result<(), String> {
        match what {
            "connect" => {
                self.endpoint = Some(Endpoint::connect(
                    self.config.clone(),
                    &self.algorithm,
                    self.iss,
                ));
            }
            "listen" => {
                self.endpoint = Some(Endpoint::listen(
                    self.config.clone(),
                    &self.algorithm,
                    self.iss,
                ));
            }
            "open" | "accept" => return self.shake_hands(what == "open", rest),
            "write" => self.endpoint()?.write(u64::from(whole(one(rest)?)?)),
            "close" => self.endpoint()?.close(),
            "<" => self.arrive(&row(rest)?)?,
            _ => return Err(format!("unknown event {what}")),
        }
        Ok(())
    }

    /// Plays the handshake as a peer that accepts all options.
    fn shake_hands(&mut self, active: bool, rest: &[&str]) -> Result<(), String> {
        let start = self.now;
        let rtt = time(rest.first().ok_or("how long is the round trip?")?)? - Time::ZERO;
        let window = if rest.get(1) == Some(&"win") {
            whole(rest[2])?
        } else {
            1_000_000
        };
        let wanted = self.config.wanted_feedback(self.algorithm.feedback);
        let mut syn = row(&["S", "0:0", "sackOK"])?;
        syn.window = Some(window);
        let has_option = wanted == Feedback::Accurate && self.config.kernel >= Kernel::V7_3;
        let bytes = if has_option {
            vec![1, 0, 1]
        } else {
            Vec::new()
        };
        if active {
            self.act("connect", &[])?;
            self.collect();
            self.now = start + rtt;
            syn.flags = syn
                .flags
                .with(Flags::ACK)
                .with(wanted.answer_flags(Arrival::NotEct));
            syn.ack = Some(1);
            syn.bytes = bytes;
            self.arrive(&syn)?;
        } else {
            self.act("listen", &[])?;
            syn.flags = syn.flags.with(wanted.syn_flags());
            self.arrive(&syn)?;
            self.collect();
            self.now = start + rtt;
            let mut ack = row(&[".", "1:1", "ack", "1"])?;
            if wanted == Feedback::Accurate {
                ack.flags = ack.flags.with_ace(setup_report(Arrival::NotEct));
            }
            ack.window = Some(window);
            ack.bytes = bytes;
            self.arrive(&ack)?;
        }
        self.collect();
        self.sent.clear();
        if self.endpoint()?.is_established() {
            Ok(())
        } else {
            Err("the handshake failed".into())
        }
    }

    fn endpoint(&mut self) -> Result<&mut Endpoint, String> {
        self.endpoint
            .as_mut()
            .ok_or_else(|| "there is no connection yet".into())
    }

    fn arrive(&mut self, row: &Row) -> Result<(), String> {
        let each = (row.end - row.first) / row.count;
        for n in 0..row.count {
            let mut segment = Segment {
                seq: PEER_ISS + row.first + n * each,
                ack: row.ack.map_or(Seq(0), |ack| self.iss + ack),
                ts_val: stamp(self.now),
                ts_ecr: row.echo.map_or(0, stamp),
                window: row.window.unwrap_or(1_000_000),
                len: each as u16,
                flags: row.flags,
                ..Segment::default()
            };
            for (place, (start, end)) in segment.sack.iter_mut().zip(&row.sack) {
                *place = SackBlock {
                    start: self.iss + *start,
                    end: self.iss + *end,
                };
            }
            if !row.bytes.is_empty() {
                segment.add_accecn(row.bytes.len() as u8, counters(&row.bytes));
            }
            let now = self.now;
            self.endpoint()?.on_segment(&segment, row.ecn, now);
            self.collect();
        }
        Ok(())
    }

    /// Fires the timers that expire before `until`, or also at `until`.
    fn advance(&mut self, until: Time, inclusive: bool) {
        while let Some(due) = self.endpoint.as_ref().and_then(Endpoint::next_timer) {
            if due > until || (due == until && !inclusive) {
                break;
            }
            self.now = self.now.max(due);
            let now = self.now;
            if let Some(endpoint) = &mut self.endpoint {
                endpoint.on_timer(now);
            }
            self.collect();
        }
        self.now = self.now.max(until);
    }

    fn collect(&mut self) {
        while let Some(transmit) = self.endpoint.as_mut().and_then(|end| end.poll(self.now)) {
            self.sent.push_back((self.now, transmit));
        }
    }

    fn expect_segments(&mut self, at: Time, row: &Row) -> Result<(), String> {
        let each = (row.end - row.first) / row.count;
        for n in 0..row.count {
            let (sent_at, transmit) = self.sent.pop_front().ok_or("nothing was sent")?;
            let found = self.describe(&transmit);
            let mut option = Segment {
                flags: row.flags,
                ..Segment::default()
            };
            if !row.bytes.is_empty() {
                option.add_accecn(row.bytes.len() as u8, EcnBytes::default());
            }
            let wanted = Row {
                flags: option.flags,
                first: row.first + n * each,
                end: row.first + (n + 1) * each,
                count: 1,
                window: row.window.or(found.window),
                ..row.clone()
            };
            if found != wanted || sent_at != at {
                return Err(format!("was sent: {}", notation(sent_at, &found)));
            }
        }
        Ok(())
    }

    fn describe(&self, transmit: &Transmit) -> Row {
        let segment = &transmit.segment;
        let first = segment.seq.since(self.iss);
        let fields = segment.flags.accecn_fields().unwrap_or(0);
        Row {
            flags: segment.flags,
            first,
            end: first + u32::from(segment.len),
            ack: segment
                .flags
                .contains(Flags::ACK)
                .then(|| segment.ack.since(PEER_ISS)),
            window: Some(segment.window),
            sack: segment
                .sack_blocks()
                .iter()
                .map(|block| (block.start.since(PEER_ISS), block.end.since(PEER_ISS)))
                .collect(),
            bytes: segment.ecn_bytes().on_the_wire()[..usize::from(fields)].to_vec(),
            echo: None,
            ecn: if transmit.ecn_capable {
                Arrival::Ect0
            } else {
                Arrival::NotEct
            },
            count: 1,
        }
    }

    fn check(&mut self, claims: &[&str]) -> Result<(), String> {
        let endpoint = self.endpoint()?;
        for claim in claims.chunks(2) {
            let &[name, value] = claim else {
                return Err("a claim is NAME VALUE".into());
            };
            let sender = endpoint.sender();
            let found = match name {
                "cwnd" => f64::from(sender.cwnd()),
                "ssthresh" => f64::from(sender.ssthresh()),
                "in_flight" => f64::from(sender.in_flight()),
                "retransmits" => sender.retransmits() as f64,
                "received" => endpoint.received() as f64,
                "srtt" => sender.smoothed_rtt().map_or(0.0, |rtt| rtt.as_millis_f64()),
                "next_timer" => endpoint
                    .next_timer()
                    .map_or(0.0, |at| at.as_secs_f64() * 1e3),
                "closed" => f64::from(u8::from(endpoint.is_closed())),
                "failed" => f64::from(u8::from(endpoint.has_failed())),
                "established" => f64::from(u8::from(endpoint.is_established())),
                _ => return Err(format!("unknown name {name}")),
            };
            let wanted: f64 = value
                .parse()
                .map_err(|_| format!("not a number: {value}"))?;
            if (found - wanted).abs() > 1e-3 {
                return Err(format!("{name} is {found}"));
            }
        }
        Ok(())
    }

    fn nothing_more_was_sent(&self) -> Result<(), String> {
        match self.sent.front() {
            None => Ok(()),
            Some((at, transmit)) => Err(format!(
                "before it was sent: {}",
                notation(*at, &self.describe(transmit))
            )),
        }
    }
}

/// The timestamp of an instant: milliseconds, never 0 (as the endpoint's own clock).
fn stamp(at: Time) -> u32 {
    (at.as_nanos() / 1_000_000) as u32 | 0x8000_0000
}

fn time(word: &str) -> Result<Time, String> {
    let millis: f64 = word
        .parse()
        .map_err(|_| format!("not a time in ms: {word}"))?;
    Ok(Time::from_nanos((millis * 1e6).round() as u64))
}

fn whole(word: &str) -> Result<u32, String> {
    word.parse()
        .map_err(|_| format!("not a whole number: {word}"))
}

/// The counters that these fields carry: those of ECT begin at 1.
fn counters(fields: &[u32]) -> EcnBytes {
    let mut counters = EcnBytes::default();
    let begin = [1, 0, 1];
    for ((counter, field), begin) in counters.fields.iter_mut().zip(fields).zip(begin) {
        *counter = field.wrapping_sub(begin);
    }
    counters
}

fn one<'a>(words: &[&'a str]) -> Result<&'a str, String> {
    if let [word] = words {
        Ok(word)
    } else {
        Err("exactly one value is needed".into())
    }
}

fn range(word: &str) -> Result<(u32, u32), String> {
    let (start, end) = word
        .split_once(':')
        .ok_or_else(|| format!("not a range: {word}"))?;
    Ok((whole(start)?, whole(end)?))
}

fn row(words: &[&str]) -> Result<Row, String> {
    let [letters, numbers, options @ ..] = words else {
        return Err("a segment is FLAGS FIRST:END …".into());
    };
    let mut flags = Flags::default();
    for letter in letters.chars() {
        flags = flags.with(match letter {
            'S' => Flags::SYN,
            'F' => Flags::FIN,
            'P' => Flags::PSH,
            'E' => Flags::ECE,
            'W' => Flags::CWR,
            'A' => Flags::AE,
            '.' => Flags::ACK,
            _ => return Err(format!("unknown flag {letter}")),
        });
    }
    let (first, end) = range(numbers)?;
    let mut row = Row {
        flags,
        first,
        end,
        ack: None,
        window: None,
        sack: Vec::new(),
        bytes: Vec::new(),
        echo: None,
        ecn: Arrival::NotEct,
        count: 1,
    };
    let mut words = options.iter().peekable();
    while let Some(&word) = words.next() {
        let mut value = || words.next().copied().ok_or(format!("{word} needs a value"));
        match word {
            "ack" => row.ack = Some(whole(value()?)?),
            "win" => row.window = Some(whole(value()?)?),
            "ecr" => row.echo = Some(time(value()?)?),
            "x" => row.count = whole(value()?)?.max(1),
            "bytes" => {
                let fields = value()?.split('/').map(whole);
                row.bytes = fields.collect::<Result<_, _>>()?;
            }
            "ect" => row.ecn = Arrival::Ect0,
            "ect1" => row.ecn = Arrival::Ect1,
            "ce" => row.ecn = Arrival::Ce,
            "sackOK" => row.flags = row.flags.with(Flags::SACK_PERMITTED),
            "sack" => {
                while let Some(block) = words.next_if(|word| word.contains(':')) {
                    row.sack.push(range(block)?);
                }
            }
            _ => return Err(format!("unknown word {word}")),
        }
    }
    if row.sack.len() > MAX_SACK_BLOCKS || (row.end - row.first) % row.count != 0 {
        return Err("too many SACK blocks, or segments of unequal length".into());
    }
    Ok(row)
}

/// A segment in the notation of the scripts.
fn notation(at: Time, row: &Row) -> String {
    let letters = [
        (Flags::SYN, 'S'),
        (Flags::FIN, 'F'),
        (Flags::PSH, 'P'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'W'),
        (Flags::AE, 'A'),
        (Flags::ACK, '.'),
    ];
    let mut text = format!("{} > ", at.as_secs_f64() * 1e3);
    text.extend(
        letters
            .iter()
            .filter(|(flag, _)| row.flags.contains(*flag))
            .map(|(_, l)| l),
    );
    let _ = write!(text, " {}:{}", row.first, row.end);
    for (name, value) in [("ack", row.ack), ("win", row.window)] {
        if let Some(value) = value {
            let _ = write!(text, " {name} {value}");
        }
    }
    if row.flags.contains(Flags::SACK_PERMITTED) {
        text.push_str(" sackOK");
    }
    if !row.sack.is_empty() {
        text.push_str(" sack");
        for (start, end) in &row.sack {
            let _ = write!(text, " {start}:{end}");
        }
    }
    if !row.bytes.is_empty() {
        let fields: Vec<String> = row.bytes.iter().map(u32::to_string).collect();
        let _ = write!(text, " bytes {}", fields.join("/"));
    }
    if row.ecn == Arrival::Ect0 {
        text.push_str(" ect");
    }
    text
}
