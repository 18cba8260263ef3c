//! Which application each kind of traffic over TCP has.

use crate::application::{Application, Identity};
use crate::kind::{Browsing, Kind, Transport};
use crate::{bulk, files, onoff, packmime_client, pages, video};

/// The application of a kind of traffic that runs over TCP; `None` for other kinds.
pub fn over_tcp(identity: &Identity, kind: &Kind, seed: u64) -> Option<Box<dyn Application>> {
    Some(match kind {
        Kind::Bulk(_) => Box::new(bulk::Bulk::new(identity)),
        Kind::Files(files) => Box::new(files::Files::new(identity, files, seed)),
        Kind::OnOff(config) => match &config.transport {
            Transport::Udp(_) => return None,
            Transport::Tcp(_, rate) => Box::new(onoff::OnOff::new(identity, config, *rate, seed)),
        },
        Kind::Web(web) => match &web.browsing {
            Browsing::PackMime(rate) => {
                Box::new(packmime_client::Browser::new(identity, *rate, seed))
            }
            Browsing::Pages(pages) => Box::new(pages::Browser::new(identity, pages, seed)),
        },
        Kind::Video(video) => Box::new(video::Player::new(identity, video)),
        Kind::Cbr(_) | Kind::Ping(_) | Kind::Voip(_) | Kind::Game | Kind::Call(_) => return None,
    })
}
