//! Questions to the knowledge base: `facts`, `nearest`, `best-cores`, `route`.

use std::fmt::Write;
use std::time::SystemTime;

use atoll_formats::render;
use atoll_topology::{
    Age, CostBasis, CpuSet, Fact, Knowledge, LinkId, NodeId, Quantity, SetSpec, Source, Subject,
};
use serde_json::{Value, json};

use crate::exit::{CommandError, Exit};

/// Arguments of `facts`.
#[derive(clap::Args, Debug)]
pub(super) struct FactsArgs {
    /// Only this quantity, such as latency or read_bandwidth
    #[arg(long, value_name = "QUANTITY", value_parser = quantity)]
    quantity: Option<Quantity>,
    /// Only facts from this source: measured, observed, discovered, declared, synthetic or assumed
    #[arg(long, value_name = "SOURCE", value_parser = source)]
    source: Option<Source>,
}

/// Arguments of `nearest`.
#[derive(clap::Args, Debug)]
pub(super) struct NearestArgs {
    /// Where the data are: a node, or nodes with weights such as 0=3,1=1
    #[arg(value_name = "NODES", value_parser = weights)]
    data: Weights,
    /// Free cores that the node must have
    #[arg(long, value_name = "N", default_value_t = 1)]
    cores: usize,
    /// Cpus that are free [default: all that this process may use]
    #[arg(long, value_name = "CPUS")]
    free: Option<SetSpec>,
}

/// Arguments of `best-cores`.
#[derive(clap::Args, Debug)]
pub(super) struct BestCoresArgs {
    /// Number of cores
    #[arg(value_name = "N", value_parser = at_least_one)]
    count: usize,
    /// Where the pages are: a node, or nodes with numbers of pages such as 0=3000,1=1000
    #[arg(long, value_name = "NODES", value_parser = weights, default_value = "")]
    pages: Weights,
    /// Cpus that are free [default: all that this process may use]
    #[arg(long, value_name = "CPUS")]
    free: Option<SetSpec>,
}

/// Arguments of `route`.
#[derive(clap::Args, Debug)]
pub(super) struct RouteArgs {
    /// The node of the cpus
    from: u32,
    /// The home of the memory
    to: u32,
}

/// Nodes with weights. A type of its own, because clap takes a bare list for a repeated argument.
#[derive(Clone, Debug)]
pub(super) struct Weights(Vec<(NodeId, u64)>);

fn weights(text: &str) -> Result<Weights, String> {
    let weight = |part: &str| {
        let (node, weight) = part.split_once('=').unwrap_or((part, "1"));
        match (node.trim().parse(), weight.trim().parse()) {
            (Ok(node), Ok(weight)) => Ok((NodeId(node), weight)),
            _ => Err(format!("'{part}' is neither a node nor NODE=WEIGHT, such as 0 or 0=3000")),
        }
    };
    let parts = text.split(',').filter(|part| !part.trim().is_empty());
    Ok(Weights(parts.map(weight).collect::<Result<_, _>>()?))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|&number: &usize| number > 0);
    number.ok_or_else(|| "expected a whole number from 1 on".to_owned())
}

fn quantity(text: &str) -> Result<Quantity, String> {
    Quantity::named(text)
        .ok_or_else(|| format!("expected one of {}", Quantity::ALL.map(Quantity::name).join(", ")))
}

fn source(text: &str) -> Result<Source, String> {
    Source::named(text)
        .ok_or_else(|| format!("expected one of {}", Source::ALL.map(Source::name).join(", ")))
}

/// All that is known, as text or JSON.
pub(super) fn facts(
    args: &FactsArgs,
    known: &Knowledge,
    json: bool,
) -> Result<String, CommandError> {
    let is_wanted = |fact: &Fact| {
        args.quantity.is_none_or(|quantity| fact.quantity == quantity)
            && args.source.is_none_or(|source| fact.source == source)
    };
    let facts: Vec<Fact> =
        known.all_facts().map(|fact| fact.into_owned()).filter(is_wanted).collect();
    let now = SystemTime::now();
    if json {
        return Ok(format!("{:#}\n", render::facts_json(&facts, now)));
    }
    let rows: Vec<[String; 9]> = facts.iter().map(|fact| fact_row(fact, now)).collect();
    Ok(table(
        &[
            "subject",
            "quantity",
            "value",
            "unit",
            "least",
            "most",
            "conditions",
            "source",
            "origin",
        ],
        &rows,
    ))
}

fn fact_row(fact: &Fact, now: SystemTime) -> [String; 9] {
    let threads = fact.conditions.threads.map(|threads| format!("{threads} threads"));
    let load = fact.conditions.load.map(|load| format!("at {load:.1} GB/s"));
    let conditions: Vec<String> = threads.into_iter().chain(load).collect();
    let age = fact.at.map(|at| format!(", {}", Age::since(at, now))).unwrap_or_default();
    [
        fact.subject.to_string(),
        fact.quantity.to_string(),
        value(fact.value),
        fact.quantity.unit().to_owned(),
        fact.spread.map(|spread| value(spread.min)).unwrap_or_default(),
        fact.spread.map(|spread| value(spread.max)).unwrap_or_default(),
        conditions.join(", "),
        fact.source.name().to_owned(),
        format!("{}{age}", fact.origin),
    ]
}

fn value(value: f64) -> String {
    match value.fract() == 0.0 {
        true => format!("{value}"),
        false => format!("{value:.2}"),
    }
}

