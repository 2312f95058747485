//! Shards of processes that share nothing: batches and rows are messages through pipes.

use std::io::{Read, Write};
use std::sync::Arc;

use anyhow::Result;

use super::super::queries::ScanQuery;
use super::process::{ShardProcess, answer, read_message, write_message};
use super::rows::ShardRows;
use super::shard::{Shard, ShardPart, ShardPlace};
use super::{DesignSetup, ShardLink, message};

struct PipeLink(ShardProcess);

/// A process with a shard.
pub(super) fn start(
    setup: &DesignSetup,
    part: ShardPart,
    place: ShardPlace,
) -> Result<Box<dyn ShardLink>> {
    Ok(Box::new(PipeLink(ShardProcess::start(setup, &part, &place, None)?)))
}

impl ShardLink for PipeLink {
    fn send(&mut self, batch: &Arc<[ScanQuery]>) -> Result<()> {
        self.0.send(&message::of_batch(batch))
    }

    fn receive(&mut self) -> Result<ShardRows> {
        message::rows(&self.0.receive()?)
    }
}

/// Answers batches until there are no more.
pub(super) fn serve(shard: &Shard, mut input: impl Read, output: &mut impl Write) -> Result<()> {
    while let Some(batch) = read_message(&mut input)? {
        write_message(output, &answer(shard, &batch)?)?;
    }
    Ok(())
}
