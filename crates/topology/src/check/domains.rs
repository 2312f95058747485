//! Domains that core-to-core measurements reveal but the kernel does not report.
//!
//! Within a domain every pair of cores transfers a cache line in about the same time. If the times of one domain form
//! two groups, and the near pairs connect its cores into several clusters with only far pairs between them, each
//! cluster is a domain.

use std::collections::BTreeMap;

use super::{FileReading, Finding, scene::Scene};
use crate::{CoreId, CpuSet, Domain, Quantity, Source, Subject};

/// Minimum ratio between two adjacent times that separates near from far.
const GAP_MIN: f64 = 1.4;

/// Times between cores of one domain, by pair.
type PairTimes = BTreeMap<(CoreId, CoreId), f64>;

pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let machine = scene.machine();
    machine.domains.iter().filter_map(|domain| finding(scene, domain)).collect()
}

fn finding(scene: &Scene<'_>, domain: &Domain) -> Option<Finding> {
    let times = times(scene, domain);
    let (near, far) = gap(&times)?;
    let clusters = clusters(scene, domain, &times, near);
    let between = |(a, b): &(CoreId, CoreId)| clusters[a] != clusters[b];
    let consistent = times.iter().all(|(pair, &time)| between(pair) == (time > near));
    let sets = sets(scene, &clusters);
    if sets.len() < 2 || !consistent || sets.iter().any(|(cores, _)| *cores < 2) {
        return None;
    }
    let lists = sets.iter().map(|(_, cpus)| format!("{{{cpus}}}")).collect::<Vec<_>>().join(" ");
    let what = format!("Domain {} behaves like {} domains: cpus {lists}", domain.id, sets.len());
    let why = "A cache line takes much longer between them than inside, although the kernel says \
               that they share a cache. Threads that share data do better inside one of them.";
    let value = format!("at most {near:.0} ns inside, at least {far:.0} ns between");
    let reading = FileReading { file: "core_to_core (measured)".to_owned(), value };
    let advice = "In the firmware look for sub-NUMA clustering, nodes per socket or 'L3 as NUMA'; \
                  for a virtual machine pass the host's cache topology on.";
    Some(Finding::warning("domains_hidden", what, why).from([reading]).advice(advice))
}

/// The measured times between different cores of the domain, the best of each pair.
fn times(scene: &Scene<'_>, domain: &Domain) -> PairTimes {
    let mut times = PairTimes::new();
    for fact in &scene.knowledge.facts {
        let Subject::CpuPair { from, to } = fact.subject else { continue };
        let measured = fact.source == Source::Measured && fact.quantity == Quantity::CoreToCore;
        if !measured || !domain.cpus.contains(from) || !domain.cpus.contains(to) {
            continue;
        }
        let core = |cpu| scene.machine().cpu(cpu).map(|cpu| cpu.core);
        let (Some(a), Some(b)) = (core(from), core(to)) else { continue };
        if a != b {
            let time = times.entry((a.min(b), a.max(b))).or_insert(f64::INFINITY);
            *time = time.min(fact.value);
        }
    }
    times
}

/// The largest near and the smallest far time, if the widest gap is wide enough.
fn gap(times: &PairTimes) -> Option<(f64, f64)> {
    let mut sorted: Vec<f64> = times.values().copied().filter(|time| *time > 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    let gaps = sorted.windows(2).map(|pair| (pair[0], pair[1]));
    gaps.max_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0))).filter(|(a, b)| b / a >= GAP_MIN)
}

/// For each core, the smallest core that near pairs connect it to.
fn clusters(
    scene: &Scene<'_>,
    domain: &Domain,
    times: &PairTimes,
    near: f64,
) -> BTreeMap<CoreId, CoreId> {
    let cores = scene.machine().cores.iter().filter(|core| core.domain == domain.id);
    let mut clusters: BTreeMap<CoreId, CoreId> = cores.map(|core| (core.id, core.id)).collect();
    for ((a, b), _) in times.iter().filter(|(_, time)| **time <= near) {
        let (one, other) = (clusters[a].min(clusters[b]), clusters[a].max(clusters[b]));
        clusters.values_mut().filter(|cluster| **cluster == other).for_each(|c| *c = one);
    }
    clusters
}

/// Number of cores and the cpus of each cluster.
fn sets(scene: &Scene<'_>, clusters: &BTreeMap<CoreId, CoreId>) -> Vec<(usize, CpuSet)> {
    let mut sets: BTreeMap<CoreId, (usize, CpuSet)> = BTreeMap::new();
    for (core, cluster) in clusters {
        let (cores, cpus) = sets.entry(*cluster).or_default();
        *cores += 1;
        *cpus = cpus.union(&scene.machine().cores[core.index()].cpus);
    }
    sets.into_values().collect()
}
