//! `lab list`: the machines that ship, as the lab boots them.

use std::io::{Write, stdout};

use atoll_lab::{Guest, GuestShape};
use serde::Serialize;

use super::machine::ends;
use crate::exit::CommandError;

/// Arguments.
#[derive(clap::Args, Debug)]
pub(super) struct ListArgs {
    /// One JSON document
    #[arg(long)]
    json: bool,
}

/// A machine as it is booted.
#[derive(Serialize)]
struct MachineRow {
    name: &'static str,
    nodes: usize,
    cpus: usize,
    memory_bytes: u64,
    notes: Vec<String>,
}

/// Runs it.
pub(super) fn run(args: &ListArgs) -> Result<(), CommandError> {
    let rows = rows()?;
    let mut out = stdout().lock();
    if args.json {
        let text = serde_json::to_string_pretty(&rows).map_err(anyhow::Error::from)?;
        writeln!(out, "{text}")?;
        return Ok(());
    }
    let head = ["machine", "nodes", "cpus", "memory", "what is cut of it or assumed"];
    write_row(&mut out, head)?;
    for row in &rows {
        let (nodes, cpus) = (row.nodes.to_string(), row.cpus.to_string());
        let memory = atoll_topology::Bytes(row.memory_bytes).to_string();
        write_row(&mut out, [row.name, &nodes, &cpus, &memory, &row.notes.join("; ")])?;
    }
    Ok(())
}

fn write_row(out: &mut impl Write, cells: [&str; 5]) -> std::io::Result<()> {
    let [name, nodes, cpus, memory, notes] = cells;
    writeln!(out, "{name:<22}  {nodes:>5}  {cpus:>4}  {memory:>9}  {notes}")
}

fn rows() -> Result<Vec<MachineRow>, CommandError> {
    atoll_formats::shipped().iter().map(|(name, _)| row(name)).collect()
}

fn row(name: &'static str) -> Result<MachineRow, CommandError> {
    let known = atoll_formats::open(name).map_err(anyhow::Error::from)?;
    let guest = Guest::try_from_knowledge(&known, &GuestShape::default())
        .map_err(|error| ends(error.into()))?;
    let machine = &guest.knowledge().machine;
    Ok(MachineRow {
        name,
        nodes: machine.nodes.len(),
        cpus: machine.cpus.len(),
        memory_bytes: machine.memory().0,
        notes: guest.notes().to_vec(),
    })
}
