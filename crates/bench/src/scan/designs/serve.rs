//! The process of a shard: this program again, which receives its statements and then answers batches.

use std::io::{Read, Write};
use std::sync::Arc;

use anyhow::{Context, Result};
use atoll_topology::{CpuSet, NodeId};
use clap::Args;

use super::process::read_message;
use super::shard::{Shard, ShardPart, ShardPlace};
use super::{message, pipes, shared_memory};
use crate::worker::this_machine;

/// Arguments of a process with a shard.
#[derive(Args, Clone, Debug)]
pub(crate) struct ShardArgs {
    /// Rows of the relation
    #[arg(long)]
    relation: u64,
    #[arg(long)]
    seed: u64,
    /// First row of the shard
    #[arg(long)]
    first: u64,
    /// Rows of the shard
    #[arg(long)]
    rows: u64,
    /// Node on which they lie
    #[arg(long)]
    node: u32,
    /// Cpus on which they are scanned
    #[arg(long)]
    cpus: String,
    /// Descriptor of the shared memory for messages [default: pipes]
    #[arg(long)]
    shared: Option<i32>,
}

/// Makes the rows of the shard, and answers until its input ends.
pub(crate) fn serve(args: &ShardArgs, mut input: impl Read, output: &mut impl Write) -> Result<()> {
    let statements = read_message(&mut input)?.context("no statements received")?;
    let statements: Arc<[_]> = message::statements(&statements)?.into();
    let cpus = CpuSet::parse(&args.cpus).context("--cpus is not a list of cpus")?;
    let place = ShardPlace { node: NodeId(args.node), cpus };
    place.bind();
    let (machine, _) = this_machine()?;
    let rows = args.first..args.first + args.rows;
    let part = ShardPart { relation_rows: args.relation, seed: args.seed, rows };
    let shard = Shard::load(&machine, &part, Some(place.node), statements)?;
    match args.shared {
        Some(descriptor) => shared_memory::serve(&shard, descriptor),
        None => pipes::serve(&shard, input, output),
    }
}