/// Texts in columns, as wide as they have to be.
fn table<const N: usize>(heads: &[&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([heads[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |cells: &[String; N]| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    let mut text = line(&heads.map(str::to_owned));
    text.extend(rows.iter().map(line));
    text
}

/// The nearest node with enough free cores.
pub(super) fn nearest(
    args: &NearestArgs,
    known: &Knowledge,
    json: bool,
) -> Result<String, CommandError> {
    let free = free(args.free.as_ref(), known)?;
    let found = known.nearest(&args.data.0, args.cores, &free).map_err(not_here)?;
    if json {
        return Ok(document(&json!({
            "node": found.node,
            "cores_free": found.cores_free,
            "cost": found.cost,
            "cost_basis": basis(found.basis),
        })));
    }
    let cpus = known.machine.node(found.node).map(|node| node.cpus.to_string());
    Ok(format!(
        "node {}: {} free cores (cpus {}); {}\n",
        found.node,
        found.cores_free,
        cpus.unwrap_or_default(),
        cost(found.cost, found.basis),
    ))
}

/// The best cores for pages.
pub(super) fn best_cores(
    args: &BestCoresArgs,
    known: &Knowledge,
    json: bool,
) -> Result<String, CommandError> {
    let free = free(args.free.as_ref(), known)?;
    let best = known.best_cores(args.count, &args.pages.0, &free).map_err(not_here)?;
    if json {
        return Ok(document(&json!({
            "cores": best.cores,
            "cpus": best.cpus,
            "siblings": best.siblings,
            "cost": best.cost,
            "cost_basis": basis(best.basis),
        })));
    }
    let mut text = format!("cpus {}; {}\n", best.cpus, cost(best.cost, best.basis));
    if !best.siblings.is_empty() {
        let _ = writeln!(text, "their siblings: cpus {}", best.siblings);
    }
    let _ = writeln!(text, "use them: atoll run -C {} -- PROGRAM", best.cpus);
    Ok(text)
}

/// The links from node to node.
pub(super) fn route(
    args: &RouteArgs,
    known: &Knowledge,
    json: bool,
) -> Result<String, CommandError> {
    let (from, to) = (NodeId(args.from), NodeId(args.to));
    for node in [from, to] {
        if known.machine.node(node).is_none() {
            let nodes: atoll_topology::NodeSet =
                known.machine.nodes.iter().map(|node| node.id).collect();
            let message = format!("node {node} does not exist; expected one of {nodes}");
            return Err(CommandError::with(Exit::NotHere, message));
        }
    }
    let Some(route) = known.route(from, to) else {
        let message = format!(
            "no route from node {from} to node {to}: machine '{}' declares no links; declare them \
             in a machine file ('topo --of toml' writes one)",
            known.machine.name
        );
        return Err(CommandError::with(Exit::NotHere, message));
    };
    if json {
        return Ok(document(&json!({
            "nodes": route.nodes,
            "links": route.links,
            "hops": route.hops(),
            "narrowest_link": route.narrowest.map(|(link, _)| link),
            "narrowest_gb_s": route.narrowest.map(|(_, bandwidth)| bandwidth),
        })));
    }
    let nodes: Vec<String> = route.nodes.iter().map(|node| node.to_string()).collect();
    let hops = match route.hops() {
        1 => "1 hop".to_owned(),
        hops => format!("{hops} hops"),
    };
    let mut text = format!("node {}: {hops}\n", nodes.join(" → "));
    for &id in &route.links {
        let link = &known.machine.links[id.index()];
        let bandwidth = link_bandwidth(known, id).unwrap_or_default();
        let narrowest = match route.narrowest {
            Some((narrowest, _)) if narrowest == id && route.links.len() > 1 => ", the narrowest",
            _ => "",
        };
        let _ = writeln!(
            text,
            "  link {id}: {} between nodes {} and {}{bandwidth}{narrowest}",
            link.kind, link.a, link.b
        );
    }
    Ok(text)
}

fn not_here(error: impl std::fmt::Display) -> CommandError {
    CommandError::with(Exit::NotHere, error)
}

/// `, 10.9 GB/s (declared)`
fn link_bandwidth(known: &Knowledge, link: LinkId) -> Option<String> {
    let bandwidth = known.link_bandwidth(link)?;
    let is_it = |fact: &&Fact| {
        let subject = fact.subject == Subject::Link(link);
        subject && fact.quantity == Quantity::ReadBandwidth && fact.value == bandwidth
    };
    let source = known.facts.iter().find(is_it).map(|fact| format!(" ({})", fact.source.name()));
    Some(format!(", {bandwidth:.1} GB/s{}", source.unwrap_or_default()))
}

/// The cpus that count as free.
fn free(spec: Option<&SetSpec>, known: &Knowledge) -> Result<CpuSet, CommandError> {
    let all: CpuSet = known.machine.cpus.iter().map(|cpu| cpu.id).collect();
    let Some(spec) = spec else { return Ok(all) };
    let wanted = spec.resolve(&all, &all);
    match wanted.missing.is_empty() {
        true => Ok(wanted.usable),
        false => {
            let message = format!("cpus {} do not exist; expected cpus of {all}", wanted.missing);
            Err(CommandError::with(Exit::NotHere, message))
        }
    }
}

fn cost(cost: f64, basis: CostBasis) -> String {
    match basis {
        CostBasis::Latency(source) => {
            format!("{cost:.1} ns a mean access (latencies {})", source.name())
        }
        CostBasis::Distance(source) => {
            format!("mean distance {cost:.1} (distances {})", source.name())
        }
    }
}

fn basis(basis: CostBasis) -> Value {
    let (quantity, source) = match basis {
        CostBasis::Latency(source) => ("latency", source),
        CostBasis::Distance(source) => ("distance", source),
    };
    json!({ "quantity": quantity, "source": source.name() })
}

fn document(value: &Value) -> String {
    format!("{value:#}\n")
}
