//! The machine's structure: the steps from a file to all parts, and its nodes with their memory.

use std::collections::BTreeSet;

use super::node_entry::NodeEntry;
use super::reader::{TomlItem, TomlTable};
use super::{Defaults, beside, caches, cpus, details, links};
use crate::FormatError;
use atoll_topology::assemble::{self, MachineParts, NodePart};
use atoll_topology::{
    Bytes, CpuSet, HugePages, Machine, NODES_MAX, NodeId, NodeSet, PackageId, SideCache, Source,
};

const NODE: [&str; 11] = [
    "id",
    "package",
    "memory",
    "memory_free",
    "near",
    "huge_pages",
    "side_caches",
    "domains",
    "cores",
    "threads",
    "domain",
];
/// Maximum number of huge page pools of a node, and of caches in front of its memory; no architecture has more.
const PARTS_MAX: usize = 64;

/// The source of each group of figures, and its origin if the file names one.
pub(super) struct Origins<'a> {
    pub(super) memory: (Source, Option<&'a str>),
    pub(super) caches: (Source, Option<&'a str>),
    pub(super) distances: (Source, Option<&'a str>),
    links: Option<Source>,
    pages: Option<Source>,
    memory_free: Option<Source>,
    structure: Source,
}

/// The machine, and the sources of its figures.
pub(super) fn machine<'a>(
    top: &TomlTable<'a>,
    defaults: &Defaults<'a>,
) -> Result<(Machine, Origins<'a>), FormatError> {
    let origins = origins(top, defaults)?;
    let entries = entries(top)?;
    let mut nodes = Vec::new();
    for entry in &entries {
        nodes.extend(node_parts(entry)?);
    }
    nodes.sort_by_key(|node| node.id);
    let packages = cpus::packages(top, &entries)?;
    let mut domains = cpus::domains(top, &entries)?;
    let (caches, caches_known) = caches::read(top, &mut domains, &packages)?;
    let cpus = cpus::cpu_parts(top, &domains, &packages)?;
    let ids: Vec<NodeId> = nodes.iter().map(|node| node.id).collect();
    let (distances, distances_known) = beside::distances(top, ids.len())?;
    let links = links::read(top, &ids)?;
    let (page_size, huge_page_size, pages_known) = beside::pages(top)?;
    let otherwise_assumed = |source, known| if known { source } else { Source::Assumed };
    let free_is_told = entries.iter().any(|entry| entry.table.get("memory_free").is_some());
    let machine = assemble::machine(MachineParts {
        name: top.need("name", "the machine's name")?.text()?.to_owned(),
        source: origins.structure,
        cpus,
        models: cpus::models(top)?,
        memory_source: origins.memory.0,
        memory_free_source: origins
            .memory_free
            .unwrap_or_else(|| otherwise_assumed(origins.memory.0, free_is_told)),
        dies: details::dies(top)?,
        cpu_kinds: details::cpu_kinds(top)?,
        assumptions: details::assumptions(top)?,
        caches_source: otherwise_assumed(origins.caches.0, caches_known),
        caches,
        links_source: origins
            .links
            .unwrap_or_else(|| otherwise_assumed(defaults.source, !links.is_empty())),
        links,
        distances_source: otherwise_assumed(origins.distances.0, distances_known),
        distances,
        hidden: beside::hidden(top)?,
        limits: beside::limits(top)?,
        pages_source: origins
            .pages
            .unwrap_or_else(|| otherwise_assumed(defaults.source, pages_known)),
        page_size,
        huge_page_size,
        nodes,
    });
    Ok((machine, origins))
}

fn origins<'a>(top: &TomlTable<'a>, defaults: &Defaults<'a>) -> Result<Origins<'a>, FormatError> {
    const KEYS: [&str; 7] =
        ["structure", "memory", "memory_free", "caches", "links", "distances", "pages"];
    let table = top.get("sources").map(TomlItem::table).transpose()?;
    if let Some(table) = table {
        table.keys(&KEYS)?;
    }
    let stated = |key| -> Result<Option<(Source, Option<&'a str>)>, FormatError> {
        match table.and_then(|table| table.get(key)) {
            Some(item) if item.is_table() => {
                let table = item.table()?;
                table.keys(&["source", "origin"])?;
                let within = defaults.within(&table)?;
                Ok(Some((within.source, table.get("origin").map(|_| within.origin))))
            }
            Some(item) => Ok(Some((item.source()?, None))),
            None => Ok(None),
        }
    };
    let or_default = |key| Ok(stated(key)?.unwrap_or((defaults.source, None)));
    Ok(Origins {
        structure: or_default("structure")?.0,
        memory: or_default("memory")?,
        caches: or_default("caches")?,
        distances: or_default("distances")?,
        links: stated("links")?.map(|(source, _)| source),
        pages: stated("pages")?.map(|(source, _)| source),
        memory_free: stated("memory_free")?.map(|(source, _)| source),
    })
}

/// The `[[node]]` entries; together at most [`NODES_MAX`] nodes of different numbers.
fn entries<'a>(top: &TomlTable<'a>) -> Result<Vec<NodeEntry<'a>>, FormatError> {
    let mut all = BTreeSet::new();
    let mut entries = Vec::new();
    for table in top.tables("node")? {
        table.keys(&NODE)?;
        let item = table.need("id", "the node's number, or a set such as \"0-3\"")?;
        let ids: NodeSet = item.set()?;
        if ids.iter().any(|id| !all.insert(id)) {
            return Err(item.wrong("a number that no other node has"));
        }
        if all.len() > NODES_MAX as usize {
            return Err(item.wrong(format!("at most {NODES_MAX} nodes")));
        }
        let package = table.get("package").map(|item| item.number(u32::MAX)).transpose()?;
        entries.push(NodeEntry { table, ids, package: package.map(PackageId) });
    }
    Ok(entries)
}

