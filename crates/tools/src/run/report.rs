//! The report after the end.

use std::io::{self, Write};

use atoll_process::launch::{
    InstanceOutcome, InstancePlan, LaunchOutcome, LaunchPlan, MachineCounters, NodePages, Obstacle,
    Sampled,
};
use atoll_sys::{Ending, Root};
use atoll_topology::Bytes;
use serde::Serialize;

use super::words;

/// How the pages were looked up, for readers of the figures.
const SAMPLING: &str = "numa_maps of the process and its descendants, first after 50 ms, then less \
                        and less often to once a second, and rarer where looking takes long (at \
                        most 1 % of a cpu, in the beginning 10 %); memory shared by file or at one address counts once";

/// A finished launch.
#[derive(Debug, Serialize)]
pub(super) struct LaunchReport<'a> {
    instances: Vec<InstanceReport<'a>>,
    obstacles: &'a [Obstacle],
    notes: &'a [String],
    /// Counts of the kernel for all processes of the machine during the run.
    machine_counters: MachineCounters,
    sampling: &'static str,
}

#[derive(Debug, Serialize)]
struct InstanceReport<'a> {
    asked: &'a InstancePlan,
    command: &'a str,
    pid: i32,
    exit_code: Option<u8>,
    exit_signal: Option<i32>,
    seconds_elapsed: f64,
    seconds_user: f64,
    seconds_system: f64,
    faults_minor: u64,
    faults_major: u64,
    /// Peak of its largest process; None if it is no more than Atoll's own, of which the kernel counts
    /// what was resident between fork and exec.
    bytes_resident_max: Option<Bytes>,
    /// Share of the peak's pages that were on the nodes of the policy.
    share_on_asked_nodes: Option<f64>,
    #[serde(flatten)]
    sampled: Option<&'a Sampled>,
    #[serde(skip)]
    ending: Ending,
}

impl<'a> LaunchReport<'a> {
    pub(super) fn new(
        plan: &'a LaunchPlan,
        commands: &'a [String],
        outcome: &'a LaunchOutcome,
        known: &'a [Obstacle],
        machine_counters: MachineCounters,
    ) -> Self {
        let instances = outcome.instances.iter().zip(commands);
        Self {
            instances: instances
                .map(|(instance, command)| instance_report(instance, command))
                .collect(),
            obstacles: known,
            notes: &plan.notes,
            machine_counters,
            sampling: SAMPLING,
        }
    }

    /// One JSON document.
    pub(super) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, self)?;
        writeln!(out)
    }

    /// Writes the report as text.
    pub(super) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        for instance in &self.instances {
            instance.write(out)?;
        }
        for obstacle in self.obstacles {
            writeln!(out, "obstacle: {obstacle}")?;
        }
        let counter = |name| self.machine_counters.get(name);
        if let Some(migrated) = counter("pgmigrate_success") {
            write!(out, "whole machine meanwhile: {migrated} pages migrated")?;
            if let Some(balanced) = counter("numa_pages_migrated") {
                write!(out, ", {balanced} of them by automatic balancing")?;
            }
            writeln!(out)?;
        }
        writeln!(out, "pages are sampled: {SAMPLING}")
    }
}

fn instance_report<'a>(instance: &'a InstanceOutcome, command: &'a str) -> InstanceReport<'a> {
    let ended = &instance.ended;
    let (exit_code, exit_signal) = match ended.ending {
        Ending::Code(code) => (Some(code), None),
        Ending::Signal(number) => (None, Some(number)),
    };
    let sampled = instance.sampled.as_ref();
    InstanceReport {
        asked: &instance.plan,
        command,
        pid: instance.pid,
        exit_code,
        exit_signal,
        seconds_elapsed: instance.elapsed.as_secs_f64(),
        seconds_user: ended.time_user.as_secs_f64(),
        seconds_system: ended.time_system.as_secs_f64(),
        faults_minor: ended.faults_minor,
        faults_major: ended.faults_major,
        bytes_resident_max: Some(Bytes(ended.resident_kib_max.saturating_mul(1024)))
            .filter(|most| *most > own_peak()),
        share_on_asked_nodes: sampled.and_then(|seen| share(&instance.plan, &seen.pages_peak)),
        sampled,
        ending: ended.ending,
    }
}

