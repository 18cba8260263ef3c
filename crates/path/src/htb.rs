//! A hierarchy of token buckets above disciplines, as `tc class htb` builds it.
//!
//! Every class has a `rate`, which it may always send at, and a `ceil`, up to which it borrows from the class above it while
//! that has tokens. Classes without children hold the packets, each in a discipline of its own. The link above all of them
//! lends whenever it is free.
//!
//! Source: M. Devera, "Hierarchical Token Bucket Theory" (2002), and tc-htb(8). The lowest level that may lend is served
//! first; within a level the classes take turns by deficit round robin with their quanta. Not modelled: priorities (`prio`),
//! hysteresis (off in Linux by default), and the 60 s of credit and debt after which Linux cuts a class's account.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use sojourn_aqm::{Environment, Packet, Qdisc};
use sojourn_units::{Duration, Rate, Time};

use crate::event_queue::EventQueue;
use crate::link::BoxedQdisc;

/// The most classes above each other below the link. Linux has eight levels, of which the link's own class is one.
pub const MOST_LEVELS: usize = 7;
/// Level of the link, above all classes.
const TOP: usize = MOST_LEVELS;
/// The quantum of a class is what its rate sends in this part of a second (`r2q` of tc-htb(8)), within these bounds of
/// Linux, in bytes.
const RATE_TO_QUANTUM: u64 = 10;
const QUANTA: (u64, u64) = (1000, 200_000);

/// A class of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Class {
    /// The number of the class above it, which is lower than its own; `None`: the link.
    pub parent: Option<usize>,
    /// What it may always send at.
    pub rate: Rate,
    /// The most it may send at.
    pub ceil: Rate,
}

/// What a class may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// Send by its own tokens.
    Sends,
    /// Send by the tokens of the class above.
    Borrows,
    /// Nothing until its ceil allows.
    Waits,
}

/// A bucket: the time by which it is ahead of its rate; negative if it has sent too much.
#[derive(Clone, Copy)]
struct Bucket {
    rate: Rate,
    tokens: i64,
    full: i64,
}

impl Bucket {
    fn new(rate: Rate, burst: u64) -> Self {
        let full = nanos(rate.tx_time(burst.max(1)));
        Self {
            rate,
            tokens: full,
            full,
        }
    }

    fn fill(&mut self, by: i64) {
        self.tokens = self.tokens.saturating_add(by).min(self.full);
    }
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// Members by number, and whose turn it is.
#[derive(Default)]
struct Turns {
    words: Vec<u64>,
    members: usize,
    turn: usize,
}

impl Turns {
    fn of(most: usize) -> Self {
        Self {
            words: vec![0; most.div_ceil(64)],
            ..Self::default()
        }
    }

    fn insert(&mut self, member: usize) {
        self.members += 1;
        self.words[member / 64] |= 1 << (member % 64);
    }

    fn remove(&mut self, member: usize) {
        self.members -= 1;
        self.words[member / 64] &= !(1 << (member % 64));
    }

