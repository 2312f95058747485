//! Writes a machine as TOML, with every cpu by number.

use std::fmt::Write;

use super::values::{quoted, size_written};
use super::write_facts;
use atoll_topology::{Bytes, Cache, CacheKind, CpuSet, Knowledge, Link, Machine, Node, SideCache};

/// Writes a machine and its facts such that [`parse`](super::parse) returns the same knowledge, for every machine
/// within the format's limits (node and cpu numbers, sizes below 2⁶⁰ bytes, texts of up to 1,024 bytes) with figures
/// that are finite, not negative, and about existing parts of the machine.
pub fn write(knowledge: &Knowledge) -> String {
    let machine = &knowledge.machine;
    let mut text = head(machine);
    for package in &machine.packages {
        let model = package.model.as_ref().map(|model| format!("model = {}\n", quoted(model)));
        let model = model.unwrap_or_default();
        line(
            &mut text,
            &format!("\n[[package]]\nid = {}\n{model}cpus = \"{}\"", package.id, package.cpus),
        );
    }
    for die in &machine.dies {
        let (id, package, cpus) = (die.id, die.package, &die.cpus);
        line(&mut text, &format!("\n[[die]]\nid = {id}\npackage = {package}\ncpus = \"{cpus}\""));
    }
    for kind in &machine.cpu_kinds {
        let (name, cpus) = (quoted(&kind.name), &kind.cpus);
        line(&mut text, &format!("\n[[cpu_kind]]\nname = {name}\ncpus = \"{cpus}\""));
    }
    let cores = cores_of_domains(machine);
    for node in &machine.nodes {
        write_node(&mut text, machine, node, &cores);
    }
    write_caches(&mut text, &machine.caches);
    write_links(&mut text, &machine.links);
    line(&mut text, "\n[distances]\nmatrix = [");
    for row in &machine.distances {
        let row: Vec<String> = row.iter().map(u32::to_string).collect();
        line(&mut text, &format!("  [{}],", row.join(", ")));
    }
    line(&mut text, "]");
    write_facts::write(&mut text, knowledge);
    text
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Everything that is not a list.
fn head(machine: &Machine) -> String {
    let huge = machine.huge_page_size.map_or("\"none\"".to_owned(), size_written);
    let mut text = format!("name = {}\n", quoted(&machine.name));
    if !machine.assumptions.is_empty() {
        let lines: Vec<String> = machine.assumptions.iter().map(|line| quoted(line)).collect();
        line(&mut text, &format!("assumptions = [\n  {},\n]", lines.join(",\n  ")));
    }
    line(&mut text, "\n[sources]");
    for (key, source) in [
        ("structure", machine.source),
        ("memory", machine.memory_source),
        ("memory_free", machine.memory_free_source),
        ("caches", machine.caches_source),
        ("links", machine.links_source),
        ("distances", machine.distances_source),
        ("pages", machine.pages_source),
    ] {
        line(&mut text, &format!("{key} = \"{}\"", source.name()));
    }
    let size = size_written(machine.page_size);
    line(&mut text, &format!("\n[pages]\nsize = {size}\nhuge = {huge}"));
    let hidden = &machine.hidden;
    if !(hidden.cpus.is_empty() && hidden.nodes.is_empty()) {
        let (cpus, nodes) = (&hidden.cpus, &hidden.nodes);
        line(&mut text, &format!("\n[hidden]\ncpus = \"{cpus}\"\nnodes = \"{nodes}\""));
    }
    let limits = &machine.limits;
    if limits.memory.is_some() || limits.cpu_time.is_some() {
        line(&mut text, "\n[limits]");
    }
    if let Some(limit) = &limits.memory {
        let (bytes, file) = (size_written(limit.bytes), quoted(&limit.file));
        line(&mut text, &format!("memory = {{ bytes = {bytes}, file = {file} }}"));
    }
    if let Some(limit) = &limits.cpu_time {
        let (cpus, file) = (limit.cpus, quoted(&limit.file));
        line(&mut text, &format!("cpu_time = {{ cpus = {cpus:?}, file = {file} }}"));
    }
    text
}

/// The cpus of each core, by domain.
fn cores_of_domains(machine: &Machine) -> Vec<Vec<&CpuSet>> {
    let mut cores = vec![Vec::new(); machine.domains.len()];
    for core in &machine.cores {
        cores[core.domain.index()].push(&core.cpus);
    }
    cores
}

fn write_node(text: &mut String, machine: &Machine, node: &Node, cores: &[Vec<&CpuSet>]) {
    line(text, &format!("\n[[node]]\nid = {}\nmemory = {}", node.id, size_written(node.memory)));
    if node.memory_free != node.memory {
        line(text, &format!("memory_free = {}", size_written(node.memory_free)));
    }
    if !node.huge_pages.is_empty() {
        let pool = |pool: &atoll_topology::HugePages| {
            let size = size_written(pool.size);
            format!("{{ size = {size}, total = {}, free = {} }}", pool.total, pool.free)
        };
        let pools: Vec<String> = node.huge_pages.iter().map(pool).collect();
        line(text, &format!("huge_pages = [{}]", pools.join(", ")));
    }
    if !node.near.is_empty() {
        line(text, &format!("near = \"{}\"", node.near));
    }
    if !node.side_caches.is_empty() {
        let caches: Vec<String> = node.side_caches.iter().map(side_cache).collect();
        line(text, &format!("side_caches = [{}]", caches.join(", ")));
    }
    for domain in machine.domains_of(node.id) {
        line(text, "[[node.domain]]");
        if let Some(level) = domain.cache_level {
            line(text, &format!("level = {level}"));
        }
        if let Some(size) = domain.cache {
            line(text, &format!("cache = {}", size_written(size)));
        }
        line(text, &format!("cores = {}", sets(cores[domain.id.index()].iter().copied())));
    }
}

fn side_cache(cache: &SideCache) -> String {
    let line = cache.line.map(|line| format!(", line = {}", size_written(line)));
    let size = size_written(cache.size);
    format!("{{ level = {}, size = {size}{} }}", cache.level, line.unwrap_or_default())
}

fn sets<'a>(sets: impl Iterator<Item = &'a CpuSet>) -> String {
    let sets: Vec<String> = sets.map(|set| format!("\"{set}\"")).collect();
    format!("[{}]", sets.join(", "))
}

