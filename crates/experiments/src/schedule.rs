//! The work of a thread between its first access and its last: stretches of accesses, and what happens
//! at the end of each.

/// Accesses without anything else, and what comes after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// How many.
    pub(crate) accesses: u64,
    /// A slice of the run ends.
    pub(crate) ends_slice: bool,
    /// The thread waits for the others.
    pub(crate) meets: bool,
    /// The thread moves on.
    pub(crate) migrates: bool,
}

/// How a run is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunSchedule {
    /// Accesses in all.
    pub(crate) accesses: u64,
    /// Moves; the run is cut into one part more.
    pub(crate) migrations: u64,
    /// Parts that are timed.
    pub(crate) slices: u64,
    /// Accesses between two waits for the others; 0 for none but those at migrations.
    pub(crate) turn: u64,
}

impl RunSchedule {
    /// The stretches; their accesses add up to those of the run.
    pub(crate) fn stretches(self) -> impl Iterator<Item = Stretch> {
        let mut done = 0;
        std::iter::from_fn(move || {
            if done >= self.accesses {
                return None;
            }
            let stretch = self.stretch_from(done);
            done += stretch.accesses;
            Some(stretch)
        })
    }

    fn stretch_from(self, done: u64) -> Stretch {
        let slice = next_cut(done, self.accesses, self.slices);
        let part = next_cut(done, self.accesses, self.migrations.saturating_add(1));
        let turn = match self.turn {
            0 => self.accesses,
            turn => (done / turn + 1).saturating_mul(turn),
        };
        let end = slice.min(part).min(turn).min(self.accesses);
        let is_last = end == self.accesses;
        let migrates = end == part && !is_last;
        Stretch {
            accesses: end - done,
            ends_slice: end == slice || is_last,
            meets: !is_last && (end == turn || migrates),
            migrates,
        }
    }
}

/// The first cut after `done` when `whole` is cut into equal `parts`.
fn next_cut(done: u64, whole: u64, parts: u64) -> u64 {
    let (whole_wide, parts) = (u128::from(whole), u128::from(parts.clamp(1, whole.max(1))));
    let cut = |k: u128| (whole_wide * k / parts) as u64;
    let k = u128::from(done) * parts / whole_wide.max(1);
    // Rounded down, cut k may lie at or before `done`; one of the next two is after it.
    [cut(k), cut(k + 1), cut(k + 2)].into_iter().find(|cut| *cut > done).unwrap_or(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretches(accesses: u64, migrations: u64, slices: u64, turn: u64) -> Vec<Stretch> {
        RunSchedule { accesses, migrations, slices, turn }.stretches().collect()
    }

    #[test]
    fn every_access_is_made_once_and_every_cut_once() {
        for accesses in [1, 2, 7, 100, 1001, 4096] {
            for migrations in [0, 1, 3, 7, 100] {
                for slices in [1, 3, 50] {
                    for turn in [0, 1, 5, 64, 10_000] {
                        let all = stretches(accesses, migrations, slices, turn);
                        let sum: u64 = all.iter().map(|stretch| stretch.accesses).sum();
                        assert_eq!(sum, accesses);
                        assert!(all.iter().all(|stretch| stretch.accesses > 0));
                        let count = |is: fn(&Stretch) -> bool| {
                            all.iter().filter(|stretch| is(stretch)).count() as u64
                        };
                        assert_eq!(count(|it| it.migrates), migrations.min(accesses - 1));
                        assert_eq!(count(|it| it.ends_slice), slices.min(accesses));
                    }
                }
            }
        }
    }

    #[test]
    fn migrations_are_equally_spaced_and_all_threads_meet_there() {
        let all = stretches(1000, 3, 1, 0);
        let lengths: Vec<u64> = all.iter().map(|stretch| stretch.accesses).collect();
        assert_eq!(lengths, [250; 4]);
        assert!(all.iter().take(3).all(|stretch| stretch.migrates && stretch.meets));
        assert!(!all[3].migrates && !all[3].meets);
    }

    #[test]
    fn threads_meet_after_every_turn_and_never_at_the_end() {
        let all = stretches(10, 0, 1, 4);
        let meets: Vec<bool> = all.iter().map(|stretch| stretch.meets).collect();
        assert_eq!(meets, [true, true, false]);
    }

    #[test]
    fn more_accesses_than_a_run_has_end_as_they_should() {
        let last = stretches(1 << 40, 1, 2, 1 << 39).pop().unwrap();
        assert_eq!(last.accesses, 1 << 39);
    }
}
