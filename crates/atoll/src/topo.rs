//! `atoll topo`.

use std::io::{self, Write};

use anyhow::Context;
use atoll_topology::{Machine, render};

use crate::cli::TopoArgs;
use crate::exit::Ends;

/// Prints the machine.
pub(crate) fn run(args: &TopoArgs) -> Result<(), Ends> {
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
