//! Percentiles of many values, from a histogram whose memory depends on the range of its values.
//!
//! Below 2048 units every bucket is one unit wide. Above, each octave has 1024 buckets, which are at most 0.1 % wide. Only the buckets from the
//! smallest value to the largest are stored: thousands of flows, each with delays within an octave or two, take 4 to 8
//! kB each.

/// Buckets per octave, as a power of two.
const BUCKETS_PER_OCTAVE_LOG2: u32 = 10;
/// The stored buckets begin and end at a multiple of this.
const CHUNK: usize = 128;

/// Counts of whole numbers.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// The unit, as a power of two.
    unit: u32,
    /// Number of the first stored bucket.
    first: usize,
    counts: Vec<u32>,
    n: u64,
}

impl Histogram {
    /// An empty histogram. `unit`: the width of the smallest bucket, as a power of two.
    pub const fn new(unit: u32) -> Self {
        Self {
            unit,
            first: 0,
            counts: Vec::new(),
            n: 0,
        }
    }

    /// The number of values.
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// Adds a value.
    #[inline(always)]
    pub fn record(&mut self, value: u64) {
        let bucket = self.bucket(value);
        self.n += 1;
        // A bucket before the first one wraps to an index beyond the end.
        match self.counts.get_mut(bucket.wrapping_sub(self.first)) {
            Some(count) => *count = count.saturating_add(1),
            None => self.count_beyond(bucket),
        }
    }

    #[cold]
    fn count_beyond(&mut self, bucket: usize) {
        self.keep(bucket, bucket);
        self.counts[bucket - self.first] += 1;
    }

    /// Adds a value `n` times.
    pub fn record_many(&mut self, value: u64, n: u64) {
        let bucket = self.bucket(value);
        self.n += n;
        self.keep(bucket, bucket);
        let count = &mut self.counts[bucket - self.first];
        *count = count.saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
    }

    /// Makes room for these buckets and all between them.
    fn keep(&mut self, from: usize, to: usize) {
        let kept = !self.counts.is_empty();
        let first = from / CHUNK * CHUNK;
        let first = if kept { first.min(self.first) } else { first };
        let end = (to / CHUNK + 1) * CHUNK;
        let mut counts = vec![0; end.max(self.first + self.counts.len()) - first];
        if kept {
            counts[self.first - first..][..self.counts.len()].copy_from_slice(&self.counts);
        }
        (self.first, self.counts) = (first, counts);
    }

    /// Adds all values of another histogram with the same unit.
    pub fn add(&mut self, other: &Self) {
        if other.counts.is_empty() {
            return;
        }
        self.keep(other.first, other.first + other.counts.len() - 1);
        let own = &mut self.counts[other.first - self.first..];
        for (count, more) in own.iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*more);
        }
        self.n += other.n;
    }

    /// The percentile of a share from 0 to 1, by the nearest rank: the smallest bucket that at least this share of all
    /// values does not exceed, by its upper edge. There is no interpolation. 0 if the histogram is empty.
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = ((share * self.n as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let reaches = |(_, count): &(u64, u64)| {
            seen += count;
            seen >= rank
        };
        self.buckets().find(reaches).map_or(0, |(edge, _)| edge)
    }

    /// The non-empty buckets: upper edge and count, in increasing order.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = (self.first..).zip(&self.counts);
        let counted = counts.filter(|(_, count)| **count > 0);
        counted.map(|(bucket, count)| (self.edge(bucket), u64::from(*count)))
    }

    /// The largest value of the bucket that contains `value`.
    pub fn upper_edge(&self, value: u64) -> u64 {
        self.edge(self.bucket(value))
    }

    #[inline(always)]
    const fn bucket(&self, value: u64) -> usize {
        let units = value >> self.unit;
        let octave =
            (units | ((2 << BUCKETS_PER_OCTAVE_LOG2) - 1)).ilog2() - BUCKETS_PER_OCTAVE_LOG2;
        ((octave as usize) << BUCKETS_PER_OCTAVE_LOG2) + (units >> octave) as usize
    }

    const fn edge(&self, bucket: usize) -> u64 {
        let octave = (bucket >> BUCKETS_PER_OCTAVE_LOG2).saturating_sub(1);
        let within = (bucket - (octave << BUCKETS_PER_OCTAVE_LOG2)) as u64;
        ((within + 1) << (octave as u32 + self.unit)) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 1 to 10, the smallest value that half do not exceed is 5; a tenth, 1; 95 %, 10.
    #[test]
    fn a_percentile_is_the_smallest_value_that_the_share_does_not_exceed() {
        let mut histogram = Histogram::new(0);
        (1..=10).for_each(|value| histogram.record(value));
        let at = [0.0, 0.1, 0.5, 0.95, 1.0].map(|share| histogram.quantile(share));
        assert_eq!(at, [1, 1, 5, 10, 10]);
    }

    /// With a unit of 1: exact below 2048, then two values per bucket, and so on. Edges and buckets agree.
    #[test]
    fn a_bucket_is_at_most_a_thousandth_wide() {
        for unit in [0, 10] {
            let histogram = Histogram::new(unit);
            let mut last = None;
            for value in (0..1 << 24).step_by(911) {
                let edge = histogram.upper_edge(value);
                let width = (1 << unit).max(value >> BUCKETS_PER_OCTAVE_LOG2);
                assert!(edge >= value && edge - value < width, "{value}: {edge}");
                assert_eq!(histogram.upper_edge(edge), edge);
                assert_ne!(Some(histogram.upper_edge(edge + 1)), last);
                last = Some(edge);
            }
        }
        let exact = Histogram::new(0);
        let edges = [0, 2047, 2048, 2049, 4096, 4099].map(|value| exact.upper_edge(value));
        assert_eq!(edges, [0, 2047, 2049, 2049, 4099, 4099]);
    }

    #[test]
    fn values_are_counted_in_whatever_order_they_come() {
        let mut histogram = Histogram::new(0);
        for value in [1000, 5, 100_000, 5, 0] {
            histogram.record(value);
        }
        let buckets: Vec<_> = histogram.buckets().collect();
        assert_eq!(buckets, [(0, 1), (5, 2), (1000, 1), (100_031, 1)]);
        let at = [0.0, 0.2, 0.5, 0.61, 1.0].map(|share| histogram.quantile(share));
        assert_eq!(at, [0, 0, 5, 1000, 100_031]);
        assert_eq!(Histogram::new(0).quantile(0.5), 0);
    }

    #[test]
    fn values_of_two_histograms_add_up() {
        let (mut one, mut other) = (Histogram::new(0), Histogram::new(0));
        one.record(3000);
        for value in [7, 3000, 90_000] {
            other.record(value);
        }
        one.add(&other);
        one.add(&Histogram::new(0));
        let buckets: Vec<_> = one.buckets().collect();
        assert_eq!((one.n(), buckets.len()), (4, 3));
        assert_eq!(buckets[1], (3001, 2));
        let mut empty = Histogram::new(0);
        empty.add(&other);
        assert_eq!(empty.n(), 3);
    }

    /// Delays from 100 to 300 ms in units of a microsecond: 1624 buckets of the octaves from 65 ms on.
    #[test]
    fn memory_follows_the_range_of_values() {
        let mut histogram = Histogram::new(10);
        for value in (100..=300).map(|ms| ms * 1_000_000) {
            histogram.record(value);
        }
        assert!(histogram.counts.len() < 1900, "{}", histogram.counts.len());
    }
}
