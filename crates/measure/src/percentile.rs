//! Percentiles of many values, from a histogram whose memory depends on the range of its values.
//!
//! Below 2048 units every bucket is one unit wide. Above, each octave has 1024 buckets, which are at most 0.1 % wide. Only the buckets from the
//! smallest value to the largest are stored, and few values as they are: thousands of flows, each with delays within an
//! octave or two, take 4 to 8 kB each at most.

/// Buckets per octave, as a power of two.
const BUCKETS_PER_OCTAVE_LOG2: u32 = 10;
/// The stored buckets begin and end at a multiple of this.
const CHUNK: usize = 128;
/// Values that are kept as they are, before their buckets are stored.
const FEW: usize = 128;

/// Counts of whole numbers.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// The unit, as a power of two.
    unit: u32,
    /// The buckets of the values, as long as these are few and no bucket is stored.
    few: Vec<u32>,
    /// Number of the first stored bucket.
    first: usize,
    /// The stored buckets, a multiple of [`CHUNK`].
    counts: Vec<u32>,
    n: u64,
    /// Buckets are stored from the first value on, and double when one is missing.
    doubles: bool,
}

/// Percentiles of a [`Histogram`], found in one pass over its buckets.
#[derive(Clone, Debug)]
pub struct Percentiles<'a> {
    histogram: &'a Histogram,
    /// The few buckets in increasing order.
    few: Vec<u32>,
    /// The first stored bucket that was not passed, counted from the first stored one, and the values before it.
    bucket: usize,
    before: u64,
}

impl Histogram {
    /// An empty histogram. `unit`: the width of the smallest bucket, as a power of two. It takes little memory, as one of
    /// thousands of histograms.
    pub const fn new(unit: u32) -> Self {
        Self {
            unit,
            few: Vec::new(),
            first: 0,
            counts: Vec::new(),
            n: 0,
            doubles: false,
        }
    }

    /// As [`Histogram::new`], but the stored buckets double when one is missing: for values that spread over octaves, so
    /// that growing costs little.
    pub const fn doubling(unit: u32) -> Self {
        let mut histogram = Self::new(unit);
        histogram.doubles = true;
        histogram
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
        self.count(bucket);
    }

    #[inline(always)]
    fn count(&mut self, bucket: usize) {
        // A bucket before the first one wraps to an index beyond the end.
        match self.counts.get_mut(bucket.wrapping_sub(self.first)) {
            Some(count) => *count = count.saturating_add(1),
            None => self.count_beyond(bucket),
        }
    }

    #[cold]
    fn count_beyond(&mut self, bucket: usize) {
        let are_few = self.counts.is_empty() && !self.doubles && self.few.len() < FEW;
        if are_few {
            self.few.push(bucket as u32);
            return;
        }
        self.store_few();
        self.keep(bucket, bucket);
        self.counts[bucket - self.first] += 1;
    }

    /// Stores the buckets of the few values.
    fn store_few(&mut self) {
        let few = std::mem::take(&mut self.few);
        let ends = few.iter().min().zip(few.iter().max());
        if let Some((least, most)) = ends {
            self.keep(*least as usize, *most as usize);
        }
        for bucket in few {
            self.counts[bucket as usize - self.first] += 1;
        }
    }

    /// Adds a value `n` times.
    pub fn record_many(&mut self, value: u64, n: u64) {
        let bucket = self.bucket(value);
        self.n += n;
        self.store_few();
        self.keep(bucket, bucket);
        let count = &mut self.counts[bucket - self.first];
        *count = count.saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
    }

    /// Makes room for these buckets and all between them.
    fn keep(&mut self, from: usize, to: usize) {
        let (old_first, old_end) = (self.first, self.first + self.counts.len());
        let (mut first, mut end) = (from / CHUNK * CHUNK, (to / CHUNK + 1) * CHUNK);
        if !self.counts.is_empty() {
            if old_first <= first && end <= old_end {
                return;
            }
            let spare = self.counts.len() * usize::from(self.doubles);
            first = if first < old_first {
                first.min(old_first.saturating_sub(spare))
            } else {
                old_first
            };
            end = if end > old_end {
                end.max(old_end + spare)
            } else {
                old_end
            };
        }
        let mut counts = vec![0; end - first];
        counts[old_first.max(first) - first..][..self.counts.len()].copy_from_slice(&self.counts);
        (self.first, self.counts) = (first, counts);
    }

