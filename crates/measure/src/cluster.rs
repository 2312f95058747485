//! Domains that the kernel does not report: groups of cpus that transfer lines clearly faster among each other than to
//! others, found by single linkage.
//!
//! Cpus are joined nearest first (Kruskal's minimum spanning tree); the times of the joins rise from those within
//! groups to those between them. If one join takes [`CLEAR`] times as long as the one before, the earlier joins form
//! the groups. Groups are split recursively, since a machine may hide packages and domains at once. Noise does not make
//! groups: a group has at least two cpus, and the median time between groups is [`CLEAR`] times that within them.

use atoll_topology::{CpuId, CpuSet, Machine};

use crate::samples::Samples;

/// Minimum ratio of times between groups to times within. An assumption: transfers within one last-level cache differ
/// along its ring or mesh, and those across caches by much more.
const CLEAR: f64 = 1.6;

/// Groups within the domains of the machine if transfer times split a domain clearly: two or more groups for each such
/// domain, ordered by smallest cpu. Only one cpu of each core counts, since threads of one core share more than a
/// domain. A cpu without near cpus is in no group.
pub(crate) fn hidden_domains(
    machine: &Machine,
    time: impl Fn(CpuId, CpuId) -> Option<f64>,
) -> Vec<CpuSet> {
    let mut hidden = Vec::new();
    for domain in &machine.domains {
        let cores = machine.cores.iter().filter(|core| core.cpus.is_subset(&domain.cpus));
        let firsts: Vec<CpuId> = cores.filter_map(|core| core.cpus.first()).collect();
        let cpus = measured(&firsts, &time);
        let matrix: Vec<Vec<f64>> = cpus
            .iter()
            .map(|a| cpus.iter().map(|b| time(*a, *b).unwrap_or(f64::INFINITY)).collect())
            .collect();
        let groups = groups(&matrix, &(0..cpus.len()).collect::<Vec<_>>());
        let groups = groups.into_iter().map(|group| group.into_iter().map(|i| cpus[i]).collect());
        hidden.extend(groups);
    }
    hidden
}

/// Cpus with times to all others: a sample may leave some out.
fn measured(cpus: &[CpuId], time: impl Fn(CpuId, CpuId) -> Option<f64>) -> Vec<CpuId> {
    let seen = |cpu: &CpuId| cpus.iter().any(|other| other != cpu && time(*cpu, *other).is_some());
    cpus.iter().copied().filter(seen).collect()
}

/// Groups among these rows of a symmetric matrix; empty if they are one group.
fn groups(matrix: &[Vec<f64>], rows: &[usize]) -> Vec<Vec<usize>> {
    let Some(split) = split(matrix, rows) else { return Vec::new() };
    split
        .into_iter()
        .flat_map(|group| match groups(matrix, &group) {
            finer if finer.is_empty() => vec![group],
            finer => finer,
        })
        .collect()
}

/// The split at the clearest step between joins that leaves two or more groups of two or more; a step that only
/// separates single cpus is skipped.
fn split(matrix: &[Vec<f64>], rows: &[usize]) -> Option<Vec<Vec<usize>>> {
    let joins = spanning_tree(matrix, rows);
    let step = |i: usize| joins[i + 1].time / joins[i].time;
    let mut steps: Vec<usize> =
        (0..joins.len().saturating_sub(1)).filter(|i| step(*i) >= CLEAR).collect();
    steps.sort_by(|a, b| step(*b).total_cmp(&step(*a)));
    steps.into_iter().find_map(|i| {
        let groups = joined(rows, &joins[..=i]);
        (groups.len() > 1 && is_clear(matrix, &groups)).then_some(groups)
    })
}

/// Groups of two or more rows that these joins make.
fn joined(rows: &[usize], joins: &[Join]) -> Vec<Vec<usize>> {
    let mut groups = Groups::new(rows.len());
    for join in joins {
        groups.join(join.a, join.b);
    }
    let found = groups.list().into_iter().filter(|group| group.len() > 1);
    found.map(|group| group.into_iter().map(|i| rows[i]).collect()).collect()
}

/// Whether the median time between groups is [`CLEAR`] times the median within them.
fn is_clear(matrix: &[Vec<f64>], groups: &[Vec<usize>]) -> bool {
    let (mut within, mut between) = (Vec::new(), Vec::new());
    for (i, group) in groups.iter().enumerate() {
        for (place, a) in group.iter().enumerate() {
            within.extend(group[place + 1..].iter().map(|b| matrix[*a][*b]));
            between.extend(groups[i + 1..].iter().flatten().map(|b| matrix[*a][*b]));
        }
    }
    let median = |times| Samples::new(times).map(|samples| samples.median());
    match (median(within), median(between)) {
        (Some(within), Some(between)) => between >= CLEAR * within,
        _ => false,
    }
}

struct Join {
    a: usize,
    b: usize,
    time: f64,
}

