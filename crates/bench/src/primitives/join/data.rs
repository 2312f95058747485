//! Two tables of which it is known, without joining them, what matches what.

use std::fmt;
use std::sync::Arc;

use anyhow::Result;
use atoll_tools::workload::{ColumnTable, Draw, Keys, Permutation, Rig, Zipf, scramble, shown};
use serde_json::{Value, json};

use crate::check::Check;

/// Most keys that probing rows are drawn from.
const UNIVERSE_MAX: f64 = (1_u64 << 32) as f64;

/// The distribution of the rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Data {
    pub(super) build: u64,
    pub(super) probe: u64,
    pub(super) duplicates: u64,
    pub(super) matches: f64,
    pub(super) keys: Keys,
    pub(super) seed: u64,
}

/// Both tables, and the result of their join.
#[derive(Debug)]
pub(super) struct Sides {
    pub(super) build: ColumnTable,
    pub(super) probe: ColumnTable,
    pub(super) expected: Check,
}

/// Rows of the smaller table that have the same key: how many, and the sum of their payloads.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    rows: u64,
    sum: i64,
}

/// The keys there are, by number: each number below `built` is a key of the smaller table, the others
/// match nothing. Numbers are dealt to places so that the two kinds mix.
#[derive(Clone, Copy, Debug)]
struct Universe {
    built: u64,
    len: u64,
    order: Order,
    scramble: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Order {
    Mixed(Permutation),
    /// Rising numbers have rising places.
    Rising,
}

impl Universe {
    /// Where the key of a number lies.
    fn place(self, number: u64) -> u64 {
        match self.order {
            Order::Mixed(permutation) => permutation.at(number),
            Order::Rising => {
                (u128::from(number) * u128::from(self.len) / u128::from(self.built)) as u64
            }
        }
    }

    /// The number of the key there; none if it is not a key of the smaller table.
    fn number(self, place: u64) -> Option<u64> {
        let number = match self.order {
            Order::Mixed(permutation) => permutation.back(place),
            Order::Rising => {
                (u128::from(place) * u128::from(self.built)).div_ceil(u128::from(self.len)) as u64
            }
        };
        (number < self.built && self.place(number) == place).then_some(number)
    }

    fn key(self, place: u64) -> i64 {
        match self.scramble {
            Some(seed) => scramble(place ^ seed) as i64,
            None => place as i64,
        }
    }
}

impl Data {
    /// An error message if there are too many distinct keys.
    pub(super) fn mistake(self) -> Option<String> {
        let keys = self.build.div_ceil(self.duplicates) as f64 / self.matches;
        (keys > UNIVERSE_MAX).then(|| {
            format!("{self}: keys are drawn from {keys:.0}; choose fewer rows or more matches, up to 2^32")
        })
    }

    fn universe(self) -> Universe {
        let built = self.build.div_ceil(self.duplicates);
        let len = ((built as f64 / self.matches).round() as u64).max(built);
        let order = match self.keys {
            Keys::Sorted | Keys::Reversed => Order::Rising,
            _ => Order::Mixed(Permutation::new(self.seed, len)),
        };
        let scramble = (self.keys == Keys::Sparse).then(|| scramble(self.seed));
        Universe { built, len, order, scramble }
    }

    /// Makes the tables.
    pub(super) fn sides(self, rig: &Rig) -> Result<Sides> {
        let universe = self.universe();
        let build_row = self.build_row();
        let build = ColumnTable::make(rig, self.build, move |row| {
            let (number, payload) = build_row(row);
            (universe.key(universe.place(number)), payload)
        })?;
        let probe_row = self.probe_row(universe);
        let probe = ColumnTable::make(rig, self.probe, move |row| {
            let (place, payload) = probe_row(row);
            (universe.key(place), payload)
        })?;
        let expected = self.expected(rig, universe)?;
        Ok(Sides { build, probe, expected })
    }

    /// Number of the key, and payload, of a row of the smaller table.
    fn build_row(self) -> impl Fn(u64) -> (u64, i64) + Send + Sync + 'static {
        let order = Permutation::new(self.seed.wrapping_add(1), self.build);
        move |row| {
            let rank = match self.keys {
                Keys::Sorted => row,
                Keys::Reversed => self.build - 1 - row,
                _ => order.at(row),
            };
            (rank / self.duplicates, Draw::for_row(self.seed, 1, row).value())
        }
    }