    /// Adds all values of another histogram with the same unit.
    pub fn add(&mut self, other: &Self) {
        self.n += other.n;
        for bucket in &other.few {
            self.count(*bucket as usize);
        }
        if other.counts.is_empty() {
            return;
        }
        self.store_few();
        self.keep(other.first, other.first + other.counts.len() - 1);
        let own = &mut self.counts[other.first - self.first..];
        for (count, more) in own.iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*more);
        }
    }

    /// Percentiles, to be asked for in increasing order of their shares.
    pub fn percentiles(&self) -> Percentiles<'_> {
        Percentiles {
            histogram: self,
            few: self.few_in_order(),
            bucket: 0,
            before: 0,
        }
    }

    fn few_in_order(&self) -> Vec<u32> {
        let mut few = self.few.clone();
        few.sort_unstable();
        few
    }

    /// The non-empty buckets: upper edge and count, in increasing order.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let few = self.few_in_order();
        let few = few.chunk_by(|one, next| one == next);
        let few = few.map(|same| (same[0] as usize, same.len() as u32));
        let few: Vec<_> = few.collect();
        // Most chunks of values that spread over octaves are empty.
        let chunks = (self.first..).step_by(CHUNK).zip(self.counts.chunks(CHUNK));
        let chunks = chunks.filter(|(_, chunk)| chunk.iter().fold(0, |any, count| any | count) > 0);
        let counts = chunks.flat_map(|(first, chunk)| (first..).zip(chunk.iter().copied()));
        let counted = counts.filter(|(_, count)| *count > 0);
        let all = few.into_iter().chain(counted);
        all.map(|(bucket, count)| (self.edge(bucket), u64::from(count)))
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

impl Percentiles<'_> {
    /// The percentile of a share from 0 to 1, by the nearest rank: the smallest bucket that at least this share of all
    /// values does not exceed, by its upper edge. There is no interpolation. 0 if the histogram is empty.
    pub fn at(&mut self, share: f64) -> u64 {
        let rank = ((share * self.histogram.n as f64).ceil() as u64).max(1);
        if !self.few.is_empty() {
            let at = (rank as usize).min(self.few.len()) - 1;
            return self.histogram.edge(self.few[at] as usize);
        }
        let counts = &self.histogram.counts;
        while let Some(count) = counts.get(self.bucket) {
            // Chunk by chunk, as long as the rank is beyond.
            if self.bucket % CHUNK == 0 {
                let chunk = counts[self.bucket..][..CHUNK].iter();
                let after = self.before + chunk.map(|count| u64::from(*count)).sum::<u64>();
                if after < rank {
                    (self.bucket, self.before) = (self.bucket + CHUNK, after);
                    continue;
                }
            }
            let after = self.before + u64::from(*count);
            if after >= rank {
                return self.histogram.edge(self.histogram.first + self.bucket);
            }
            (self.bucket, self.before) = (self.bucket + 1, after);
        }
        0
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
        let mut percentiles = histogram.percentiles();
        let at = [0.0, 0.1, 0.5, 0.95, 1.0].map(|share| percentiles.at(share));
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
        let mut percentiles = histogram.percentiles();
        let at = [0.0, 0.2, 0.5, 0.61, 1.0].map(|share| percentiles.at(share));
        assert_eq!(at, [0, 0, 5, 1000, 100_031]);
        assert_eq!(Histogram::new(0).percentiles().at(0.5), 0);
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

    /// Up to 128 values and beyond, in whatever order.
    #[test]
    fn few_values_count_as_many_do() {
        for n in [1, 2, 127, 128, 129, 400] {
            let (mut few, mut stored) = (Histogram::new(3), Histogram::doubling(3));
            for step in 0..n {
                let value = step * 7_919 % 4_099 * 100;
                few.record(value);
                stored.record(value);
            }
            assert!(few.buckets().eq(stored.buckets()));
            let (mut one, mut other) = (few.percentiles(), stored.percentiles());
            for share in [0.0, 0.01, 0.25, 0.5, 0.9, 0.999, 1.0] {
                assert_eq!(one.at(share), other.at(share), "{n}: {share}");
            }
            let (mut sum, mut of_stored) = (few.clone(), stored.clone());
            sum.add(&few);
            of_stored.add(&stored);
            assert!(sum.buckets().eq(of_stored.buckets()));
            assert_eq!(sum.n(), 2 * n);
        }
    }

    /// Values of 27 octaves, from either end, need at most two doublings beyond what they take.
    #[test]
    fn a_histogram_that_doubles_counts_the_same_and_seldom_grows() {
        for falls in [false, true] {
            let (mut doubling, mut other) = (Histogram::doubling(0), Histogram::new(0));
            let (mut grown, mut size) = (0, 0);
            for step in 0..27 * 64_u64 {
                let step = if falls { 27 * 64 - 1 - step } else { step };
                let value = (1 << (step / 64)) + ((step % 64) << (step / 64) >> 6);
                doubling.record(value);
                other.record(value);
                grown += u32::from(doubling.counts.len() != size);
                size = doubling.counts.len();
            }
            assert!(doubling.buckets().eq(other.buckets()));
            assert!(
                grown <= 10 && size <= 4 * other.counts.len(),
                "{grown}: {size}"
            );
        }
    }
}