/// Joins of the minimum spanning tree in ascending order of time (Prim: no list of all pairs). Indices are into `rows`.
fn spanning_tree(matrix: &[Vec<f64>], rows: &[usize]) -> Vec<Join> {
    let mut joins = Vec::new();
    // For each row outside the tree, the nearest inside.
    let mut nearest = vec![0; rows.len()];
    let mut outside: Vec<usize> = (1..rows.len()).collect();
    let time = |a: usize, b: usize| matrix[rows[a]][rows[b]];
    while let Some(place) = (0..outside.len()).min_by(|x, y| {
        let (x, y) = (outside[*x], outside[*y]);
        time(x, nearest[x]).total_cmp(&time(y, nearest[y]))
    }) {
        let b = outside.swap_remove(place);
        joins.push(Join { a: nearest[b], b, time: time(nearest[b], b) });
        for other in &outside {
            if time(*other, b) < time(*other, nearest[*other]) {
                nearest[*other] = b;
            }
        }
    }
    joins.sort_by(|x, y| x.time.total_cmp(&y.time));
    joins
}

/// Disjoint sets of indices, each represented by its smallest.
struct Groups(Vec<usize>);

impl Groups {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.0[a], self.0[b]);
        let (name, other) = (a.min(b), a.max(b));
        for entry in self.0.iter_mut().filter(|entry| **entry == other) {
            *entry = name;
        }
    }

    fn list(&self) -> Vec<Vec<usize>> {
        let named = |name: usize| (0..self.0.len()).filter(move |i| self.0[*i] == name);
        (0..self.0.len())
            .filter(|name| self.0[*name] == *name)
            .map(|n| named(n).collect())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use atoll_topology::{Bytes, MachineBuilder, NodeId, NodeShape};
    use proptest::prelude::*;

    use super::*;
    use atoll_sys::SplitMix64;

    /// A machine of one domain with this number of cores.
    fn machine(cores: u32) -> Machine {
        let node = NodeShape::with_cpus(NodeId(0), 1, cores, 1).memory(Bytes(1 << 30));
        MachineBuilder::new("flat").node(node).distances(vec![vec![10]]).build().unwrap()
    }

    fn found(cores: u32, time: impl Fn(u32, u32) -> f64) -> Vec<String> {
        let groups = hidden_domains(&machine(cores), |a, b| {
            (a != b).then(|| time(a.0.min(b.0), a.0.max(b.0)))
        });
        groups.iter().map(CpuSet::to_string).collect()
    }

    /// The same for a pair each time, up to `share` more or less.
    fn noise(seed: u64, a: u32, b: u32, share: f64) -> f64 {
        let unit = SplitMix64::new(seed ^ u64::from(a) << 32 ^ u64::from(b)).below(1 << 20) as f64;
        1.0 + share * (unit / f64::from(1 << 19) - 1.0)
    }

    #[test]
    fn two_levels_of_hidden_groups_are_found_at_the_finest() {
        // Two packages of two caches of four cores.
        let time = |a: u32, b: u32| match (a / 4 == b / 4, a / 8 == b / 8) {
            (true, _) => 25.0 * noise(1, a, b, 0.1),
            (_, true) => 90.0 * noise(1, a, b, 0.1),
            _ => 240.0 * noise(1, a, b, 0.1),
        };
        assert_eq!(found(16, time), ["0-3", "4-7", "8-11", "12-15"]);
    }

    #[test]
    fn groups_need_not_be_neighbours_in_number() {
        let time = |a: u32, b: u32| if a % 2 == b % 2 { 30.0 } else { 100.0 };
        assert_eq!(found(8, time), ["0,2,4,6", "1,3,5,7"]);
    }

    #[test]
    fn a_mesh_on_which_times_grow_with_distance_is_one_domain() {
        assert!(found(28, |a, b| 45.0 + f64::from(b - a)).is_empty());
    }

    #[test]
    fn one_busy_cpu_makes_no_group_and_hides_none() {
        let busy = |a: u32, b: u32| if b == 7 { 900.0 } else { 20.0 + f64::from(a) };
        assert!(found(8, busy).is_empty());
        let time = |a: u32, b: u32| match (a, b) {
            (_, 8) => 2000.0,
            (a, b) if a / 4 == b / 4 => 25.0,
            _ => 90.0,
        };
        assert_eq!(found(9, time), ["0-3", "4-7"]);
    }

    #[test]
    fn few_cpus_or_no_times_show_nothing() {
        for cores in 1..4 {
            assert!(found(cores, |a, b| if b == a + 1 { 1.0 } else { 100.0 }).is_empty());
        }
        assert!(hidden_domains(&machine(8), |_, _| None).is_empty());
    }

    #[test]
    fn domains_that_the_machine_tells_of_are_not_hidden() {
        let machine = atoll_testkit::machines::sub_numa_clusters();
        let domain = |cpu| machine.cpu(cpu).unwrap().domain;
        let time = |a, b| Some(if domain(a) == domain(b) { 20.0 } else { 200.0 });
        assert!(hidden_domains(&machine, time).is_empty());
    }

    proptest! {
        #[test]
        fn equal_groups_are_found_through_noise_and_uniform_noise_is_not_grouped(
            groups in 2_u32..6, size in 2_u32..8, seed: u64
        ) {
            let time = |a: u32, b: u32| {
                let base = if a / size == b / size { 40.0 } else { 110.0 };
                base * noise(seed, a, b, 0.2)
            };
            let expected: Vec<String> = (0..groups)
                .map(|g| format!("{}-{}", g * size, g * size + size - 1))
                .map(|set| CpuSet::parse(&set).unwrap().to_string())
                .collect();
            prop_assert_eq!(found(groups * size, time), expected);
            prop_assert!(found(groups * size, |a, b| 60.0 * noise(seed, a, b, 0.2)).is_empty());
        }
    }
}