    /// Place of the key, and payload, of a row of the larger table.
    fn probe_row(self, universe: Universe) -> impl Fn(u64) -> (u64, i64) + Send + Sync + 'static {
        let zipf = Zipf::new(universe.len);
        let Self { keys, seed, probe, .. } = self;
        let rising =
            move |row: u64| (u128::from(row) * u128::from(universe.len) / u128::from(probe)) as u64;
        let frequent = Permutation::new(seed.wrapping_add(2), universe.len);
        move |row| {
            let mut draw = Draw::for_row(seed, 2, row);
            let place = match keys {
                Keys::Dense | Keys::Sparse => draw.below(universe.len),
                Keys::Zipf => frequent.at(zipf.draw(&mut draw)),
                // A key that matches.
                Keys::Hot if draw.below(10) > 0 => universe.place(0),
                Keys::Hot => draw.below(universe.len),
                Keys::Sorted => rising(row),
                Keys::Reversed => rising(probe - 1 - row),
            };
            (place, draw.value())
        }
    }

    fn expected(self, rig: &Rig, universe: Universe) -> Result<Check> {
        let mut groups = vec![Group::default(); universe.built as usize];
        let build_row = self.build_row();
        for (number, payload) in (0..self.build).map(build_row) {
            let group = &mut groups[number as usize];
            group.rows += 1;
            group.sum += payload;
        }
        let (groups, probe_row) = (Arc::new(groups), self.probe_row(universe));
        let (rows, workers) = (self.probe, rig.threads as u64);
        let step = rig.context.on_workers("expected", move |worker, _| {
            let worker = u64::from(worker.0);
            let mut all = (0_u64, 0_i64, 0_i64);
            for row in rows * worker / workers..rows * (worker + 1) / workers {
                let (place, payload) = probe_row(row);
                let Some(number) = universe.number(place) else { continue };
                let group = groups[number as usize];
                all.0 += group.rows;
                all.1 = all.1.wrapping_add(group.sum);
                all.2 = all.2.wrapping_add(payload.wrapping_mul(group.rows as i64));
            }
            Ok(all)
        });
        let (all, _) = rig.wait(step)?;
        let (mut matches, mut build, mut probe) = (0, 0_i64, 0_i64);
        for worker in all {
            matches += worker.0;
            build = build.wrapping_add(worker.1);
            probe = probe.wrapping_add(worker.2);
        }
        Ok(Check::of_join(matches, build, probe))
    }

    pub(super) fn labels(self, threads: usize) -> Value {
        json!({
            "build": self.build,
            "probe": self.probe,
            "duplicates": self.duplicates,
            "matches": self.matches,
            "keys": self.keys.to_string(),
            "threads": threads,
        })
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { build, probe, duplicates, matches, keys, .. } = self;
        write!(
            f,
            "{} with {} rows, {keys} keys, {duplicates} of each, {:.1} % matching",
            shown(*build),
            shown(*probe),
            100.0 * matches
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_place_of_its_own_and_the_other_places_match_nothing() {
        for keys in [Keys::Dense, Keys::Sorted] {
            let data = Data { build: 100, probe: 1, duplicates: 3, matches: 0.3, keys, seed: 5 };
            let universe = data.universe();
            assert_eq!((universe.built, universe.len), (34, 113));
            for number in 0..universe.built {
                assert_eq!(universe.number(universe.place(number)), Some(number), "{keys}");
            }
            let matching = (0..universe.len).filter(|place| universe.number(*place).is_some());
            assert_eq!(matching.count(), 34, "{keys}");
        }
    }

    #[test]
    fn a_join_of_both_tables_finds_what_is_expected() {
        let machine = Arc::new(atoll_topology::Machine::discover().unwrap());
        let rig = Rig::start(&machine, 3, &atoll_primitives::Tuning::default()).unwrap();
        for keys in [Keys::Dense, Keys::Sparse, Keys::Zipf, Keys::Hot, Keys::Sorted, Keys::Reversed]
        {
            let data = Data { build: 50, probe: 400, duplicates: 2, matches: 0.5, keys, seed: 9 };
            let sides = data.sides(&rig).unwrap();
            let (build, probe): (Vec<_>, Vec<_>) =
                (sides.build.rows().collect(), sides.probe.rows().collect());
            let (mut matches, mut sums) = (0, (0, 0));
            for (key, payload) in &probe {
                for (other, of_build) in &build {
                    if key == other {
                        matches += 1;
                        sums = (sums.0 + of_build, sums.1 + payload);
                    }
                }
            }
            assert_eq!(sides.expected, Check::of_join(matches, sums.0, sums.1), "{keys}");
            assert!(matches > 0, "{keys}");
        }
    }
}