/// Adjacent caches that differ only in their cpus share an entry.
fn write_caches(text: &mut String, caches: &[Cache]) {
    let alike = |a: &Cache, b: &Cache| Cache { cpus: b.cpus.clone(), ..a.clone() } == *b;
    for group in caches.chunk_by(alike) {
        let cache = &group[0];
        let kind = match cache.kind {
            CacheKind::Data => "data",
            CacheKind::Instruction => "instruction",
            CacheKind::Unified => "unified",
        };
        line(text, &format!("\n[[cache]]\nlevel = {}\nkind = \"{kind}\"", cache.level));
        let mut size = |key: &str, size: Option<Bytes>| {
            if let Some(size) = size {
                line(text, &format!("{key} = {}", size_written(size)));
            }
        };
        size("size", cache.size);
        size("line", cache.line);
        if let Some(ways) = cache.ways {
            line(text, &format!("ways = {ways}"));
        }
        line(text, &format!("cpus = {}", sets(group.iter().map(|cache| &cache.cpus))));
    }
}

/// Adjacent links of one kind share an entry.
fn write_links(text: &mut String, links: &[Link]) {
    for group in links.chunk_by(|a, b| a.kind == b.kind) {
        let pair = |link: &Link| format!("[{}, {}]", link.a, link.b);
        let pairs: Vec<String> = group.iter().map(pair).collect();
        let _ = writeln!(
            text,
            "\n[[link]]\nnodes = [{}]\nkind = {}",
            pairs.join(", "),
            quoted(&group[0].kind)
        );
    }
}
