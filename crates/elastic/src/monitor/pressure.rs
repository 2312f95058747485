//! Limits that more cores cannot lift, or not alone: threads that wait for a cpu (PSI), a quota of cpu time, and time
//! that the hypervisor steals.

use std::time::Duration;

use atoll_process::inspect::ProcessId;
use atoll_sys::{Root, thread_cpu_time};

use super::MonitorState;

/// Minimum time between two looks.
const EVERY: Duration = Duration::from_secs(1);
/// Minimum pause after a look, as a multiple of its cost.
const COST: u32 = 1000;
/// Maximum number of control groups read on the way to the root.
const DEPTH_MAX: usize = 32;
const PSI: &str = "cpu.pressure";

/// The measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// Share of the last ten seconds in which a thread waited for a cpu, percent.
    pub waiting_percent: Option<f64>,
    /// Cpus of time that the narrowest quota grants.
    pub quota_cpus: Option<f64>,
    /// Share of the machine's time that the hypervisor stole since the last look, percent.
    pub steal_percent: Option<f64>,
}

/// Measures pressure.
#[derive(Debug, Default)]
pub(super) struct PressureMonitor {
    next: Duration,
    times: Option<(u64, u64)>,
    is_own: Option<bool>,
    last: Pressure,
}

impl PressureMonitor {
    /// The pressure; None before the next look is due.
    pub(super) fn look(
        &mut self,
        at: Duration,
        root: &Root,
        process: Option<ProcessId>,
    ) -> Option<Pressure> {
        if at < self.next {
            return None;
        }
        let before = thread_cpu_time();
        let groups = process.map(|process| groups(root, process.pid)).unwrap_or_default();
        let own = groups.iter().find_map(|group| waiting(root, &format!("{group}/{PSI}")));
        let waiting = own.or_else(|| waiting(root, "/proc/pressure/cpu"));
        self.is_own = waiting.map(|_| own.is_some());
        self.last = Pressure {
            waiting_percent: waiting,
            quota_cpus: groups.iter().filter_map(|group| quota(root, group)).reduce(f64::min),
            steal_percent: self.steal(root),
        };
        let cost = thread_cpu_time().saturating_sub(before);
        self.next = at + EVERY.max(cost * COST);
        Some(self.last)
    }

    fn steal(&mut self, root: &Root) -> Option<f64> {
        let (steal, total) = times(&root.read_text("/proc/stat").ok()?)?;
        let (steal_before, total_before) = self.times.replace((steal, total))?;
        let elapsed = total.checked_sub(total_before).filter(|elapsed| *elapsed > 0)?;
        Some(steal.saturating_sub(steal_before) as f64 / elapsed as f64 * 100.0)
    }

    pub(super) fn states(&self) -> [MonitorState; 3] {
        const WAITING: &str = "waiting for cpus";
        let waiting = match self.is_own {
            Some(true) => MonitorState::real(WAITING, "pressure of the target's control group"),
            Some(false) => MonitorState::fallback(WAITING, "pressure of the whole machine"),
            None => MonitorState::absent(WAITING, "this kernel has no pressure information (PSI)"),
        };
        let quota = match self.last.quota_cpus {
            Some(cpus) => format!("the target's control groups grant {cpus:.2} cpus"),
            None => "the target's control groups have no quota".to_owned(),
        };
        let steal = match self.last.steal_percent {
            Some(percent) => format!("the hypervisor stole {percent:.1} % of the last second"),
            None => "/proc/stat".to_owned(),
        };
        [waiting, MonitorState::real("quota", quota), MonitorState::real("steal", steal)]
    }
}

/// Directories of a process's groups that may have a quota, from its own to the root.
fn groups(root: &Root, pid: u32) -> Vec<String> {
    let text = root.read_text(&format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let mounts: &[&str] = match controllers {
            "" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
            it if it.split(',').any(|it| it == "cpu") => {
                &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
            }
            _ => continue,
        };
        if path.split('/').any(|part| part == "..") {
            continue;
        }
        let mut path = path.trim_end_matches('/');
        for _ in 0..DEPTH_MAX {
            found.extend(mounts.iter().map(|mount| format!("{mount}{path}")));
            let Some((above, _)) = path.rsplit_once('/') else { break };
            path = above;
        }
    }
    found
}

/// `some avg10=8.39 avg60=7.10 avg300=8.12 total=31399464147`
fn waiting(root: &Root, file: &str) -> Option<f64> {
    let text = root.read_text(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()
}

/// `200000 100000` or `max 100000` of version 2; two files of version 1.
fn quota(root: &Root, group: &str) -> Option<f64> {
    let number = |name: &str| root.read_text(&format!("{group}/{name}")).ok();
    let text = number("cpu.max").or_else(|| {
        Some(format!("{} {}", number("cpu.cfs_quota_us")?.trim(), number("cpu.cfs_period_us")?))
    })?;
    let mut words = text.split_whitespace().map(str::parse::<f64>);
    let (quota, period) = (words.next()?.ok()?, words.next()?.ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Stolen ticks, and all ticks.
fn times(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guests are in user already.
    let steal = *ticks.get(7)?;
    Some((steal, ticks.iter().take(8).fold(0, |sum, ticks| sum.saturating_add(*ticks))))
}

#[cfg(test)]
mod tests {
    use atoll_testkit::tree::Tree;

    use super::*;

    #[test]
    fn the_narrowest_quota_on_the_way_to_the_root_counts() {
        let tree = Tree::empty()
            .with("proc/7/cgroup", "0::/a/b\n")
            .with("sys/fs/cgroup/a/b/cpu.max", "max 100000\n")
            .with("sys/fs/cgroup/a/b/cpu.pressure", "some avg10=2.50 avg60=0 avg300=0 total=1\n")
            .with("sys/fs/cgroup/a/cpu.max", "150000 100000\n")
            .with("proc/stat", "cpu  10 0 10 70 0 0 0 10 0 0\n");
        let mut monitor = PressureMonitor::default();
        let process = Some(ProcessId { pid: 7, start: 0 });
        let found = monitor.look(Duration::ZERO, &tree.root(), process).unwrap();
        assert_eq!((found.quota_cpus, found.waiting_percent), (Some(1.5), Some(2.5)));
        assert_eq!(found.steal_percent, None);
        let tree = tree.with("proc/stat", "cpu  20 0 20 140 0 0 0 20 0 0\n");
        let found = monitor.look(Duration::from_secs(9), &tree.root(), process).unwrap();
        assert_eq!(found.steal_percent, Some(10.0));
    }

    #[test]
    fn a_group_of_version_1_without_a_quota_grants_everything() {
        let tree = Tree::empty()
            .with("proc/7/cgroup", "3:cpu,cpuacct:/x\n1:name=systemd:/\n")
            .with("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n")
            .with("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
        let mut monitor = PressureMonitor::default();
        let process = Some(ProcessId { pid: 7, start: 0 });
        let found = monitor.look(Duration::ZERO, &tree.root(), process).unwrap();
        assert_eq!(found, Pressure::default());
        assert!(monitor.states()[0].says.contains("no pressure information"));
    }
}
