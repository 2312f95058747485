//! The load of cpus, and the traffic between last-level caches and memory, between two readings of the kernel's
//! counters.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use atoll_elastic::monitor::{Traffic, traffic_by_cache};
use atoll_sys::Root;
use parking_lot::Mutex;

/// Readings closer together than this are shared.
const APART_MIN: Duration = Duration::from_millis(500);

/// Reads the counters for all clients.
#[derive(Debug, Default)]
pub(super) struct LoadMeter(Mutex<LoadState>);

#[derive(Debug, Default)]
struct LoadState {
    last: Option<Counters>,
    load: MachineLoad,
}

/// The load of the machine, whatever causes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MachineLoad {
    /// Each cpu's share of busy time; None before the second reading.
    pub(super) cpus: BTreeMap<u32, f64>,
    /// Bytes per second between each last-level cache and all memory, and its own node's; None without resctrl.
    pub(super) caches: BTreeMap<u32, (f64, f64)>,
}

/// The kernel's counters.
#[derive(Debug)]
struct Counters {
    at: Instant,
    /// Busy and total ticks of each cpu.
    cpus: BTreeMap<u32, (u64, u64)>,
    caches: BTreeMap<u32, Traffic>,
}

impl LoadMeter {
    /// The load since the last reading.
    pub(super) fn look(&self, root: &Root) -> MachineLoad {
        let mut state = self.0.lock();
        let state = &mut *state;
        if state.last.as_ref().is_none_or(|last| last.at.elapsed() >= APART_MIN) {
            let stat = root.read_text("/proc/stat").unwrap_or_default();
            let caches = traffic_by_cache(root);
            let now = Counters { at: Instant::now(), cpus: ticks(&stat), caches };
            if let Some(last) = state.last.replace(now)
                && let Some(now) = &state.last
            {
                state.load = between(&last, now);
            }
        }
        state.load.clone()
    }
}

fn between(last: &Counters, now: &Counters) -> MachineLoad {
    let seconds = now.at.duration_since(last.at).as_secs_f64();
    let cpus = now.cpus.iter().filter_map(|(cpu, (busy, all))| {
        let (busy_before, all_before) = last.cpus.get(cpu)?;
        let all = all.checked_sub(*all_before).filter(|all| *all > 0)?;
        Some((*cpu, busy.saturating_sub(*busy_before) as f64 / all as f64))
    });
    let caches = now.caches.iter().filter_map(|(cache, traffic)| {
        let before = last.caches.get(cache)?;
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        Some((*cache, (rate(traffic.total, before.total), rate(traffic.local, before.local))))
    });
    MachineLoad { cpus: cpus.collect(), caches: caches.collect() }
}

/// Parses the lines `cpuN user nice system idle iowait irq softirq steal …` into busy and total ticks.
fn ticks(stat: &str) -> BTreeMap<u32, (u64, u64)> {
    let line = |line: &str| {
        let mut fields = line.strip_prefix("cpu")?.split_ascii_whitespace();
        let cpu = fields.next()?.parse().ok()?;
        // Guest time is part of user and nice.
        let ticks: Vec<u64> = fields.take(8).map_while(|ticks| ticks.parse().ok()).collect();
        let all = ticks.iter().fold(0, |sum: u64, ticks| sum.saturating_add(*ticks));
        let idle = ticks.get(3)?.saturating_add(*ticks.get(4)?);
        Some((cpu, (all.saturating_sub(idle), all)))
    };
    // The line for all cpus has a space in place of a number.
    stat.lines().filter(|line| !line.starts_with("cpu ")).filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_the_share_of_ticks_that_are_not_idle() {
        let cpus =
            |stat| Counters { at: Instant::now(), cpus: ticks(stat), caches: BTreeMap::new() };
        let last = cpus(
            "cpu  9 9 9 9 9 9 9 9\ncpu0 10 0 10 70 10 0 0 0 5 5\ncpu1 0 0 0 5 0 0 0 0\nintr 1\n",
        );
        let now = cpus("cpu0 40 0 10 90 10 0 0 0 5 5\ncpu1 0 0 0 5 0 0 0 0\ncpu2 x\ncpu\n");
        assert_eq!(between(&last, &now).cpus, BTreeMap::from([(0, 0.6)]));
    }

    #[test]
    fn concurrent_readings_are_shared() {
        let (meter, root) = (LoadMeter::default(), Root::live());
        assert_eq!(meter.look(&root), MachineLoad::default());
        assert_eq!(meter.look(&root), MachineLoad::default());
    }
}
