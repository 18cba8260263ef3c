//! Figures of all flows of a traffic group together, for every backend.

use serde::Serialize;

use crate::distribution::Spread;
use crate::fairness::jain;
use crate::flow::{Flow, Video};

/// The figures of a traffic group's flows in one direction.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Group {
    /// Its index in `traffic` of experiment.json.
    pub traffic: usize,
    /// Its name in tables and figures: the entry's `name`, or its kind (with the group's number if several groups have this
    /// kind).
    pub name: String,
    /// Of traffic with a `total`, as `count` gives it: the name of the group of all its flows, one per direction behind the
    /// others, which tables and figures show in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<String>,
    /// The kind of traffic.
    pub kind: &'static str,
    /// The direction of their data.
    pub direction: &'static str,
    /// The number of flows.
    pub flows: usize,
    /// The sum of their goodput.
    pub goodput_bps: f64,
    /// Jain's index of their goodput; `None` if there is none.
    pub jain_goodput: Option<f64>,
    /// Distributions over the values of all flows together.
    #[serde(flatten)]
    pub pooled: Pooled,
    /// The sum of their lost datagrams or echo requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_packets: Option<u64>,
    /// The mean of their opinion scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mos: Option<f64>,
    /// Quality of Outcome (draft-ietf-ippm-qoo), if it is asked for: the least of the scores of the 99th and 99.9th
    /// percentile of the latency, of loss, and of the goodput per flow. Latency is the RTT, or the one-way delay of
    /// datagrams with half of the base RTT, after the warm-up. Loss is that of the datagrams after the warm-up, as for
    /// `mos`; of pings the share of echo requests without a reply and of TCP that of its packets which queues dropped, both
    /// over the whole run. The requirements are keys of the traffic; the defaults
    /// are the draft's example, 100 to 200 ms, 200 to 300 ms and 0.1 to 2 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qoo: Option<f64>,
    /// The figures of their players: sums, except that `media_rate_bps` is the mean over segments and `startup_ms` the mean
    /// over players.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<Video>,
}

/// Distributions over the values of several flows, in milliseconds. A flow with more values has more weight.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Pooled {
    /// As of a flow, over all values of the group's flows together: a flow with more values has more weight.
    pub rtt_ms: Spread,
    #[expect(missing_docs, reason = "as of a flow")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_way_ms: Option<Spread>,
    #[expect(missing_docs, reason = "as of a flow")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_ms: Option<Spread>,
    #[expect(missing_docs, reason = "as of a flow")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_load_ms: Option<Spread>,
    #[expect(missing_docs, reason = "as of a flow")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_ms: Option<Spread>,
}

/// The groups of a run's flows, which are in the order of the file, and behind them the totals, each of the flows of
/// several groups in one direction. `pool` combines the values of flows, given their
/// numbers, and has their Quality of Outcome.
pub fn groups(
    flows: &[Flow],
    mut pool: impl FnMut(&[usize]) -> (Pooled, Option<f64>),
) -> Vec<Group> {
    let numbers: Vec<usize> = (0..flows.len())
        .filter(|number| flows[*number].has_data())
        .collect();
    let key = |number: &usize| (flows[*number].traffic, flows[*number].direction);
    let together = |one: &usize, next: &usize| key(one) == key(next);
    let mut of = |members: &[usize]| group(flows, members, pool(members));
    let mut groups: Vec<Group> = numbers.chunk_by(together).map(&mut of).collect();
    let mut totals: Vec<((&str, &str), Vec<usize>)> = Vec::new();
    for (number, flow) in flows.iter().enumerate() {
        let Some(total) = &flow.total else { continue };
        let key = (total.as_str(), flow.direction);
        match totals.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(number),
            None => totals.push((key, vec![number])),
        }
    }
    groups.extend(totals.into_iter().map(|((name, _), members)| Group {
        name: name.into(),
        total: None,
        ..of(&members)
    }));
    groups
}

fn group(flows: &[Flow], members: &[usize], (pooled, qoo): (Pooled, Option<f64>)) -> Group {
    let first = &flows[members[0]];
    let members = members.iter().map(|member| &flows[*member]);
    let goodputs = members.clone().map(|flow| flow.goodput_bps);
    Group {
        traffic: first.traffic,
        name: first.name.clone(),
        total: first.total.clone(),
        kind: first.kind,
        direction: first.direction,
        flows: members.len(),
        goodput_bps: goodputs.clone().sum(),
        jain_goodput: jain(goodputs),
        pooled,
        lost_packets: sum(members.clone().filter_map(|flow| flow.lost_packets)),
        mos: mean(members.clone().filter_map(|flow| flow.mos)),
        qoo,
        video: video(members.filter_map(|flow| flow.video.as_deref().copied())),
    }
}

