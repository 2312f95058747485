//! Shards of threads in one address space, as in the product: batches and rows are handed over by reference.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use anyhow::{Context, Result};
use atoll_sql::store::clock_scan::QueryRows;

use super::super::queries::ScanQuery;
use super::rows::ShardRows;
use super::shard::{Shard, ShardPart, ShardPlace};
use super::{DesignSetup, ShardLink};

/// A thread with a shard. It ends when this is dropped.
struct ThreadLink {
    batches: Sender<Arc<[ScanQuery]>>,
    answers: Receiver<Result<Vec<QueryRows>>>,
}

/// A thread on the node of its shard.
pub(super) fn start(
    setup: &DesignSetup,
    part: ShardPart,
    place: ShardPlace,
) -> Result<Box<dyn ShardLink>> {
    let setup = setup.clone();
    Ok(thread(move || {
        place.bind();
        Shard::load(&setup.machine, &part, Some(place.node), setup.statements)
    }))
}

/// Threads that run anywhere, over rows that one thread has made.
pub(super) fn start_unaware(setup: &DesignSetup) -> Result<Vec<Box<dyn ShardLink>>> {
    let load = |number: usize| {
        let statements = Arc::clone(&setup.statements);
        let shard = Shard::load(&setup.machine, &setup.part(number), None, statements)?;
        Ok(thread(move || Ok(shard)))
    };
    (0..setup.shards).map(load).collect()
}

fn thread(load: impl FnOnce() -> Result<Shard> + Send + 'static) -> Box<dyn ShardLink> {
    let (batches, to_answer) = channel::<Arc<[ScanQuery]>>();
    let (to_ask, answers) = channel();
    thread::spawn(move || {
        let shard = load();
        // Ends when its link is dropped.
        while let Ok(batch) = to_answer.recv() {
            let answer = match &shard {
                Ok(shard) => shard.answer(&batch),
                Err(error) => Err(anyhow::anyhow!("{error:#}")),
            };
            if to_ask.send(answer).is_err() {
                return;
            }
        }
    });
    Box::new(ThreadLink { batches, answers })
}

impl ShardLink for ThreadLink {
    fn send(&mut self, batch: &Arc<[ScanQuery]>) -> Result<()> {
        self.batches.send(Arc::clone(batch)).ok().context("the thread of a shard has ended")
    }

    fn receive(&mut self) -> Result<ShardRows> {
        let answer = self.answers.recv().context("the thread of a shard has ended")?;
        Ok(ShardRows::from_rows(&answer?))
    }
}
