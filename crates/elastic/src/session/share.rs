//! Shares the cores of one machine among several targets, which the paper leaves as future work (section 3.3).
//!
//! Targets have disjoint nodes; where there are fewer nodes than targets, disjoint domains, else cores.
//! In each turn:
//!
//! 1. An overloaded target without a core to get receives a group (of that grain) that no target has; groups with most
//!    of its pages come first.
//! 2. If there is no such group, a target of lower priority, or one of equal priority with more cores, yields core by
//!    core until one of its groups is free; never below its minimum share, never its last group.
//! 3. A group in which a target has no core is returned, unless the target is short.

use std::collections::{BTreeMap, BTreeSet};

use crate::mode::{CoreIds, CoreTable, PageQueue};

/// The unit of sharing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grain {
    /// Whole nodes.
    Node,
    /// Cores that share a last-level cache.
    Domain,
    /// Single cores.
    Core,
}

impl Grain {
    /// The coarsest grain with enough groups for this many targets.
    pub fn for_targets(table: &CoreTable, targets: usize) -> Self {
        let enough = |grain: &Self| grain.groups(table).len() >= targets;
        [Self::Node, Self::Domain].into_iter().find(enough).unwrap_or(Self::Core)
    }

    /// The groups of cores.
    pub fn groups(self, table: &CoreTable) -> Vec<CoreIds> {
        let mut groups: BTreeMap<u32, CoreIds> = BTreeMap::new();
        for core in table.iter() {
            let key = match self {
                Self::Node => core.node.0,
                Self::Domain => core.domain.0,
                Self::Core => core.id.0,
            };
            groups.entry(key).or_default().insert(core.id);
        }
        groups.into_values().collect()
    }
}

/// State of a target.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareState {
    /// Targets with higher priority get cores first.
    pub priority: i64,
    /// Its minimum share.
    pub cores_min: usize,
    /// Its cores.
    pub given: CoreIds,
    /// The cores that it may get.
    pub free: CoreIds,
    /// Whether it is overloaded and has no core to get.
    pub is_short: bool,
    /// Pages that it accesses.
    pub pages: PageQueue,
}

/// A change to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShareAct {
    /// It may get these cores.
    Lend(CoreIds),
    /// It may no longer get these cores.
    Recall(CoreIds),
    /// It releases a core.
    Yield,
}

/// Why the first shares cannot be allocated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the minimum shares of {targets} targets need {needed} cores and more groups of {grain:?} than there \
     are: {there} cores may be given; lower cores_min"
)]
pub struct ShareError {
    /// How many targets.
    pub targets: usize,
    /// Minimum number of cores for all.
    pub needed: usize,
    /// The unit of sharing.
    pub grain: Grain,
    /// Available cores.
    pub there: usize,
}

/// The first share of each target, given as (priority, minimum share, pages): groups until its minimum is reached, by
/// priority.
pub fn first_shares(
    table: &CoreTable,
    grain: Grain,
    targets: &[(i64, usize, PageQueue)],
) -> Result<Vec<CoreIds>, ShareError> {
    let mut unowned = grain.groups(table);
    let mut shares = vec![CoreIds::new(); targets.len()];
    let mut order: Vec<usize> = (0..targets.len()).collect();
    order.sort_by_key(|i| (std::cmp::Reverse(targets[*i].0), *i));
    for i in order {
        let (_, least, pages) = &targets[i];
        while shares[i].len() < (*least).max(1) {
            let Some(best) = best_group(table, &unowned, pages, &shares[i]) else {
                return Err(ShareError {
                    targets: targets.len(),
                    needed: targets.iter().map(|target| target.1.max(1)).sum(),
                    grain,
                    there: table.len(),
                });
            };
            shares[i].extend(unowned.swap_remove(best));
            unowned.sort();
        }
    }
    Ok(shares)
}

/// The group with most pages of a target; among equal ones, the nearest to its cores.
fn best_group(
    table: &CoreTable,
    groups: &[CoreIds],
    pages: &PageQueue,
    own: &CoreIds,
) -> Option<usize> {
    let home = pages.top().or_else(|| table.main_node(own));
    (0..groups.len()).min_by_key(|i| {
        let node = table.main_node(&groups[*i]);
        let near = node.zip(home).map_or(u32::MAX, |(node, home)| table.distance(home, node));
        (u64::MAX - node.map_or(0, |node| pages.pages(node)), near, *i)
    })
}

/// The changes of this turn, as (target, act).
pub fn shares(table: &CoreTable, grain: Grain, targets: &[ShareState]) -> Vec<(usize, ShareAct)> {
    let groups = grain.groups(table);
    let owned = |target: &ShareState, group: &CoreIds| {
        !group.is_disjoint(&target.given) || !group.is_disjoint(&target.free)
    };
    let mut acts = Vec::new();
    let mut recalled: BTreeSet<usize> = BTreeSet::new();
    let mut unowned: Vec<CoreIds> = groups
        .iter()
        .filter(|group| !targets.iter().any(|target| owned(target, group)))
        .cloned()
        .collect();
    let mut order: Vec<usize> = (0..targets.len()).collect();
    order.sort_by_key(|i| (std::cmp::Reverse(targets[*i].priority), *i));
    for i in order.iter().copied().filter(|i| targets[*i].is_short) {
        let target = &targets[i];
        if let Some(best) = best_group(table, &unowned, &target.pages, &target.given) {
            acts.push((i, ShareAct::Lend(unowned.remove(best))));
        } else if let Some(victim) = victim(targets, i, &groups, &owned) {
            let empty = idle_groups(&targets[victim], &groups);
            match empty.into_iter().next().filter(|_| recalled.insert(victim)) {
                Some(group) => acts.push((victim, ShareAct::Recall(group))),
                None => acts.push((victim, ShareAct::Yield)),
            }
        }
    }
    for i in order {
        let target = &targets[i];
        if !target.is_short && !target.given.is_empty() && !recalled.contains(&i) {
            let back = idle_groups(target, &groups).into_iter();
            acts.extend(back.map(|group| (i, ShareAct::Recall(group))));
        }
    }
    acts
}

/// Groups of a target in which it has no core.
fn idle_groups(target: &ShareState, groups: &[CoreIds]) -> Vec<CoreIds> {
    let is_idle =
        |group: &&CoreIds| group.is_subset(&target.free) && group.is_disjoint(&target.given);
    groups.iter().filter(is_idle).cloned().collect()
}

/// The target that must yield to another one.
fn victim(
    targets: &[ShareState],
    short: usize,
    groups: &[CoreIds],
    owned: &impl Fn(&ShareState, &CoreIds) -> bool,
) -> Option<usize> {
    let for_whom = &targets[short];
    let group_size = groups.iter().map(CoreIds::len).max().unwrap_or(1);
    let may = |i: &usize| {
        let target = &targets[*i];
        let count = groups.iter().filter(|group| owned(target, group)).count();
        let is_lower = target.priority < for_whom.priority
            || (target.priority == for_whom.priority
                && target.given.len() > for_whom.given.len() + group_size);
        *i != short && is_lower && count > 1 && target.given.len() > target.cores_min
    };
    let candidates = (0..targets.len()).filter(may);
    candidates.min_by_key(|i| (targets[*i].priority, usize::MAX - targets[*i].given.len()))
}
