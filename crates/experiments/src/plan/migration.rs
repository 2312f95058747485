//! Experiments 2 and 3: threads that are forced to other nodes while they run.
//!
//! In experiment 2 a single thread goes round the nodes; a small array is in every last-level cache
//! after the first round. In experiment 3 a thread starts on every node, each with an array of its
//! own, and all go on to the next node at the same access: each finds the array of its predecessor in
//! the cache and evicts it.

use atoll_placement::Strategy;

use super::{ArmVariant, Draft, LAB, LARGE, RowSubject, SMALL, remote};
use crate::places::Localities;
use crate::{By, Group, Home, Operation, PlanError};

/// Migrations that table 1 compares.
const TABLE: [u32; 2] = [0, 100];
/// Migrations of figure 2: 0 and 3 in figure 2a, up to 200 in figure 2b.
const FIGURE: [u32; 6] = [0, 3, 50, 100, 150, 200];

pub(super) fn plan_one(draft: &mut Draft<'_>) -> Result<(), PlanError> {
    rows(draft, 2, 1)
}

pub(super) fn plan_ring(draft: &mut Draft<'_>) -> Result<(), PlanError> {
    let threads = draft.places(By::Node).len();
    rows(draft, 3, threads)
}

fn rows(draft: &mut Draft<'_>, experiment: u8, threads: usize) -> Result<(), PlanError> {
    let places = draft.places(By::Node);
    let groups = groups(draft, &places, threads)?;
    let can_migrate = places.len() > 1;
    if !can_migrate {
        draft.note(format!("experiment {experiment}: migration needs two nodes; {LAB}"));
    }
    for size in [SMALL, LARGE] {
        for operation in draft.operations() {
            let is_in_figure = experiment == 3 && size == SMALL && *operation == Operation::Read;
            let counts = match &draft.options.migrations {
                Some(counts) => counts.clone(),
                None if is_in_figure => FIGURE.to_vec(),
                None => TABLE.to_vec(),
            };
            let counts = counts.into_iter().filter(|count| can_migrate || *count == 0);
            let who = if threads > 1 { format!("{threads} threads") } else { String::new() };
            let subject =
                RowSubject { experiment, who, operation: *operation, size, processes: false };
            let variants = counts.map(|count| ArmVariant {
                setting: migrations(count),
                groups: groups.clone(),
                migrations: count,
            });
            draft.row(&subject, variants.collect());
        }
    }
    Ok(())
}

/// A group of one thread for each of the first places, its array on the node it starts on.
fn groups(draft: &Draft<'_>, places: &Localities, threads: usize) -> Result<Vec<Group>, PlanError> {
    let group = |(i, place): (usize, &crate::places::Locality)| {
        let home = remote::home(draft, Strategy::Aligned, place.node)?;
        Ok(Group { home: Home::On(home), threads: vec![places.way(i, 0)] })
    };
    places.0.iter().enumerate().take(threads).map(group).collect()
}

/// `100 migrations`.
pub(super) fn migrations(count: u32) -> String {
    match count {
        0 => "no migrations".to_owned(),
        1 => "1 migration".to_owned(),
        _ => format!("{count} migrations"),
    }
}
