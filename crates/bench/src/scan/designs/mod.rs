//! The study's three designs of an engine side by side (Giceva 2011): shards of the relation, each scanned by one
//! worker, to which batches come as messages. Workers are threads of one address space, processes that share
//! memory, or processes with nothing but their messages; they process a batch alike.
//!
//! ```text
//! batch ─┬─▶ ShardLink ─▶ shard 0: its rows, a clock scan ─▶ ShardRows ─┬─▶ rows of each query
//!        └─▶ ShardLink ─▶ shard 1                         ─▶            ─┘
//! ```
//!
//! | File | Owns |
//! |---|---|
//! | `shard` | the rows of a shard, and the scan that answers a batch |
//! | `rows` | rows found by a shard |
//! | `message` | queries and rows as bytes |
//! | `threads` | shards of threads |
//! | `process` | the handle of a shard's process |
//! | `serve` | what such a process does |
//! | `pipes` | messages through pipes |
//! | `shared_memory` | messages through shared memory |
//! | `counted` | processor counters of a pass |

mod counted;
mod message;
mod pipes;
mod process;
mod rows;
mod serve;
mod shard;
mod shared_memory;
mod threads;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use atoll_topology::Machine;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::queries::{ScanQueries, ScanQuery, ScanStatement};
pub(super) use counted::CountedPass;
use rows::ShardRows;
pub(crate) use serve::{ShardArgs, serve};
use shard::{ShardPart, ShardPlace};

/// Queries by which the designs are compared before they are measured.
const COMPARED: usize = 256;

/// The handle of a shard.
trait ShardLink {
    /// Sends it a batch.
    fn send(&mut self, batch: &Arc<[ScanQuery]>) -> Result<()>;

    /// Waits for the rows found.
    fn receive(&mut self) -> Result<ShardRows>;
}

/// A relation in shards, under one of the designs.
pub(super) struct Design {
    pub(super) name: &'static str,
    links: Vec<Box<dyn ShardLink>>,
}

/// The parts common to all designs.
#[derive(Clone, Debug)]
pub(super) struct DesignSetup {
    pub(super) machine: Arc<Machine>,
    pub(super) rows: u64,
    pub(super) seed: u64,
    /// One for each thread or process.
    pub(super) shards: usize,
    pub(super) statements: Arc<[ScanStatement]>,
}

impl DesignSetup {
    /// All designs with their rows, which answer some queries alike. Threads that know nothing of nodes are among
    /// them where there are several.
    pub(super) fn start(&self, queries: &ScanQueries, seed: u64) -> Result<Vec<Design>> {
        let mut designs = vec![
            self.design("threads", threads::start)?,
            self.design("processes that share memory", shared_memory::start)?,
            self.design("processes that send messages", pipes::start)?,
        ];
        if self.machine.nodes_with_cpus().count() > 1 {
            let links = threads::start_unaware(self)?;
            designs.push(Design { name: "threads, unaware of nodes", links });
        }
        let batch = random_batch(queries, COMPARED, &mut StdRng::seed_from_u64(seed));
        let mut wanted = None;
        for design in &mut designs {
            let found = design.answer(&batch)?;
            let wanted = wanted.get_or_insert_with(|| found.clone());
            ensure!(found == *wanted, "{} and threads answer queries differently", design.name);
        }
        Ok(designs)
    }

    fn design(
        &self,
        name: &'static str,
        start: fn(&Self, ShardPart, ShardPlace) -> Result<Box<dyn ShardLink>>,
    ) -> Result<Design> {
        // All shards make their rows at the same time: a link waits for its shard on first use.
        let links =
            (0..self.shards).map(|number| start(self, self.part(number), self.place(number)));
        Ok(Design { name, links: links.collect::<Result<_>>()? })
    }

    fn part(&self, number: usize) -> ShardPart {
        let end = |number: usize| self.rows * number as u64 / self.shards as u64;
        ShardPart { relation_rows: self.rows, seed: self.seed, rows: end(number)..end(number + 1) }
    }

    /// Shards are dealt to the nodes in their order.
    fn place(&self, number: usize) -> ShardPlace {
        let nodes: Vec<_> = self.machine.nodes_with_cpus().collect();
        let node = nodes[number * nodes.len() / self.shards];
        ShardPlace { node: node.id, cpus: node.cpus.clone() }
    }
}

impl Design {
    /// Runs batches of this size one after the other; returns queries per second.
    pub(super) fn measure(
        &mut self,
        queries: &ScanQueries,
        batch: usize,
        time: Duration,
        seed: u64,
    ) -> Result<f64> {
        let mut random = StdRng::seed_from_u64(seed);
        let (start, mut answered) = (Instant::now(), 0);
        while start.elapsed() < time {
            let found = self.answer(&random_batch(queries, batch, &mut random))?;
            answered += found.rows.len();
        }
        Ok(answered as f64 / start.elapsed().as_secs_f64())
    }

    /// One pass of all shards.
    fn answer(&mut self, batch: &Arc<[ScanQuery]>) -> Result<ShardRows> {
        for link in &mut self.links {
            link.send(batch)?;
        }
        let mut all = ShardRows::none(batch.len());
        for link in &mut self.links {
            all.add(&link.receive()?)?;
        }
        Ok(all)
    }
}

fn random_batch(queries: &ScanQueries, count: usize, random: &mut StdRng) -> Arc<[ScanQuery]> {
    let all = &queries.queries;
    (0..count).map(|_| all[random.random_range(0..all.len())]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::relation::Relation;
    use super::*;

    #[test]
    fn threads_find_the_rows_that_pass_whatever_the_number_of_shards() {
        let relation = Relation::new(3_000, 5);
        let queries = ScanQueries::draw(&relation, 4, 5).expect("queries");
        let batch: Arc<[ScanQuery]> = queries.queries.iter().copied().collect();
        let wanted: Vec<u32> = (0..queries.queries.len())
            .map(|query| queries.rows_of(query, &relation).len() as u32)
            .collect();
        let machine = Arc::new(Machine::discover().expect("this machine"));
        let mut all = Vec::new();
        for shards in [1, 3] {
            let statements = queries.statements.iter().copied().collect();
            let machine = Arc::clone(&machine);
            let setup = DesignSetup { machine, rows: 3_000, seed: 5, shards, statements };
            let mut threads = setup.design("threads", threads::start).expect("threads");
            all.push(threads.answer(&batch).expect("an answer"));
            let links = threads::start_unaware(&setup).expect("threads");
            all.push(Design { name: "unaware", links }.answer(&batch).expect("an answer"));
        }
        assert_eq!(all[0].rows, wanted);
        assert!(all.iter().all(|found| *found == all[0]));
    }
}
