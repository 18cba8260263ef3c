//! What is measured in a run, and what a run gives: the same code for every backend.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`scope`] | what is measured in a run, as plain data: links, queues, flows |
//! | [`probe`] | what is measured at a queue, packet by packet |
//! | [`meter`] | what is measured of a flow |
//! | [`series`] | queues and flows at the end of every bin |
//! | [`summary`] | from what was measured to the result |
//! | [`result`] | what a run gives: figures for the summary, recorded tables |
//! | [`groups`] | the flows of a traffic group together |
//! | [`distribution`] | what a quantile is; histograms |
//! | [`delays`] | distributions of delays, in memory that does not grow with the run |
//! | `histogram` | buckets of at most 0.1 %, in memory for the values that there are |
//! | [`jitter`], [`emodel`] | how steadily datagrams come, how good a call sounds |
//! | [`loss_events`] | which flows lose together |
//! | [`playback`] | what a player of video saw |
//! | [`pcapng`] | captures of packets, as every backend writes them |

pub mod delays;
pub mod distribution;
pub mod emodel;
pub mod groups;
mod histogram;
pub mod jitter;
pub mod loss_events;
pub mod meter;
pub mod pcapng;
pub mod playback;
pub mod probe;
pub mod result;
pub mod scope;
pub mod series;
pub mod summary;
