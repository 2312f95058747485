//! Caches: `[[cache]]`, one per cpu, core, domain, node or package, or per listed set of cpus.

use std::collections::BTreeMap;

use super::cpus::{DomainPart, Packages};
use super::reader::{TomlItem, TomlTable};
use crate::{FormatError, NAMED_CPUS_MAX};
use atoll_topology::{Cache, CacheKind, CpuSet, NodeId, NodeSet};

const KEYS: [&str; 8] = ["level", "kind", "size", "line", "ways", "per", "nodes", "cpus"];
/// Limit for `[[cache]]` entries: each scans all domains.
const ENTRIES_MAX: usize = 4_096;

/// The caches, and whether the file has any. The highest level that is per domain becomes the last level of domains
/// that do not name one.
pub(super) fn read(
    top: &TomlTable<'_>,
    domains: &mut [DomainPart],
    packages: &Packages,
) -> Result<(Vec<Cache>, bool), FormatError> {
    let mut caches: Vec<Cache> = Vec::new();
    let mut named = 0;
    let tables = top.tables("cache")?;
    if let Some(table) = tables.get(ENTRIES_MAX) {
        return Err(table.fail("more caches", format!("at most {ENTRIES_MAX} [[cache]]")));
    }
    for table in tables {
        table.keys(&KEYS)?;
        let cache = shape(&table)?;
        let groups = match table.get("cpus") {
            Some(item) => listed(item, &table, NAMED_CPUS_MAX - named)?,
            None => counted(&table, &cache, domains, packages)?,
        };
        named += groups.iter().map(CpuSet::len).sum::<usize>();
        if named > NAMED_CPUS_MAX {
            return Err(table.fail("too many cpus in caches", format!("at most {NAMED_CPUS_MAX}")));
        }
        caches.extend(groups.into_iter().map(|cpus| Cache { cpus, ..cache.clone() }));
    }
    let known = !caches.is_empty() || domains.iter().any(|domain| domain.level.is_some());
    Ok((caches, known))
}

/// The cache without its cpus.
fn shape(table: &TomlTable<'_>) -> Result<Cache, FormatError> {
    Ok(Cache {
        level: table.need("level", "1 for the level nearest to the core")?.number(u32::MAX)?,
        kind: table.get("kind").map_or(Ok(CacheKind::Unified), kind)?,
        cpus: CpuSet::new(),
        size: table.get("size").map(TomlItem::size).transpose()?,
        line: table.get("line").map(TomlItem::size).transpose()?,
        ways: table.get("ways").map(|item| item.number(u32::MAX)).transpose()?,
    })
}

fn kind(item: TomlItem<'_>) -> Result<CacheKind, FormatError> {
    match item.text()? {
        "data" => Ok(CacheKind::Data),
        "instruction" => Ok(CacheKind::Instruction),
        "unified" => Ok(CacheKind::Unified),
        _ => Err(item.wrong("\"data\", \"instruction\" or \"unified\"")),
    }
}

fn listed(
    item: TomlItem<'_>,
    table: &TomlTable<'_>,
    named_max: usize,
) -> Result<Vec<CpuSet>, FormatError> {
    if let Some(other) = table.get("per").or(table.get("nodes")) {
        return Err(other.wrong("'cpus' alone, or 'per' without 'cpus'"));
    }
    let mut named = 0;
    let mut groups = Vec::new();
    for item in item.items("sets of cpus")? {
        let cpus: CpuSet = item.set()?;
        named += cpus.len();
        if named > named_max {
            return Err(item.wrong(format!("at most {NAMED_CPUS_MAX} cpus in all caches together")));
        }
        groups.push(cpus);
    }
    Ok(groups)
}

/// The cpus of each cache of an entry with `per`.
fn counted(
    table: &TomlTable<'_>,
    cache: &Cache,
    domains: &mut [DomainPart],
    packages: &Packages,
) -> Result<Vec<CpuSet>, FormatError> {
    let nodes: Option<NodeSet> = table.get("nodes").map(TomlItem::set).transpose()?;
    let chosen = |node: NodeId| nodes.as_ref().is_none_or(|nodes| nodes.contains(node));
    let per = table.get("per").map_or(Ok("core"), TomlItem::text)?;
    if per == "domain" && cache.kind != CacheKind::Instruction {
        for domain in domains.iter_mut().filter(|domain| chosen(domain.node)) {
            if domain.level.is_none_or(|level| level < cache.level) {
                (domain.level, domain.size) = (Some(cache.level), cache.size);
            }
        }
    }
    let mut groups: BTreeMap<u32, CpuSet> = BTreeMap::new();
    let mut next = 0;
    for domain in domains.iter().filter(|domain| chosen(domain.node)) {
        next += 1;
        for core in &domain.cores {
            next += u32::from(per == "core");
            for cpu in core.iter() {
                let group = match per {
                    "cpu" => cpu.0,
                    "core" | "domain" => next,
                    "node" => domain.node.0,
                    "package" => packages.get(cpu, domain.node).0,
                    _ => {
                        let wrong = table.need("per", "what has one")?;
                        return Err(wrong.wrong("one of cpu, core, domain, node, package"));
                    }
                };
                groups.entry(group).or_default().insert(cpu);
            }
        }
    }
    Ok(groups.into_values().collect())
}