    /// The member whose turn it is: the first from `turn` on.
    fn current(&mut self) -> Option<usize> {
        let (mut word, bit) = (self.turn / 64, self.turn % 64);
        let mut bits = self.words.get(word)? & (u64::MAX << bit);
        while bits == 0 {
            word += 1;
            bits = *self.words.get(word)?;
        }
        self.turn = word * 64 + bits.trailing_zeros() as usize;
        Some(self.turn)
    }
}

/// A class at work; the first is the link.
struct Node {
    parent: usize,
    level: usize,
    /// Its index among the children of its parent.
    index: usize,
    children: Vec<usize>,
    rate: Bucket,
    ceil: Bucket,
    /// When its buckets were last filled.
    filled: Time,
    mode: Mode,
    /// It, or a class below that may borrow from it, has packets.
    active: bool,
    /// Children that borrow, by their indices.
    borrowers: Turns,
    /// The number of its discipline.
    leaf: Option<usize>,
}

struct Leaf<P> {
    qdisc: BoxedQdisc<P>,
    node: usize,
    quantum: i64,
    deficits: [i64; TOP + 1],
    /// Its discipline keeps its packets back, by a shaper of its own.
    is_held: bool,
}

/// Disciplines below a tree of classes.
pub struct Htb<P> {
    nodes: Vec<Node>,
    leaves: Vec<Leaf<P>>,
    /// Classes with packets that may send by their own tokens, per level.
    rows: [Turns; TOP + 1],
    /// When the mode of a class changes; after the classes, when a held discipline lets a packet go.
    waits: EventQueue,
    /// When the timer of a discipline is due, if disciplines have one.
    timers: Option<EventQueue>,
    /// By host address, in order: its discipline.
    hosts: Vec<(u32, usize)>,
    packets: u64,
    bytes: u64,
}

impl<P: Packet> Htb<P> {
    /// A tree with all buckets full. `burst`: bytes that every bucket holds. `disciplines`: one for each class without
    /// children, in the order of the classes. `hosts`: addresses of hosts, each with the number of its class; packets from or to
    /// another one take the first discipline.
    ///
    /// # Panics
    /// A parent does not precede its child, there are more than [`MOST_LEVELS`] levels, or there are fewer disciplines than
    /// classes without children.
    pub fn new(
        classes: &[Class],
        burst: u64,
        disciplines: Vec<BoxedQdisc<P>>,
        hosts: &[(u32, usize)],
    ) -> Self {
        let mut nodes = vec![Node::new(
            0,
            TOP,
            0,
            Rate::from_mbps(1),
            Rate::from_mbps(1),
            0,
        )];
        for (number, class) in classes.iter().enumerate() {
            let parent = class.parent.map_or(0, |parent| parent + 1);
            assert!(parent <= number, "parents precede their children");
            let (level, index) = (nodes[parent].level - 1, nodes[parent].children.len());
            nodes[parent].children.push(number + 1);
            nodes.push(Node::new(
                parent, level, index, class.rate, class.ceil, burst,
            ));
        }
        let mut leaves = Vec::new();
        let mut disciplines = disciplines.into_iter();
        for (number, node) in nodes.iter_mut().enumerate().skip(1) {
            if !node.children.is_empty() {
                node.borrowers = Turns::of(node.children.len());
                continue;
            }
            node.level = 0;
            node.leaf = Some(leaves.len());
            let quantum = node.rate.rate.as_bps() / 8 / RATE_TO_QUANTUM;
            leaves.push(Leaf {
                qdisc: disciplines
                    .next()
                    .expect("a discipline for each class without children"),
                node: number,
                quantum: quantum.clamp(QUANTA.0, QUANTA.1) as i64,
                deficits: [0; TOP + 1],
                is_held: false,
            });
        }
        let children = nodes[0].children.len();
        nodes[0].borrowers = Turns::of(children);
        let mut by_address: Vec<(u32, usize)> = hosts
            .iter()
            .filter_map(|(address, class)| Some((*address, nodes[class + 1].leaf?)))
            .collect();
        by_address.sort_unstable();
        let has_timer = leaves.iter().any(|leaf| leaf.qdisc.next_timer().is_some());
        let mut tree = Self {
            rows: core::array::from_fn(|_| Turns::of(nodes.len())),
            waits: EventQueue::new(nodes.len() + leaves.len()),
            timers: has_timer.then(|| EventQueue::new(leaves.len())),
            nodes,
            leaves,
            hosts: by_address,
            packets: 0,
            bytes: 0,
        };
        for leaf in 0..tree.leaves.len() {
            tree.note_timer(leaf);
        }
        tree
    }

    /// The discipline of a packet.
    fn leaf_of(&self, packet: &P) -> usize {
        let flow = packet.flow();
        let of = |address| self.hosts.binary_search_by_key(&address, |of| of.0).ok();
        let found = of(flow.destination).or_else(|| of(flow.source));
        found.map_or(0, |index| self.hosts[index].1)
    }

    /// Lets a discipline act, and notes what it holds afterwards.
    fn with<T>(&mut self, leaf: usize, act: impl FnOnce(&mut BoxedQdisc<P>) -> T) -> T {
        let qdisc = &mut self.leaves[leaf].qdisc;
        let before = (qdisc.packets(), qdisc.bytes());
        let out = act(qdisc);
        self.packets = self.packets + qdisc.packets() - before.0;
        self.bytes = self.bytes + qdisc.bytes() - before.1;
        self.note_timer(leaf);
        out
    }

    fn note_timer(&mut self, leaf: usize) {
        if let Some(timers) = &mut self.timers {
            let due = self.leaves[leaf].qdisc.next_timer();
            timers.set(leaf, due.unwrap_or(Time::MAX));
        }
    }

