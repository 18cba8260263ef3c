//! The figures of runs as columns, read from their elements of summary.json: a row per run and queue, a column per
//! metric of queues, of inner queues, of stations and of groups of flows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hint::black_box;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::metrics::{METRICS, Metric, Over};

/// The ways of a link.
const WAYS: [&str; 2] = ["down", "up"];

/// A part of a summary; the keys of an object keep their order.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Part {
    None,
    Number(f64),
    Text(String),
    List(Vec<Part>),
    Object(Vec<(String, Part)>),
}

/// Figures in columns, NaN where a run has none.
pub struct Figures {
    /// The run and the queue of each row: `down`, `up`, of several links `home/down`.
    pub rows: Vec<(usize, String)>,
    /// The columns by name, in the order of tables.
    pub columns: Vec<(String, Vec<f64>)>,
}

/// Collects the figures of runs, one after another.
#[derive(Debug, Default)]
pub struct Collector {
    runs: usize,
    /// The queues of all runs.
    queues: Vec<String>,
    /// The inner queues that packets came to.
    used: Vec<String>,
    /// The run and the queue of each row. A run of several links also has rows of the first one under test, which count
    /// if other runs have only these.
    rows: Vec<(usize, String)>,
    /// The queues themselves, which have no name; inner queues; stations; groups.
    of: [Vec<Owner>; 4],
}

/// An element with figures in several runs: its name, and its columns by the number of the metric, NaN behind their end.
type Owner = (String, BTreeMap<usize, Vec<f64>>);

/// The places in [`Collector::of`].
const QUEUES: usize = 0;
const INNER_QUEUES: usize = 1;
const STATIONS: usize = 2;
const GROUPS: usize = 3;

impl Collector {
    /// Adds a run, an element of `runs` in summary.json.
    pub fn add(&mut self, summary: &Part) {
        let run = Run::new(summary);
        for (name, queue) in &run.queues {
            note(&mut self.queues, name);
            for (name, inner) in queue.entries("queues") {
                if inner.number("delivered_packets") + inner.number("dropped_packets") > 0.0 {
                    note(&mut self.used, name);
                }
            }
        }
        let names = run.queues.iter().map(|(name, _)| name.as_str());
        let of_links = names.filter(|name| name.contains('/'));
        for name in WAYS.into_iter().chain(of_links) {
            if let Some(queue) = run.queue(name) {
                self.add_row(&run, name, queue);
            }
        }
        self.runs += 1;
    }

    fn add_row(&mut self, run: &Run<'_>, name: &str, queue: &Part) {
        self.put(QUEUES, "", |metric| run.value(metric, name, queue));
        for (inner, element) in queue.entries("queues") {
            self.put(INNER_QUEUES, inner, |metric| of(metric, element));
        }
        for (place, elements) in [(STATIONS, &run.stations), (GROUPS, &run.groups)] {
            for (number, (owner, element)) in elements.iter().enumerate() {
                // Of several with one name the last one counts.
                if elements[number + 1..]
                    .iter()
                    .all(|(other, _)| other != owner)
                {
                    self.put(place, owner, |metric| of(metric, element));
                }
            }
        }
        self.rows.push((self.runs, name.to_owned()));
    }

    /// Adds the figures of an element to the next row.
    fn put(&mut self, place: usize, owner: &str, figure: impl Fn(&Metric) -> f64) {
        let owners = &mut self.of[place];
        let known = owners.iter().position(|(name, _)| name == owner);
        let known = known.unwrap_or_else(|| {
            owners.push((owner.to_owned(), BTreeMap::new()));
            owners.len() - 1
        });
        for (number, metric) in METRICS.iter().enumerate() {
            let over = match metric.over {
                Over::Run | Over::Direction | Over::Queue => QUEUES,
                Over::InnerQueue => INNER_QUEUES,
                Over::Station => STATIONS,
                Over::Group => GROUPS,
            };
            if over != place {
                continue;
            }
            let figure = figure(metric);
            // These are columns only if some run has them.
            let may_lack = place == GROUPS || (place == QUEUES && metric.name == "lost_packets");
            if !(may_lack && figure.is_nan()) {
                let column = owners[known].1.entry(number).or_default();
                column.resize(self.rows.len(), f64::NAN);
                column.push(figure);
            }
        }
    }