/// Peak resident memory of Atoll itself; 0 if procfs does not report it.
fn own_peak() -> Bytes {
    let status = Root::live().read_text("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<u64>().ok());
    Bytes(kib.unwrap_or(0).saturating_mul(1024))
}

/// Share of pages on the nodes of the policy; none without nodes or pages.
fn share(plan: &InstancePlan, pages: &[NodePages]) -> Option<f64> {
    let nodes = &plan.memory.as_ref().filter(|policy| !policy.nodes.is_empty())?.nodes;
    let all = sum(pages.iter());
    let there = sum(pages.iter().filter(|it| nodes.contains(it.node)));
    (all > 0).then(|| there as f64 / all as f64)
}

fn sum<'a>(pages: impl Iterator<Item = &'a NodePages>) -> u64 {
    pages.fold(0, |sum, it| sum.saturating_add(it.bytes.0))
}

impl InstanceReport<'_> {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (index, place) = (self.asked.index, words::place(self.asked));
        writeln!(out, "instance {index} ({place}, pid {}): {:.100}", self.pid, self.command)?;
        writeln!(out, "  asked       {}", words::asked(self.asked))?;
        match self.sampled {
            Some(sampled) if sampled.samples > 0 => self.write_sampled(sampled, out)?,
            _ => writeln!(out, "  pages       not seen: it ended before the first look")?,
        }
        let how = words::ending(self.ending);
        writeln!(
            out,
            "  ended       {how} after {:.2} s; {:.2} s user, {:.2} s system, with its children",
            self.seconds_elapsed, self.seconds_user, self.seconds_system
        )?;
        let most = self.bytes_resident_max;
        let most = most.map(|most| format!("; {most} resident in its largest process"));
        let (minor, major) = (self.faults_minor, self.faults_major);
        writeln!(out, "  faults      {minor} minor, {major} major{}", most.unwrap_or_default())
    }

    fn write_sampled(&self, sampled: &Sampled, out: &mut dyn Write) -> io::Result<()> {
        let policies = sampled.policies_last.iter();
        let policies: Vec<String> =
            policies.map(|(name, bytes)| format!("{bytes} under {name}")).collect();
        let cpus = sampled.cpus_last.as_deref().unwrap_or("unknown");
        writeln!(out, "  in force    cpus {cpus}; {}", policies.join(", "))?;
        let share = self.share_on_asked_nodes;
        let share = share.map(|it| format!("; {:.1} % where asked", it * 100.0));
        let (peak, share) = (by_node(&sampled.pages_peak), share.unwrap_or_default());
        writeln!(out, "  pages peak  {peak}{share}")?;
        let last = by_node(&sampled.pages_last);
        let (count, most) = (sampled.samples, sampled.processes_max);
        let (looks, processes) = (counted(count as usize, "look"), counted(most, "process"));
        let after = sampled.last.as_secs_f64();
        writeln!(out, "  pages last  {last}  ({looks}, the last at {after:.2} s; {processes})")?;
        let seen = sampled.bytes_peak();
        if let Some(most) = self.bytes_resident_max.filter(|most| seen.0 < most.0 / 2) {
            writeln!(out, "              looked too early: {seen} of {most} or more were seen")?;
        }
        if sampled.unread_last > 0 {
            let unread = sampled.unread_last;
            writeln!(out, "              without {unread} processes of other users; run as root")?;
        }
        if let Some(moves) = sampled.migrations {
            let pages = sampled.pages_migrated;
            let pages = pages.map_or(String::new(), |n| format!("; {n} pages moved by balancing"));
            writeln!(out, "  migrations  {moves} of threads from cpu to cpu{pages}")?;
        }
        Ok(())
    }
}

/// `1 look`, `2 looks`, `3 processes`
fn counted(count: usize, what: &str) -> String {
    match (count, what.ends_with('s')) {
        (1, _) => format!("1 {what}"),
        (_, true) => format!("{count} {what}es"),
        (_, false) => format!("{count} {what}s"),
    }
}

/// `node 0 1.0 GiB (75 %), node 1 …`
fn by_node(pages: &[NodePages]) -> String {
    let all = sum(pages.iter());
    let one = |it: &NodePages| {
        let percent = 100.0 * it.bytes.0 as f64 / all.max(1) as f64;
        format!("node {} {} ({percent:.0} %)", it.node, it.bytes)
    };
    match pages.is_empty() {
        true => "none".to_owned(),
        false => pages.iter().map(one).collect::<Vec<_>>().join(", "),
    }
}
