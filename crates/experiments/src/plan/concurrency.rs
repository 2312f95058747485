//! Experiment 4: as many processes as nodes or domains, each with as many threads, which share an
//! array: all on one place, or dealt out over all.

use super::{ArmVariant, Draft, LAB, LARGE, RowSubject, SMALL, custom};
use crate::places::Localities;
use crate::{Arrangement, By, PlanError};

pub(super) fn plan(draft: &mut Draft<'_>) -> Result<(), PlanError> {
    let is_single = draft.places(By::Node).len() < 2;
    let by = draft.options.by.unwrap_or(if is_single { By::Domain } else { By::Node });
    let places = Localities::from_machine(draft.machine, by);
    if places.len() < 2 {
        let what = match draft.options.by {
            Some(by) => format!("two {}", by.plural()),
            None => "two nodes or two domains".to_owned(),
        };
        draft.note(format!(
            "experiment 4: comparing shared and unshared caches needs {what}; \
                            {LAB}"
        ));
        return Ok(());
    }
    if by == By::Domain {
        draft.note("experiment 4: by domain".to_owned());
    }
    let count = places.len();
    if places.is_short_of(count) {
        let what = by.plural();
        draft.note(format!(
            "experiment 4: some {what} have fewer than {count} cpus: their threads share them, and \
             times say little"
        ));
    }
    for size in [SMALL, LARGE] {
        for operation in draft.operations() {
            let mut variants = Vec::new();
            for arrangement in [Arrangement::CoLocated, Arrangement::RoundRobin] {
                let deal = custom::Deal { groups: count, threads: count, arrangement };
                let groups = custom::groups(draft, &places, &deal, Default::default())?;
                let setting = arrangement.name().to_owned();
                variants.push(ArmVariant { setting, groups, migrations: 0 });
            }
            let who = format!("{count} groups");
            let subject =
                RowSubject { experiment: 4, who, operation: *operation, size, processes: true };
            draft.row(&subject, variants);
        }
    }
    Ok(())
}