fn node_parts(entry: &NodeEntry<'_>) -> Result<Vec<NodePart>, FormatError> {
    let table = entry.table;
    let memory = match table.get("memory") {
        Some(item) => item.size()?,
        None if cpus::is_counted(&table) || table.get("domain").is_some() => Bytes(0),
        None => table.need("memory", "its memory, its cpus or both")?.size()?,
    };
    let free = match table.get("memory_free") {
        Some(item) => item.size()?,
        None => memory,
    };
    let huge_pages = table.get("huge_pages").map_or(Ok(Vec::new()), huge_pages)?;
    let side_caches = table.get("side_caches").map_or(Ok(Vec::new()), side_caches)?;
    let near: CpuSet = table.get("near").map_or(Ok(CpuSet::new()), TomlItem::set)?;
    let part = |id| NodePart {
        near: near.clone(),
        memory_free: free,
        huge_pages: huge_pages.clone(),
        side_caches: side_caches.clone(),
        ..NodePart::new(id, memory)
    };
    Ok(entry.ids.iter().map(part).collect())
}

fn huge_pages(item: TomlItem<'_>) -> Result<Vec<HugePages>, FormatError> {
    parts(item, "pools of huge pages", |table| {
        table.keys(&["size", "total", "free"])?;
        Ok(HugePages {
            size: table.need("size", "the size of a page")?.size()?,
            total: table.need("total", "the number of pages")?.count()?,
            free: table.need("free", "the number of free pages")?.count()?,
        })
    })
}

fn side_caches(item: TomlItem<'_>) -> Result<Vec<SideCache>, FormatError> {
    parts(item, "caches in front of the memory", |table| {
        table.keys(&["level", "size", "line"])?;
        Ok(SideCache {
            level: table.need("level", "its level, 1 nearest to the memory")?.number(u32::MAX)?,
            size: table.need("size", "its size")?.size()?,
            line: table.get("line").map(TomlItem::size).transpose()?,
        })
    })
}

fn parts<'a, T>(
    item: TomlItem<'a>,
    what: &str,
    part: impl Fn(TomlTable<'a>) -> Result<T, FormatError>,
) -> Result<Vec<T>, FormatError> {
    let items = item.items(what)?;
    if items.len() > PARTS_MAX {
        return Err(item.wrong(format!("at most {PARTS_MAX} {what}")));
    }
    items.map(|item| part(item.table()?)).collect()
}
