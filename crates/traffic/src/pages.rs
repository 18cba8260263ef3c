//! Browsing page by page: a document, then its page's objects over a few connections, then a pause.

use crate::kind::{Pages, exponential};
use crate::streams::Stream;
use sojourn_units::Time;

use crate::application::{Application, Connections, Id, Identity, Meter, Side};
use crate::http::{Exchanges, Progress};

/// A browser that loads page after page.
pub struct Browser {
    config: Pages,
    stop: Time,
    draws: Stream,
    exchanges: Exchanges,
    /// When the next page is opened; `None` while one is loading.
    next: Option<Time>,
    page: Page,
}

/// The page being loaded.
#[derive(Default)]
struct Page {
    began: Time,
    /// Objects not yet requested.
    unasked: u32,
    /// Objects not received yet.
    missing: u32,
    has_document: bool,
    connections: Vec<Id>,
}

impl Browser {
    /// A browser before its start.
    pub fn new(identity: &Identity, config: &Pages, seed: u64) -> Self {
        Self {
            config: config.clone(),
            stop: identity.stop,
            draws: Stream::new(seed, &format!("flow/{}/web", identity.flow)),
            exchanges: Exchanges::default(),
            next: Some(identity.start),
            page: Page::default(),
        }
    }

    fn ask(&mut self, id: Id, now: Time, connections: &mut dyn Connections) {
        self.exchanges
            .request(connections, id, self.config.request, now);
    }

    /// Opens connections while objects remain for them.
    fn spread(&mut self, now: Time, connections: &mut dyn Connections) {
        let most = if self.page.has_document {
            self.config.parallel as usize
        } else {
            1
        };
        while self.page.unasked > 0 && self.page.connections.len() < most {
            let id = connections.open(Side::Receiving);
            self.page.connections.push(id);
            self.page.unasked -= 1;
            self.ask(id, now, connections);
        }
    }

    fn on_object(
        &mut self,
        id: Id,
        now: Time,
        connections: &mut dyn Connections,
        meter: &mut dyn Meter,
    ) {
        self.page.missing -= 1;
        if self.page.missing == 0 {
            meter.page_loaded(now - self.page.began, now);
            for id in self.page.connections.drain(..) {
                connections.close(id, Side::Receiving);
            }
            let pause = exponential(self.config.think, &mut self.draws);
            self.next = Some(now + pause);
            return;
        }
        self.page.has_document = true;
        let asks_again = self.page.unasked > 0;
        self.page.unasked -= u32::from(asks_again);
        // The SYNs go before the request: to a server that takes no time it would be the answer that fills the queue
        // before the SYN-ACKs.
        self.spread(now, connections);
        if asks_again {
            self.ask(id, now, connections);
        }
    }
}

impl Application for Browser {
    fn next_timer(&self) -> Option<Time> {
        self.next.filter(|next| *next < self.stop)
    }

    fn on_timer(&mut self, now: Time, connections: &mut dyn Connections, _: &mut dyn Meter) {
        self.next = None;
        self.page = Page {
            began: now,
            unasked: self.config.objects,
            missing: self.config.objects,
            ..Page::default()
        };
        self.spread(now, connections);
    }

    fn on_arrival(
        &mut self,
        id: Id,
        side: Side,
        now: Time,
        connections: &mut dyn Connections,
        meter: &mut dyn Meter,
    ) {
        match self.exchanges.on_arrival(connections, id, side, now) {
            Some(Progress::Asked) => {
                let size = self.config.sizes.draw(&mut self.draws);
                self.exchanges.respond(connections, id, size);
            }
            Some(Progress::Answered(_)) => self.on_object(id, now, connections, meter),
            None => {}
        }
    }

    /// If a connection failed, another one requests its object.
    fn on_end(&mut self, id: Id, now: Time, connections: &mut dyn Connections, _: &mut dyn Meter) {
        let unfinished = self.exchanges.on_end(id);
        let mine = self.page.connections.iter().position(|known| *known == id);
        if let Some(at) = mine {
            self.page.connections.swap_remove(at);
            self.page.unasked += u32::from(unfinished);
            self.spread(now, connections);
        }
    }
}
