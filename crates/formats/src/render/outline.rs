//! The tree: packages, their nodes, domains and cores; then the nodes that do not belong to a single package.
//! Machines with many nodes are summarised as in pictures.

use super::blocks::{NODES_DRAWN_MAX, grouped_nodes};
use super::sections::{cache, memory};
use super::words::{count, list};
use atoll_topology::{Core, Domain, Machine, Node, Package};

/// Above this number of cores, each domain shows the number of its cores in one line.
const CORES_LISTED_MAX: usize = 16;

/// A line and the lines below it.
struct Branch {
    text: String,
    below: Vec<Branch>,
}

/// The tree of the machine; nodes of large machines are grouped by shape, as in pictures.
pub(super) fn outline(machine: &Machine) -> String {
    if machine.nodes.len() > NODES_DRAWN_MAX {
        return grouped_nodes(machine).iter().map(|line| format!("{line}\n")).collect();
    }
    let packages = machine.packages.iter().map(|package| package_branch(machine, package));
    let others = machine.nodes.iter().filter(|node| node.package.is_none());
    let mut text = String::new();
    for branch in packages.chain(others.map(|node| node_branch(machine, node))) {
        text.push_str(&branch.text);
        text.push('\n');
        print_below(&mut text, &branch, "");
    }
    text
}

fn print_below(text: &mut String, branch: &Branch, indent: &str) {
    for (left, below) in (0..branch.below.len()).rev().zip(&branch.below) {
        let (mark, rail) = if left == 0 { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        text.extend([indent, mark, &below.text, "\n"]);
        print_below(text, below, &format!("{indent}{rail}"));
    }
}

fn package_branch(machine: &Machine, package: &Package) -> Branch {
    let nodes = machine.nodes.iter().filter(|node| node.package == Some(package.id));
    let below: Vec<Branch> = nodes.map(|node| node_branch(machine, node)).collect();
    let mut text = format!("package {}", package.id);
    if let Some(model) = &package.model {
        text.push_str(&format!(": {model}"));
    }
    if below.is_empty() {
        text.push_str(&format!("; {}", list("cpu", &package.cpus)));
    }
    Branch { text, below }
}

fn node_branch(machine: &Machine, node: &Node) -> Branch {
    let memory = match node.memory.0 {
        0 if machine.hidden.nodes.contains(node.id) => "memory not allowed".to_owned(),
        0 => "no memory".to_owned(),
        _ => memory(machine, node.memory, node.memory_free),
    };
    let caches = node.side_caches.iter().map(|cache| format!(", behind a cache of {}", cache.size));
    let memory = memory + &caches.collect::<String>();
    let near = match node.near.is_empty() {
        true => String::new(),
        false => format!(", nearest to {}", list("cpu", &node.near)),
    };
    let below = machine.domains_of(node.id).map(|domain| domain_branch(machine, domain)).collect();
    Branch { text: format!("node {}: {memory}; {}{near}", node.id, list("cpu", &node.cpus)), below }
}

fn domain_branch(machine: &Machine, domain: &Domain) -> Branch {
    let cores: Vec<&Core> = machine.cores.iter().filter(|core| core.domain == domain.id).collect();
    let cache = cache(domain.cache_level, domain.cache);
    let cpus = list("cpu", &domain.cpus);
    if machine.cores.len() > CORES_LISTED_MAX {
        let cores = cores_counted(&cores);
        let text = format!("domain {}: {cache}; {cores}; {cpus}", domain.id);
        return Branch { text, below: Vec::new() };
    }
    let below = cores.into_iter().map(core_branch).collect();
    Branch { text: format!("domain {}: {cache}; {cpus}", domain.id), below }
}

/// `8 cores × 2 cpus`, or `8 cores` where they differ.
fn cores_counted(cores: &[&Core]) -> String {
    let text = count(cores.len(), "core");
    let threads = cores[0].cpus.len();
    let alike = cores.iter().all(|core| core.cpus.len() == threads);
    if alike { format!("{text} × {}", count(threads, "cpu")) } else { text }
}

fn core_branch(core: &Core) -> Branch {
    Branch { text: format!("core {}: {}", core.id, list("cpu", &core.cpus)), below: Vec::new() }
}
