//! Packages, domains, cores and cpus: counted, or listed one by one.

use std::collections::{BTreeMap, BTreeSet};

use super::node_entry::NodeEntry;
use super::reader::TomlTable;
use crate::FormatError;
use atoll_topology::assemble::{CachePart, CpuPart};
use atoll_topology::{
    Bytes, CPUS_MAX, CpuId, CpuSet, MachineBuilder, NodeId, NodeShape, Numbering, PackageId,
};

/// A domain and the cpus of each of its cores.
pub(super) struct DomainPart {
    pub(super) node: NodeId,
    pub(super) level: Option<u32>,
    pub(super) size: Option<Bytes>,
    pub(super) cores: Vec<CpuSet>,
}

/// Packages of nodes, and of single cpus that `[[package]]` lists.
pub(super) struct Packages {
    of_node: BTreeMap<NodeId, PackageId>,
    of_cpu: BTreeMap<CpuId, PackageId>,
}

impl Packages {
    /// The package that lists the cpu, else its node's, else the package with the node's number.
    pub(super) fn get(&self, cpu: CpuId, node: NodeId) -> PackageId {
        let listed = self.of_cpu.get(&cpu).or_else(|| self.of_node.get(&node));
        listed.copied().unwrap_or(PackageId(node.0))
    }
}

