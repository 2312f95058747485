//! Cores of one machine for several targets: what the paper leaves as its next step (section 3.3).
//!
//! Targets have disjoint nodes; where there are fewer nodes than targets, disjoint domains, else cores.
//! In each turn:
//!
//! 1. A target that is overloaded and has no core left that it could be given gets a group (of that
//!    grain) that no target has, the one with most of its pages first.
//! 2. Where there is none, a target of lower priority, or one of the same with more cores, yields core by
//!    core until one of its groups is free; never below its minimum share, never its last group.
//! 3. A group in which a target has no core goes back, unless it is short.

use std::collections::{BTreeMap, BTreeSet};

use crate::mode::{CoreIds, CoreTable, PageQueue};

/// What is shared out.
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
    /// The coarsest of which there are enough for so many targets.
    pub fn of(table: &CoreTable, targets: usize) -> Self {
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

/// What has to be known of a target.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareState {
    /// The higher, the sooner it gets cores.
    pub priority: i64,
    /// Its minimum share.
    pub cores_min: usize,
    /// Cores that it has.
    pub given: CoreIds,
    /// Cores that it may be given.
    pub free: CoreIds,
    /// Whether it is overloaded and has no core that it could be given.
    pub is_short: bool,
    /// Pages that it accesses.
    pub pages: PageQueue,
}

/// What is to be done to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShareAct {
    /// It may be given these cores.
    Lend(CoreIds),
    /// It may not be given these any longer.
    Recall(CoreIds),
    /// It gives a core back.
    Yield,
}

/// Why the first shares cannot be dealt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the minimum shares of {targets} targets need {needed} cores and more groups of {grain:?} than there \
     are: {there} cores may be given; lower cores_min"
)]
pub struct ShareError {
    /// How many targets.
    pub targets: usize,
    /// Cores that they need at least.
    pub needed: usize,
    /// What is shared out.
    pub grain: Grain,
    /// Cores that there are.
    pub there: usize,
}

/// The first share of each target, as (priority, minimum share, pages): groups until its minimum is
/// reached, by priority.
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

/// The group with most pages of a target; of those with as many the nearest to what it has.
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

/// What is to be done in this turn, as (target, act).
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

/// The target that has to yield to another one.
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