    /// The figures of all runs.
    pub fn figures(self) -> Figures {
        let rank = |queue: &String| self.queues.iter().position(|name| name == queue);
        let of_row =
            |(row, (run, queue)): (usize, &(usize, String))| Some((*run, rank(queue)?, row));
        let mut rows: Vec<_> = self.rows.iter().enumerate().filter_map(of_row).collect();
        rows.sort_unstable();
        let mut columns = Vec::new();
        let mut add = |prefix: &str, own: &BTreeMap<usize, Vec<f64>>| {
            for (number, column) in own {
                let figure =
                    |(_, _, row): &(usize, usize, usize)| *column.get(*row).unwrap_or(&f64::NAN);
                columns.push((
                    format!("{prefix}{}", METRICS[*number].name),
                    rows.iter().map(figure).collect(),
                ));
            }
        };
        let [queues, inner_queues, stations, groups] = &self.of;
        for (_, own) in queues {
            add("", own);
        }
        for name in &self.used {
            for (_, own) in inner_queues.iter().filter(|(other, _)| other == name) {
                add(&format!("queue.{name}."), own);
            }
        }
        for (name, own) in stations {
            add(&format!("station.{name}."), own);
        }
        for (title, own) in groups {
            // A group is called without its direction if no other has its name.
            let (name, way) = title.rsplit_once('.').expect("a group has a direction");
            let is_other = |(other, _): &Owner| {
                other
                    .rsplit_once('.')
                    .is_some_and(|(also, another)| also == name && another != way)
            };
            let called = if groups.iter().any(is_other) {
                title
            } else {
                name
            };
            add(&format!("{called}."), own);
        }
        let named = |(run, rank, _): &(usize, usize, usize)| (*run, self.queues[*rank].clone());
        Figures {
            rows: rows.iter().map(named).collect(),
            columns,
        }
    }
}

/// Adds a name to those known.
fn note(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

/// The parts of a run that have figures, by name.
struct Run<'p> {
    summary: &'p Part,
    queues: Vec<(String, &'p Part)>,
    stations: Vec<(String, &'p Part)>,
    /// Those that tables show, a total in place of its groups; the name with the direction.
    groups: Vec<(String, &'p Part)>,
}

impl<'p> Run<'p> {
    fn new(summary: &'p Part) -> Self {
        let links = summary.entries("links");
        let mut queues = Vec::new();
        let mut stations = Vec::new();
        for (link, of_link) in links {
            let called = |name: &str| {
                if links.len() < 2 {
                    name.to_owned()
                } else {
                    format!("{link}/{name}")
                }
            };
            queues.extend(
                WAYS.iter()
                    .filter_map(|way| Some((called(way), of_link.get(way)?))),
            );
            let own = of_link.entries("stations");
            stations.extend(own.iter().map(|(name, station)| (called(name), station)));
        }
        let shown = summary
            .items("groups")
            .filter(|group| group.get("total").is_none());
        let mut groups: Vec<_> = shown
            .map(|group| {
                (
                    format!("{}.{}", group.text("name"), group.text("direction")),
                    group,
                )
            })
            .collect();
        groups.sort_by(|(_, one), (_, other)| {
            one.number("traffic").total_cmp(&other.number("traffic"))
        });
        Self {
            summary,
            queues,
            stations,
            groups,
        }
    }

    /// The queue of a name; `down` and `up` are those of the first link under test, of several too.
    fn queue(&self, name: &str) -> Option<&'p Part> {
        match name.rsplit_once('/') {
            Some((link, way)) => self.summary.get("links")?.get(link)?.get(way),
            None => self.summary.get("bottleneck")?.get(name),
        }
    }

    /// A metric of a queue, of all flows in its direction, or of the run.
    fn value(&self, metric: &Metric, name: &str, queue: &Part) -> f64 {
        let way = name.rsplit('/').next().unwrap_or_default();
        match metric.over {
            _ if metric.name == "jain_goodput" => self.fairness(way),
            Over::Run => of(metric, self.summary),
            Over::Queue => of(metric, queue),
            // Flows belong to no single one of several links.
            _ if name.contains('/') => f64::NAN,
            _ => exact_sum(self.flows(way).map(|flow| of(metric, flow))),
        }
    }

    fn flows(&self, way: &str) -> impl Iterator<Item = &'p Part> {
        self.summary
            .items("flows")
            .filter(move |flow| flow.text("direction") == way)
    }

    /// Jain's index over the goodput of the TCP flows in a direction; that of the run if no TCP flow has another one.
    fn fairness(&self, way: &str) -> f64 {
        let groups = self
            .summary
            .items("groups")
            .filter(|group| group.get("lost_packets").is_none());
        let over_tcp: BTreeSet<_> = groups
            .map(|group| (group.text("direction"), group.number("traffic") as u64))
            .collect();
        if over_tcp.iter().all(|(other, _)| *other == way) {
            return self.summary.number("jain_goodput");
        }
        let flows = self
            .flows(way)
            .filter(|flow| over_tcp.contains(&(way, flow.number("traffic") as u64)));
        let rates: Vec<f64> = flows.map(|flow| flow.number("goodput_bps")).collect();
        let squares = rates.len() as f64 * exact_sum(rates.iter().map(|rate| rate * rate));
        #[expect(
            clippy::disallowed_methods,
            reason = "the power that Python has on the same machine, which may differ from the product in the last digit"
        )]
        let square = exact_sum(rates.into_iter()).powf(black_box(2.0));
        if squares > 0.0 {
            square / squares
        } else {
            f64::NAN
        }
    }
}