    /// A discipline may have packets now, or none.
    fn note_backlog(&mut self, leaf: usize) {
        let Leaf {
            qdisc,
            node,
            is_held,
            ..
        } = &self.leaves[leaf];
        let (node, has_packets) = (*node, qdisc.packets() > 0 && !*is_held);
        if has_packets != self.nodes[node].active {
            if has_packets {
                self.activate(node);
            } else {
                self.deactivate(node);
            }
        }
    }

    fn activate(&mut self, node: usize) {
        self.nodes[node].active = true;
        self.link_up(node);
    }

    fn deactivate(&mut self, node: usize) {
        self.link_down(node);
        self.nodes[node].active = false;
    }

    /// Puts an active class where it may send from.
    fn link_up(&mut self, number: usize) {
        let node = &self.nodes[number];
        let (parent, index) = (node.parent, node.index);
        match node.mode {
            Mode::Sends => self.rows[node.level].insert(number),
            Mode::Borrows => {
                self.nodes[parent].borrowers.insert(index);
                if !self.nodes[parent].active {
                    self.activate(parent);
                }
            }
            Mode::Waits => {}
        }
    }

    /// Takes an active class from where it may send from.
    fn link_down(&mut self, number: usize) {
        let node = &self.nodes[number];
        let (parent, index) = (node.parent, node.index);
        match node.mode {
            Mode::Sends => self.rows[node.level].remove(number),
            Mode::Borrows => {
                self.nodes[parent].borrowers.remove(index);
                if self.nodes[parent].borrowers.members == 0 {
                    self.deactivate(parent);
                }
            }
            Mode::Waits => {}
        }
    }

    /// Changes the mode of a class if its buckets say so. `now`: when they were filled.
    fn follow_buckets(&mut self, number: usize, is_due: bool, now: Time) {
        let node = &self.nodes[number];
        let (mode, missing) = match (node.ceil.tokens, node.rate.tokens) {
            (ceil, _) if ceil < 0 => (Mode::Waits, -ceil),
            (_, rate) if rate < 0 => (Mode::Borrows, -rate),
            _ => (Mode::Sends, 0),
        };
        if mode == node.mode && !is_due {
            return;
        }
        let due = match mode {
            Mode::Sends => Time::MAX,
            _ => now.saturating_add(Duration::from_nanos(missing as u64)),
        };
        self.waits.set(number, due);
        if mode != node.mode {
            let active = node.active;
            if active {
                self.link_down(number);
            }
            self.nodes[number].mode = mode;
            if active {
                self.link_up(number);
            }
        }
    }

    /// Makes the changes that are due.
    fn follow_time(&mut self, now: Time) {
        let next = now.saturating_add(Duration::from_nanos(1));
        while let (Some(index), _) = self.waits.first_before(next) {
            if let Some(leaf) = index.checked_sub(self.nodes.len()) {
                self.release(leaf);
                continue;
            }
            self.nodes[index].fill(now);
            self.follow_buckets(index, true, now);
        }
    }

    /// A held discipline may have a packet to send.
    fn release(&mut self, leaf: usize) {
        self.waits.set(self.nodes.len() + leaf, Time::MAX);
        self.leaves[leaf].is_held = false;
        self.note_backlog(leaf);
    }

    /// The discipline whose turn it is among the classes that send or borrow from this level.
    fn turn(&mut self, level: usize) -> Option<usize> {
        let row = &mut self.rows[level];
        let top = match row.current() {
            Some(node) => node,
            None => {
                row.turn = 0;
                row.current()?
            }
        };
        let mut node = top;
        loop {
            if let Some(leaf) = self.nodes[node].leaf {
                return Some(leaf);
            }
            match self.nodes[node].borrowers.current() {
                Some(index) => node = self.nodes[node].children[index],
                // All below had their turns: the next class above is on.
                None => {
                    self.nodes[node].borrowers.turn = 0;
                    if node == top {
                        self.rows[level].turn += 1;
                        return self.turn(level);
                    }
                    let (parent, index) = (self.nodes[node].parent, self.nodes[node].index);
                    self.nodes[parent].borrowers.turn = index + 1;
                    node = parent;
                }
            }
        }
    }

    /// The turn of a discipline is over.
    fn end_turn(&mut self, leaf: usize, level: usize) {
        let node = self.leaves[leaf].node;
        let parent = self.nodes[node].parent;
        match level {
            0 => self.rows[0].turn = node + 1,
            _ => self.nodes[parent].borrowers.turn = self.nodes[node].index + 1,
        }
    }

