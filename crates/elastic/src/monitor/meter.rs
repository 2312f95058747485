//! The load `u`: the time that all threads of the target used on cpus, divided by the time that its cpus
//! had.
//!
//! The paper uses the "arithmetic CPU-load average of the active database threads" (3.2.2). With more threads than
//! cores that average is low however busy the cores are, so this is the average load of the target's cores.

use std::collections::BTreeMap;
use std::time::Duration;

use atoll_process::inspect::ProcessId;

/// Computes the load from clocks.
#[derive(Clone, Debug, Default)]
pub struct LoadMeter {
    clocks: BTreeMap<ProcessId, Duration>,
    at: Option<Duration>,
}

impl LoadMeter {
    /// Cpus of time that the processes used since the last call; None at the first call. A new process counts from its
    /// start, one that has ended does not count.
    pub fn demand(
        &mut self,
        at: Duration,
        clocks: impl IntoIterator<Item = (ProcessId, Duration)>,
    ) -> Option<f64> {
        let before = std::mem::take(&mut self.clocks);
        self.clocks = clocks.into_iter().collect();
        let elapsed = at.saturating_sub(self.at.replace(at)?).as_secs_f64();
        if elapsed <= 0.0 {
            return None;
        }
        let used = self.clocks.iter().map(|(id, now)| {
            let before = before.get(id).copied().unwrap_or_default();
            now.saturating_sub(before).as_secs_f64()
        });
        Some(used.sum::<f64>() / elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_the_time_used_since_the_last_look() {
        let id = |pid| ProcessId { pid, start: 1 };
        let ms = Duration::from_millis;
        let mut meter = LoadMeter::default();
        assert_eq!(meter.demand(ms(0), [(id(1), ms(5000))]), None);
        assert_eq!(meter.demand(ms(250), [(id(1), ms(5375))]), Some(1.5));
        // A new process counts from its start, one that has ended does not count.
        assert_eq!(meter.demand(ms(500), [(id(2), ms(125))]), Some(0.5));
        assert_eq!(meter.demand(ms(500), [(id(2), ms(125))]), None);
    }
}