/// The packages of all nodes and cpus.
pub(super) fn packages(
    top: &TomlTable<'_>,
    entries: &[NodeEntry<'_>],
) -> Result<Packages, FormatError> {
    let mut of_node = BTreeMap::new();
    for entry in entries {
        of_node.extend(entry.package.iter().flat_map(|&p| entry.ids.iter().map(move |id| (id, p))));
    }
    let mut of_cpu = BTreeMap::new();
    for table in top.tables("package")? {
        table.keys(&["id", "model", "cpus", "frequency"])?;
        let Some(item) = table.get("cpus") else { continue };
        let id = table.need("id", "the package's number")?.number(u32::MAX)?;
        for cpu in item.set()?.iter() {
            if of_cpu.insert(cpu, PackageId(id)).is_some() {
                return Err(item.wrong(format!("cpus of one package; cpu {cpu} is in two")));
            }
        }
    }
    Ok(Packages { of_node, of_cpu })
}

/// The numbers of a `[[package]]`: any single number, or a set.
pub(super) fn package_ids(table: &TomlTable<'_>) -> Result<Vec<PackageId>, FormatError> {
    let item = table.need("id", "the package's number, or a set such as \"0-3\"")?;
    match item.is_text() {
        true => Ok(item.set()?.iter().collect()),
        false => Ok(vec![PackageId(item.number(u32::MAX)?)]),
    }
}

/// Model names.
pub(super) fn models(top: &TomlTable<'_>) -> Result<BTreeMap<PackageId, String>, FormatError> {
    let mut models = BTreeMap::new();
    for table in top.tables("package")? {
        let ids = package_ids(&table)?;
        let Some(model) = table.get("model") else { continue };
        let model = model.text()?;
        for id in ids {
            if models.insert(id, model.to_owned()).is_some() {
                return Err(table.fail(format!("package {id} twice"), "one [[package]] for each"));
            }
        }
    }
    Ok(models)
}

/// All domains, either counted or listed.
pub(super) fn domains(
    top: &TomlTable<'_>,
    entries: &[NodeEntry<'_>],
) -> Result<Vec<DomainPart>, FormatError> {
    let numbering = numbering(top)?;
    let listed = entries.iter().find(|entry| entry.table.get("domain").is_some());
    let counted = entries.iter().find(|entry| is_counted(&entry.table));
    let domains = match (listed, counted) {
        (Some(listed), Some(_)) => Err(listed.table.fail(
            "nodes with 'domain' beside nodes with counts",
            "the cpus of all nodes listed, or those of all counted",
        )),
        (Some(_), None) => listed_domains(entries),
        (None, _) => counted_domains(top, entries, numbering),
    }?;
    match domains.is_empty() {
        true => Err(top.fail("no node has cpus", "a [[node]] with domains, cores and threads")),
        false => Ok(domains),
    }
}

fn numbering(top: &TomlTable<'_>) -> Result<Numbering, FormatError> {
    let Some(item) = top.get("numbering") else { return Ok(Numbering::CoreByCore) };
    match item.text()? {
        "core-by-core" => Ok(Numbering::CoreByCore),
        "threads-last" => Ok(Numbering::ThreadsLast),
        _ => Err(item.wrong("\"core-by-core\" or \"threads-last\"")),
    }
}

fn listed_domains(entries: &[NodeEntry<'_>]) -> Result<Vec<DomainPart>, FormatError> {
    let mut used = BTreeSet::new();
    let mut domains = Vec::new();
    for entry in entries {
        let tables = entry.table.tables("domain")?;
        let Some(node) = entry.ids.first().filter(|_| entry.ids.len() == 1) else {
            if tables.is_empty() {
                continue;
            }
            return Err(entry.table.fail("domains for several nodes", "one node for its domains"));
        };
        for table in tables {
            domains.push(listed_domain(node, &table, &mut used)?);
        }
    }
    Ok(domains)
}

fn listed_domain(
    node: NodeId,
    table: &TomlTable<'_>,
    used: &mut BTreeSet<CpuId>,
) -> Result<DomainPart, FormatError> {
    table.keys(&["level", "cache", "cores"])?;
    let item = table.need("cores", "the cpus of each core, such as [\"0-1\", \"2-3\"]")?;
    let mut cores = Vec::new();
    for core in item.items("sets of cpus")? {
        let cpus: CpuSet = core.set()?;
        if cpus.is_empty() {
            return Err(core.wrong("at least one cpu"));
        }
        if let Some(cpu) = cpus.iter().find(|&cpu| !used.insert(cpu)) {
            return Err(core.wrong(format!("cpus of no other core; cpu {cpu} is in two")));
        }
        if used.len() > CPUS_MAX as usize {
            return Err(core.wrong(format!("at most {CPUS_MAX} cpus")));
        }
        cores.push(cpus);
    }
    if cores.is_empty() {
        return Err(item.wrong("at least one core"));
    }
    Ok(DomainPart {
        node,
        level: table.get("level").map(|item| item.number(u32::MAX)).transpose()?,
        size: table.get("cache").map(|item| item.size()).transpose()?,
        cores,
    })
}

/// Whether a node's cpus are given by counts; those of domains and threads are optional.
pub(super) fn is_counted(table: &TomlTable<'_>) -> bool {
    ["domains", "cores", "threads"].iter().any(|key| table.get(key).is_some())
}

/// Domains of nodes given by counts, their cpus numbered over all nodes by id.
fn counted_domains(
    top: &TomlTable<'_>,
    entries: &[NodeEntry<'_>],
    numbering: Numbering,
) -> Result<Vec<DomainPart>, FormatError> {
    let mut builder = MachineBuilder::new("counted").numbering(numbering);
    let mut any = false;
    for entry in entries.iter().filter(|entry| is_counted(&entry.table)) {
        any = true;
        let count = |key| entry.table.get(key).map_or(Ok(1), |item| item.number(CPUS_MAX));
        entry.table.need("cores", "the number of cores in each domain")?;
        let (domains, cores, threads) = (count("domains")?, count("cores")?, count("threads")?);
        if domains == 0 || cores == 0 || threads == 0 {
            let found = format!("{domains} domains of {cores} cores of {threads} threads");
            return Err(entry.table.fail(found, "at least one of each, or none of the three keys"));
        }
        for id in entry.ids.iter() {
            builder = builder.node(NodeShape::with_cpus(id, domains, cores, threads));
        }
    }
    let error = |error: atoll_topology::BuildError| {
        top.fail(error.to_string(), "nodes within these bounds")
    };
    if !any {
        return Ok(Vec::new());
    }
    let counted = builder.build().map_err(error)?;
    let mut domains: Vec<DomainPart> = counted
        .domains
        .iter()
        .map(|domain| DomainPart { node: domain.node, level: None, size: None, cores: Vec::new() })
        .collect();
    for core in counted.cores {
        domains[core.domain.index()].cores.push(core.cpus);
    }
    Ok(domains)
}

/// The cpus of all domains.
pub(super) fn cpu_parts(
    top: &TomlTable<'_>,
    domains: &[DomainPart],
    packages: &Packages,
) -> Result<Vec<CpuPart>, FormatError> {
    let mut parts = Vec::new();
    for domain in domains {
        let (level, size) = (domain.level, domain.size);
        let leader = domain.cores.iter().filter_map(CpuSet::first).min().unwrap_or_default();
        for core in &domain.cores {
            parts.extend(core.iter().map(|id| CpuPart {
                id,
                package: packages.get(id, domain.node),
                node: domain.node,
                core: core.first().unwrap_or(id),
                cache: CachePart { leader, level, size },
            }));
        }
    }
    let used: BTreeSet<CpuId> = parts.iter().map(|part| part.id).collect();
    match packages.of_cpu.keys().find(|cpu| !used.contains(cpu)) {
        Some(cpu) => {
            Err(top.fail(format!("a package has cpu {cpu}"), "cpus that are on a node too"))
        }
        None => Ok(parts),
    }
}
