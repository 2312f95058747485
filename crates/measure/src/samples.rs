//! Repetitions of one figure, and the fact they make.

use std::time::SystemTime;

use atoll_topology::{Conditions, Fact, Quantity, Source, Spread, Subject, quantile};

/// Repetitions in ascending order; at least one.
#[derive(Clone, Debug)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// Returns None if there are none, or one is not a positive number.
    pub(crate) fn new(mut values: Vec<f64>) -> Option<Self> {
        if values.is_empty() || !values.iter().all(|value| value.is_finite() && *value > 0.0) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        Some(Self(values))
    }

    /// The median.
    pub(crate) fn median(&self) -> f64 {
        quantile(&self.0, 0.5).expect("there is one at least")
    }

    pub(crate) fn min(&self) -> f64 {
        self.0[0]
    }

    /// A measured fact, as of now.
    pub(crate) fn fact(
        &self,
        subject: Subject,
        quantity: Quantity,
        conditions: Conditions,
    ) -> Fact {
        let (min, max) = (self.min(), self.0[self.0.len() - 1]);
        let spread = Some(Spread { min, max, runs: self.0.len() as u32 });
        Fact { conditions, spread, ..figure(subject, quantity, self.median()) }
    }
}

/// A measured fact without repetitions, as of now.
pub(crate) fn figure(subject: Subject, quantity: Quantity, value: f64) -> Fact {
    let origin = concat!("atoll topo measure ", env!("CARGO_PKG_VERSION"));
    let fact = Fact::new(subject, quantity, value, Source::Measured, origin);
    Fact { at: Some(SystemTime::now()), ..fact }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_holds_the_median_and_the_ends() {
        let samples = Samples::new(vec![3.0, 1.0, 9.0, 2.0]).unwrap();
        let fact = samples.fact(Subject::Machine, Quantity::Latency, Conditions::default());
        assert_eq!(fact.value, 2.5);
        assert_eq!(fact.spread, Some(Spread { min: 1.0, max: 9.0, runs: 4 }));
        assert_eq!(fact.source, Source::Measured);
        assert!(fact.at.is_some() && fact.origin.starts_with("atoll topo measure "));
    }

    #[test]
    fn what_is_not_a_positive_number_makes_no_fact() {
        for values in [vec![], vec![0.0, 1.0], vec![f64::NAN], vec![1.0, f64::INFINITY]] {
            assert!(Samples::new(values).is_none());
        }
    }
}
