//! Measurements of a run and its results: the same code for every backend.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`scope`] | the links, queues and flows to measure, as plain data |
//! | [`probe`] | measures a queue, packet by packet |
//! | [`meter`] | measures a flow |
//! | [`interval`] | the measurements since each of several readers last looked |
//! | [`series`] | the state of queues and flows at the end of every bin |
//! | [`summary`] | computes the result from the measurements |
//! | [`result`] | the result of a run: figures for the summary, recorded tables |
//! | [`flow`] | the figures of one flow |
//! | [`table`] | recorded tables: columns of numbers |
//! | [`metrics`] | the registry: every figure's name, unit, words and key in the result |
//! | [`groups`] | the flows of a traffic group together |
//! | [`fairness`] | fairness between flows |
//! | `percentile` | computes percentiles, in memory for the range of values |
//! | [`distribution`] | the percentiles that a result has; the recorded histogram |
//! | [`delays`] | distributions of delays, in memory that does not grow with the run |
//! | [`cell`] | the figures of a Wi-Fi cell besides those of its queues |
//! | [`jitter`], [`emodel`] | the jitter of datagrams, the voice quality of a call |
//! | [`loss_events`] | flows that lose together |
//! | [`playback`] | the experience of a video player |

pub mod cell;
pub mod delays;
pub mod distribution;
pub mod emodel;
pub mod fairness;
pub mod flow;
pub mod groups;
pub mod interval;
pub mod jitter;
pub mod loss_events;
pub mod meter;
pub mod metrics;
mod percentile;
pub mod playback;
pub mod probe;
pub mod qoo;
pub mod result;
pub mod scope;
pub mod series;
pub mod summary;
pub mod table;
