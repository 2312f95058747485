//! `topo`: the machine.

use std::io::{self, Write};

use anyhow::Context;
use atoll_topology::{Machine, render};

use crate::exit::Ends;

/// What `--help` shows.
pub const EXAMPLES: &str = "\
Examples:
  atoll topo
  atoll topo --json | jq '.nodes[].cpus'
  atoll topo --synthetic 'node:4(memory=16GiB) l3:2 core:8 pu:2'";

/// Arguments.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// One JSON document instead of a tree
    #[arg(long)]
    json: bool,
    /// A machine that is described rather than this one, such as 'node:4 core:2 pu:1'
    #[arg(long, value_name = "DESCRIPTION")]
    synthetic: Option<String>,
}

/// Prints the machine.
pub(crate) fn run(args: &Args) -> Result<(), Ends> {
    let machine = match &args.synthetic {
        Some(text) => Machine::synthetic(text).map_err(anyhow::Error::from)?,
        None => Machine::discover().context("this machine cannot be described")?,
    };
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", render::json(&machine))?;
    } else {
        out.write_all(render::tree(&machine).as_bytes())?;
    }
    out.flush()?;
    Ok(())
}
