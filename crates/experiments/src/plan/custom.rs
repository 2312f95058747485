//! Runs with any number of groups, threads, migrations, under any placement.

use atoll_placement::{MemoryHome, Policy, Strategy};
use atoll_topology::NodeId;

use super::migration::migrations;
use super::{ArmVariant, Draft, LAB, RowSubject};
use crate::places::Localities;
use crate::{Arrangement, By, Custom, Group, Home, PlanError};

/// How threads are dealt out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deal {
    pub(super) groups: usize,
    /// Threads of each group.
    pub(super) threads: usize,
    pub(super) arrangement: Arrangement,
}

pub(super) fn plan(draft: &mut Draft<'_>, custom: &Custom) -> Result<(), PlanError> {
    custom.check(draft.options.kind)?;
    let places = draft.places(By::Node);
    let by = draft.options.by.unwrap_or(By::Node).plural();
    if places.len() < 2 && custom.migrations.iter().any(|count| *count > 0) {
        let message = format!("migration needs two {by}; {LAB}");
        return Err(PlanError::NotHere(message));
    }
    let (groups, threads) = (custom.groups as usize, custom.threads as usize);
    let mut cases = Vec::new();
    for arrangement in &custom.arrangements {
        for placement in &custom.placements {
            let deal = Deal { groups, threads, arrangement: *arrangement };
            let dealt = self::groups(draft, &places, &deal, GroupPlacement(*placement))?;
            for count in &custom.migrations {
                cases.push(ArmVariant {
                    setting: setting(custom, *arrangement, *placement, *count),
                    groups: dealt.clone(),
                    migrations: *count,
                });
            }
        }
    }
    for size in &custom.sizes {
        for operation in &custom.operations {
            let subject = RowSubject {
                experiment: 0,
                who: who(custom),
                operation: *operation,
                size: *size,
                processes: custom.processes,
            };
            draft.row(&subject, cases.clone());
        }
    }
    Ok(())
}

fn who(custom: &Custom) -> String {
    let threads = |count: u32| format!("{count} thread{}", if count == 1 { "" } else { "s" });
    match custom.groups {
        1 => threads(custom.threads),
        groups => format!("{groups} groups of {}", threads(custom.threads)),
    }
}

/// The name that distinguishes a case from the others.
fn setting(custom: &Custom, arrangement: Arrangement, placement: Strategy, count: u32) -> String {
    let mut words = Vec::new();
    if custom.threads > 1 {
        words.push(arrangement.name().to_owned());
    }
    words.push(placement.to_string());
    if custom.migrations.iter().any(|count| *count > 0) {
        words.push(migrations(count));
    }
    words.join(", ")
}

/// Where memory lies, seen from the node of a group; by default there.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupPlacement(Strategy);

impl Default for GroupPlacement {
    fn default() -> Self {
        Self(Strategy::Aligned)
    }
}

/// Group g belongs to place g, modulo their number. Co-located, its threads run there; dealt out, the
/// t-th runs on place t. Every thread has a seat of its own while there are some.
pub(super) fn groups(
    draft: &Draft<'_>,
    places: &Localities,
    deal: &Deal,
    GroupPlacement(strategy): GroupPlacement,
) -> Result<Vec<Group>, PlanError> {
    if places.len() == 0 {
        let message = "this process may use no cpu of this machine; check the cpuset";
        return Err(PlanError::NotHere(message.to_owned()));
    }
    let mut taken = vec![0; places.len()];
    let mut groups = Vec::new();
    for group in 0..deal.groups {
        let own = group % places.len();
        let threads = (0..deal.threads).map(|thread| {
            let place = match deal.arrangement {
                Arrangement::CoLocated => own,
                Arrangement::RoundRobin => thread % places.len(),
            };
            taken[place] += 1;
            places.way(place, taken[place] - 1)
        });
        let threads = threads.collect();
        groups.push(Group { home: home(draft, strategy, places.0[own].node)?, threads });
    }
    Ok(groups)
}

fn home(draft: &Draft<'_>, strategy: Strategy, node: NodeId) -> Result<Home, PlanError> {
    Ok(match strategy.home_of(draft.machine, node)?.memory {
        MemoryHome::Once(Policy::Preferred(home)) => Home::On(home),
        MemoryHome::Once(Policy::Bind(nodes) | Policy::Interleave(nodes)) => {
            Home::Over(nodes.iter().collect())
        }
        MemoryHome::Once(Policy::WeightedInterleave(nodes)) => {
            Home::Weighted(nodes.iter().collect())
        }
        MemoryHome::Once(Policy::Local) => Home::Local,
        MemoryHome::Once(Policy::Default) => Home::Inherited,
        MemoryHome::CopyPerNode(_) => {
            return Err(PlanError::Options(format!(
                "an array has one home; '{strategy}' gives many"
            )));
        }
    })
}
