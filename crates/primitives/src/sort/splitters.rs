//! Cuts a range of keys into parts of about equal work.

/// Lower bounds of ranges: a key belongs to the range numbered by how many of them do not exceed it.
#[derive(Clone, Debug)]
pub(crate) struct Splitters(Vec<u64>);

impl Splitters {
    /// Cuts a sample of (key, weight) into up to `ranges` ranges of about equal weight. A key with more than a range's
    /// weight gets a range of its own.
    pub(crate) fn from_sample(mut sample: Vec<(u64, f64)>, ranges: usize) -> Self {
        sample.sort_unstable_by_key(|(key, _)| *key);
        let all: f64 = sample.iter().map(|(_, weight)| weight).sum();
        let share = all / ranges.max(1) as f64;
        let (mut cuts, mut weight): (Vec<u64>, f64) = (Vec::new(), 0.0);
        for equal in sample.chunk_by(|one, next| one.0 == next.0) {
            let of_key: f64 = equal.iter().map(|(_, weight)| weight).sum();
            let full = weight > 0.0 && weight + of_key / 2.0 > share;
            if full && cuts.len() + 1 < ranges {
                cuts.push(equal[0].0);
                weight = 0.0;
            }
            weight += of_key;
        }
        Self(cuts)
    }

    /// Number of ranges.
    pub(crate) fn ranges(&self) -> usize {
        self.0.len() + 1
    }

    /// Range of a key.
    #[inline]
    pub(crate) fn range(&self, key: u64) -> usize {
        self.0.partition_point(|cut| *cut <= key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_share_the_weight_and_a_hot_key_has_one_for_itself() {
        let sample = (0..1000).map(|key| (key, 1.0)).chain([(500, 1000.0)]).collect();
        let splitters = Splitters::from_sample(sample, 4);
        assert!(splitters.ranges() <= 4);
        assert_ne!(splitters.range(499), splitters.range(500));
        assert!(splitters.range(0) < splitters.range(999));
    }

    #[test]
    fn an_empty_sample_is_one_range() {
        let splitters = Splitters::from_sample(Vec::new(), 8);
        assert_eq!((splitters.ranges(), splitters.range(7)), (1, 0));
    }
}
