//! Whether values can be added without checking for wraps.

use crate::exact_sum::summand::Summand;

/// How far totals may be from the ends of their type, as far as is known without inspecting them.
///
/// Scanning a batch bounds what each of its values can add ([`Summand::magnitude`], one OR per
/// value, which the compiler vectorises); as long as the bounds of all batches together fit the
/// type, no total can have wrapped, and the batch is added with plain wrapping arithmetic. In
/// practice that is every batch: six million prices of 10^11 fill 2^-66 of a 128-bit total.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Headroom {
    /// The type of the values excludes wrapping, see `target`.
    Ample,
    /// No total is further from 0 than this, in the unit of [`Summand::magnitude`].
    Within(u128),
}

impl Headroom {
    /// The headroom of totals that are all 0.
    pub(crate) fn unused() -> Self {
        Self::Within(0)
    }

    /// Whether totals cannot wrap whatever the values are.
    pub(crate) fn is_ample(&self) -> bool {
        matches!(self, Self::Ample)
    }

    /// Whether no total can wrap while these values are added. Once it returns false, it always
    /// does.
    pub(crate) fn admits<N: Summand>(&mut self, values: &[N]) -> bool {
        let Self::Within(farthest) = self else { return true };
        if *farthest > N::MAGNITUDE_MAX {
            return false;
        }
        let added = N::magnitude(values).saturating_mul(values.len() as u128);
        *farthest = farthest.saturating_add(added);
        *farthest <= N::MAGNITUDE_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use datafusion::arrow::datatypes::{IntervalDayTime, i256};
    use proptest::prelude::*;

    use crate::exact_sum::total::total_of_values;

    proptest! {
        #[test]
        fn what_is_admitted_does_not_wrap(batches in prop::collection::vec(
            prop::collection::vec((any::<i64>(), 0_u32..64).prop_map(|(value, shift)| value >> shift), 0..20),
            0..5,
        )) {
            let mut headroom = Headroom::unused();
            let admitted = batches.iter().take_while(|batch| headroom.admits(batch));
            let values: Vec<i64> = admitted.flatten().copied().collect();
            let negated: Vec<i64> = values.iter().map(|value| value.wrapping_abs()).collect();
            prop_assert_eq!(total_of_values(&values).wraps, 0);
            prop_assert_eq!(total_of_values(&negated).wraps, 0);
        }
    }

    #[test]
    fn ordinary_values_are_admitted_for_a_long_time_and_extreme_ones_never() {
        let mut headroom = Headroom::unused();
        let prices = [99_999_999_999_i128; 1000];
        assert!((0..1000).all(|_| headroom.admits(&prices)));
        assert!(!headroom.admits(&[i128::MIN]));
        assert!(!headroom.admits(&prices));
        assert!(!Headroom::unused().admits(&[i64::MIN]));
        assert!(!Headroom::unused().admits(&[u64::MAX, 1]));
        assert!(!Headroom::unused().admits(&[i256::MIN]));
        assert!(!Headroom::unused().admits(&[i32::MAX, 1]));
        assert!(!Headroom::unused().admits(&[IntervalDayTime::new(1, 0)]));
        assert!(Headroom::Ample.admits(&[i128::MIN]));
    }
}
