//! The two parameters that the paper does not state, from two of its figures.

use serde::Serialize;

use super::Counted;

/// Time that every access takes, and accesses under way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// c, ns.
    pub fixed_ns: f64,
    /// k.
    pub in_flight: f64,
}

/// Why they cannot be solved.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "waits of {small:.2} and {large:.2} ns cannot take {small_ns} and {large_ns} ns: the larger \
     array has to wait longer, and no access takes less than nothing; run with more accesses"
)]
pub struct CalibrationError {
    small: f64,
    large: f64,
    small_ns: f64,
    large_ns: f64,
}

/// Time of an access, ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Time {
    /// With the wait for one access of every other thread.
    pub upper: f64,
    /// With no more waiting than the busiest controller or link needs.
    pub lower: f64,
}

impl CalibrationError {
    /// The two arms were not run.
    pub(super) fn without_arms() -> Self {
        Self { small: 0.0, large: 0.0, small_ns: 0.0, large_ns: 0.0 }
    }
}

impl Calibration {
    /// Solves t = c + W / k for two runs of one thread, that of the smaller and that of the larger
    /// array: (counts, published ns).
    ///
    /// # Errors
    /// [`CalibrationError`] if no c and k explain both.
    pub fn solve(small: (&Counted, f64), large: (&Counted, f64)) -> Result<Self, CalibrationError> {
        let ((small, small_ns), (large, large_ns)) = (small, large);
        let (small, large) = (small.wait(), large.wait());
        let in_flight = (large - small) / (large_ns - small_ns);
        let fixed_ns = small_ns - small / in_flight;
        if in_flight.is_finite() && in_flight > 0.0 && fixed_ns >= 0.0 {
            return Ok(Self { fixed_ns, in_flight });
        }
        Err(CalibrationError { small, large, small_ns, large_ns })
    }

    /// The time of an access.
    pub fn time(&self, counted: &Counted) -> Time {
        let alone = self.fixed_ns + counted.wait() / self.in_flight;
        let service = counted.service();
        let rivals = counted.rivals().max(1) as f64;
        let lower = alone.max(service);
        Time { upper: lower.max(alone + service * (rivals - 1.0) / rivals), lower }
    }
}