/// The number that an element has, in the summary's unit; NaN if it has none.
fn of(metric: &Metric, element: &Part) -> f64 {
    if metric
        .not_of
        .is_some_and(|kind| element.text("kind") == kind)
    {
        return f64::NAN;
    }
    let total = exact_sum(metric.at.iter().map(|path| element.number(path)));
    if metric.zero_is_none && total == 0.0 {
        f64::NAN
    } else {
        total
    }
}

impl Part {
    fn get(&self, key: &str) -> Option<&Self> {
        let Self::Object(entries) = self else {
            return None;
        };
        let (_, part) = entries.iter().find(|(known, _)| known == key)?;
        Some(part)
    }

    fn entries(&self, key: &str) -> &[(String, Self)] {
        if let Some(Self::Object(entries)) = self.get(key) {
            entries
        } else {
            &[]
        }
    }

    fn items(&self, key: &str) -> impl Iterator<Item = &Self> {
        let items = if let Some(Self::List(items)) = self.get(key) {
            items
        } else {
            &[][..]
        };
        items.iter()
    }

    fn text(&self, key: &str) -> &str {
        if let Some(Self::Text(text)) = self.get(key) {
            text
        } else {
            ""
        }
    }

    /// The number at dotted keys; NaN if there is none.
    fn number(&self, path: &str) -> f64 {
        let found = path.split('.').try_fold(self, |part, key| part.get(key));
        if let Some(Self::Number(number)) = found {
            *number
        } else {
            f64::NAN
        }
    }
}

/// The sum of numbers, rounded once, as Python's `math.fsum` has it (Shewchuk 1997).
fn exact_sum(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut parts: Vec<f64> = Vec::new();
    for mut number in numbers {
        let mut kept = 0;
        for at in 0..parts.len() {
            let (large, small) = if number.abs() < parts[at].abs() {
                (parts[at], number)
            } else {
                (number, parts[at])
            };
            number = large + small;
            let rest = small - (number - large);
            if rest != 0.0 {
                parts[kept] = rest;
                kept += 1;
            }
        }
        parts.truncate(kept);
        parts.push(number);
    }
    let Some(mut sum) = parts.pop() else {
        return 0.0;
    };
    while let Some(part) = parts.pop() {
        let before = sum;
        sum += part;
        let rest = part - (sum - before);
        if rest != 0.0 {
            // Half of a unit in the last place: what is left decides.
            if parts
                .last()
                .is_some_and(|left| (rest < 0.0) == (*left < 0.0))
            {
                let other = sum + 2.0 * rest;
                if 2.0 * rest == other - sum {
                    sum = other;
                }
            }
            break;
        }
    }
    sum
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Part;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a part of a summary")
            }

            fn visit_unit<E>(self) -> Result<Part, E> {
                Ok(Part::None)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Part, E> {
                Ok(Part::Number(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Part, E> {
                Ok(Part::Number(value as f64))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Part, E> {
                Ok(Part::Number(value as f64))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Part, E> {
                Ok(Part::Number(value))
            }

            fn visit_str<E>(self, text: &str) -> Result<Part, E> {
                Ok(Part::Text(text.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Part, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(Part::List(items))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Part, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Part::Object(entries))
            }
        }

        from.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Added one after another, 0.1 ten times is 0.9999999999999999, and 1 is lost beside 1e100.
    #[test]
    fn a_sum_is_rounded_once() {
        assert_eq!(exact_sum([0.1; 10].into_iter()), 1.0);
        assert_eq!(exact_sum([1e100, 1.0, -1e100].into_iter()), 1.0);
        // Halfway between two numbers, and a little more.
        assert_eq!(exact_sum([1e16, 1.0, 1e-16].into_iter()), 1e16 + 2.0);
        assert_eq!(exact_sum([].into_iter()), 0.0);
        assert!(exact_sum([1.0, f64::NAN].into_iter()).is_nan());
    }
}