fn sum(values: impl Iterator<Item = u64> + Clone) -> Option<u64> {
    values.clone().next()?;
    Some(values.sum())
}

fn mean(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let n = values.clone().count();
    (n > 0).then(|| values.sum::<f64>() / n as f64)
}

fn video(players: impl Iterator<Item = Video> + Clone) -> Option<Video> {
    players.clone().next()?;
    let sum = |of: fn(&Video) -> u64| players.clone().map(|player| of(&player)).sum();
    let segments: u64 = sum(|player| player.segments);
    let rates = players.clone().filter_map(|player| {
        let rate = player.media_rate_bps?;
        Some(rate * player.segments as f64)
    });
    Some(Video {
        segments,
        media_rate_bps: (segments > 0).then(|| rates.sum::<f64>() / segments as f64),
        switches: sum(|player| player.switches),
        startup_ms: mean(players.clone().filter_map(|player| player.startup_ms)),
        stalls: sum(|player| player.stalls),
        stalled_ms: players.map(|player| player.stalled_ms).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(traffic: usize, direction: &'static str, goodput_bps: f64) -> Flow {
        Flow {
            traffic,
            name: format!("group {traffic}"),
            direction,
            goodput_bps,
            ..Flow::default()
        }
    }

    /// Jain's index of 1, 1, 1, 0 is 3² / (4 · 3) = 0.75.
    #[test]
    fn flows_of_a_group_are_taken_together_each_way() {
        let mut flows = vec![flow(0, "down", 1e6); 3];
        flows.push(flow(0, "down", 0.0));
        flows.push(flow(0, "up", 5e6));
        flows.push(flow(1, "up", 0.0));
        let mut asked = Vec::new();
        let groups = groups(&flows, |members| {
            asked.push(members.to_vec());
            Default::default()
        });
        assert_eq!(asked, [vec![0, 1, 2, 3], vec![4], vec![5]]);
        let of = |group: &Group| (group.flows, group.goodput_bps, group.jain_goodput);
        assert_eq!(of(&groups[0]), (4, 3e6, Some(0.75)));
        assert_eq!(of(&groups[1]), (1, 5e6, Some(1.0)));
        assert_eq!(of(&groups[2]), (1, 0.0, None));
        assert_eq!(
            (groups[1].name.as_str(), groups[1].direction),
            ("group 0", "up")
        );
    }

    #[test]
    fn totals_follow_the_groups_and_have_the_flows_of_all_their_groups_each_way() {
        let of = |traffic, direction, total: Option<&str>| Flow {
            total: total.map(str::to_owned),
            ..flow(traffic, direction, 1e6)
        };
        let flows = [
            of(0, "down", Some("homes")),
            of(0, "up", Some("homes")),
            of(1, "down", None),
            of(2, "down", Some("homes")),
        ];
        let mut asked = Vec::new();
        let groups = groups(&flows, |members| {
            asked.push(members.to_vec());
            Default::default()
        });
        assert_eq!(asked[4..], [vec![0, 3], vec![1]]);
        let total = |group: &Group| (group.name.clone(), group.direction, group.goodput_bps);
        assert_eq!(total(&groups[4]), ("homes".into(), "down", 2e6));
        assert_eq!(total(&groups[5]), ("homes".into(), "up", 1e6));
        let member = |group: &Group| group.total.clone();
        assert_eq!(member(&groups[0]), Some("homes".into()));
        assert_eq!((member(&groups[2]), member(&groups[4])), (None, None));
    }

    /// 3 segments at 1 and 1 at 5 Mbit/s: 8/4 = 2 Mbit/s. Opinions of 4 and 2: 3.
    #[test]
    fn opinions_are_averaged_and_stalls_summed() {
        let player = |segments, rate, stalls| Flow {
            mos: Some(1.0 + segments as f64),
            video: Some(Box::new(Video {
                segments,
                media_rate_bps: Some(rate),
                stalls,
                ..Video::default()
            })),
            ..Flow::default()
        };
        let flows = [player(3, 1e6, 1), player(1, 5e6, 2)];
        let group = &groups(&flows, |_| Default::default())[0];
        let video = group.video.expect("both are players");
        assert_eq!((video.media_rate_bps, video.stalls), (Some(2e6), 3));
        assert_eq!((group.mos, video.startup_ms), (Some(3.0), None));
    }
}
