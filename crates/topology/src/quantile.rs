//! Medians and other quantiles of repetitions.

/// The value below which this share (0 to 1) of the sorted values lies, interpolated between neighbours. Returns None
/// for no values.
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let at = sorted.len().checked_sub(1)? as f64 * share;
    let (below, above) = (*sorted.get(at.floor() as usize)?, *sorted.get(at.ceil() as usize)?);
    Some(below + (above - below) * at.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_middle_values_the_median_is_their_mean() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0, 9.0], 0.5), Some(3.0));
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.5), Some(2.0));
        assert_eq!(quantile(&[7.0], 0.75), Some(7.0));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.25), Some(2.0));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