    /// Charges the classes of a packet that was sent with the tokens of this level.
    fn charge(&mut self, leaf: usize, level: usize, bytes: u32, now: Time) {
        let mut number = self.leaves[leaf].node;
        while number != 0 {
            let node = &mut self.nodes[number];
            node.fill(now);
            let cost = |bucket: &Bucket| nanos(bucket.rate.tx_time(bytes.into()));
            // A class that borrowed keeps its own tokens.
            if node.level >= level {
                node.rate.tokens -= cost(&node.rate);
            }
            node.ceil.tokens -= cost(&node.ceil);
            number = node.parent;
        }
        let mut number = self.leaves[leaf].node;
        while number != 0 {
            self.follow_buckets(number, false, now);
            number = self.nodes[number].parent;
        }
    }
}

impl Node {
    fn new(parent: usize, level: usize, index: usize, rate: Rate, ceil: Rate, burst: u64) -> Self {
        Self {
            parent,
            level,
            index,
            children: Vec::new(),
            rate: Bucket::new(rate, burst),
            ceil: Bucket::new(ceil, burst),
            filled: Time::ZERO,
            mode: Mode::Sends,
            active: false,
            borrowers: Turns::default(),
            leaf: None,
        }
    }

    fn fill(&mut self, now: Time) {
        let since = nanos(now.saturating_since(self.filled));
        self.rate.fill(since);
        self.ceil.fill(since);
        self.filled = now;
    }
}

impl<P: Packet> Qdisc<P> for Htb<P> {
    fn enqueue(&mut self, packet: P, now: Time, env: &mut Environment<P>) {
        let leaf = self.leaf_of(&packet);
        self.with(leaf, |qdisc| qdisc.enqueue(packet, now, env));
        if self.leaves[leaf].is_held {
            self.release(leaf);
        } else {
            self.note_backlog(leaf);
        }
    }

    fn dequeue(&mut self, now: Time, env: &mut Environment<P>) -> Option<P> {
        self.follow_time(now);
        let mut level = 0;
        while level <= TOP {
            if self.rows[level].members == 0 {
                level += 1;
                continue;
            }
            let leaf = self.turn(level)?;
            let Some(packet) = self.with(leaf, |qdisc| qdisc.dequeue(now, env)) else {
                let Leaf { qdisc, is_held, .. } = &mut self.leaves[leaf];
                if qdisc.packets() > 0 {
                    *is_held = true;
                    let ready = qdisc.ready_at().unwrap_or(Time::MAX);
                    let soonest = now.saturating_add(Duration::from_nanos(1));
                    self.waits.set(self.nodes.len() + leaf, ready.max(soonest));
                }
                self.note_backlog(leaf);
                continue;
            };
            let of = &mut self.leaves[leaf];
            of.deficits[level] -= i64::from(packet.bytes());
            if of.deficits[level] < 0 {
                of.deficits[level] += of.quantum;
                self.end_turn(leaf, level);
            }
            self.note_backlog(leaf);
            self.charge(leaf, level, packet.bytes(), now);
            return Some(packet);
        }
        None
    }

    fn packets(&self) -> u64 {
        self.packets
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn next_timer(&self) -> Option<Time> {
        let timers = self.timers.as_ref()?;
        Some(timers.first_before(Time::MAX).1)
    }

    fn on_timer(&mut self, now: Time, env: &mut Environment<P>) {
        let next = now.saturating_add(Duration::from_nanos(1));
        let due = |timers: &EventQueue| timers.first_before(next).0;
        while let Some(leaf) = self.timers.as_ref().and_then(due) {
            self.with(leaf, |qdisc| qdisc.on_timer(now, env));
            self.note_backlog(leaf);
        }
    }

    fn ready_at(&self) -> Option<Time> {
        let may_send = self.rows.iter().any(|row| row.members > 0);
        (!may_send).then(|| self.waits.first_before(Time::MAX).1)
    }

    fn is_classful(&self) -> bool {
        true
    }

    fn inner_queues(&self) -> &'static [&'static str] {
        self.leaves
            .first()
            .map_or(&[], |leaf| leaf.qdisc.inner_queues())
    }
}

/// A tree as the discipline of a link.
pub fn boxed<P: Packet + Send + 'static>(
    classes: &[Class],
    burst: u64,
    disciplines: Vec<BoxedQdisc<P>>,
    hosts: &[(u32, usize)],
) -> BoxedQdisc<P> {
    Box::new(Htb::new(classes, burst, disciplines, hosts))
}
