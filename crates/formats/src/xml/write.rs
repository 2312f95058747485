//! Writes knowledge as text, in hwloc's order: objects, distances, memory attributes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use super::facts::{self, ATTRIBUTES, Attribute};
use super::infos::{self, escape};
use super::nest::{Nest, TreeObject, What};
use atoll_topology::{
    CacheKind, CpuSet, Domain, Fact, Knowledge, Machine, Node, NodeId, NodeSet, Package, Quantity,
    Source, Subject,
};
use atoll_topology::{assemble, mask};

/// Values of a matrix per element, as in hwloc.
const VALUES_PER_ELEMENT: usize = 10;

/// Writes hwloc XML that [`parse`](super::parse) parses into the same knowledge.
pub fn write(knowledge: &Knowledge) -> String {
    let nest = Nest::from_machine(&knowledge.machine);
    let mut writer = XmlWriter {
        knowledge,
        nest: &nest,
        text: String::new(),
        depth: 1,
        index: 0,
        node_index: HashMap::new(),
        node_of: knowledge.machine.cpus.iter().map(|cpu| (cpu.id.0, cpu.node)).collect(),
    };
    writer.text.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    writer.text.push_str("<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n");
    writer.piece(&nest.pieces[0]);
    writer.distances();
    writer.attributes();
    writer.cpu_kinds();
    writer.text.push_str("</topology>\n");
    writer.text
}

struct XmlWriter<'a> {
    knowledge: &'a Knowledge,
    nest: &'a Nest<'a>,
    text: String,
    /// Number of open elements.
    depth: usize,
    /// Last assigned `gp_index`.
    index: u64,
    /// `gp_index` of each node.
    node_index: HashMap<NodeId, u64>,
    node_of: HashMap<u32, NodeId>,
}

impl<'a> XmlWriter<'a> {
    fn machine(&self) -> &'a Machine {
        &self.knowledge.machine
    }

    fn line(&mut self, line: &str) {
        for _ in 0..self.depth {
            self.text.push_str("  ");
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn info(&mut self, name: &str, value: &str) {
        self.line(&format!("<info name=\"{name}\" value=\"{}\"/>", quoted(value)));
    }

    /// An object and its descendants. The tree is about ten levels deep, as there are few levels of caches.
    fn piece(&mut self, piece: &TreeObject<'a>) {
        let sets = self.sets(piece);
        let what = self.what(piece.what);
        self.index += 1;
        self.line(&format!(
            "<object {what} {sets} gp_index=\"{}\"{}>",
            self.index,
            extra(piece.what)
        ));
        self.depth += 1;
        self.infos(piece.what);
        for node in &piece.nodes {
            self.node(node);
        }
        for &child in &piece.children {
            self.piece(&self.nest.pieces[child]);
        }
        self.depth -= 1;
        self.line("</object>");
    }

    /// Type and number.
    fn what(&self, what: What<'_>) -> String {
        match what {
            What::Machine => "type=\"Machine\" os_index=\"0\"".to_owned(),
            What::Package(package) => format!("type=\"Package\" os_index=\"{}\"", package.id),
            What::Die(die) => format!("type=\"Die\" os_index=\"{}\"", die.id),
            What::Group | What::Domain(_) => "type=\"Group\"".to_owned(),
            What::Cache(cache) if cache.kind == CacheKind::Instruction => {
                format!("type=\"L{}iCache\"", cache.level)
            }
            What::Cache(cache) => format!("type=\"L{}Cache\"", cache.level),
            What::DomainCache(domain) => {
                format!("type=\"L{}Cache\"", domain.cache_level.unwrap_or_default())
            }
            What::Core(core) => format!("type=\"Core\" os_index=\"{}\"", core.id),
            What::Cpu(cpu) => format!("type=\"PU\" os_index=\"{cpu}\""),
        }
    }

    fn sets(&self, piece: &TreeObject<'_>) -> String {
        if !matches!(piece.what, What::Machine) {
            let homes = piece.cpus.iter().filter_map(|cpu| self.node_of.get(&cpu.0).copied());
            let is_near = |node: &&Node| !node.near.intersection(&piece.cpus).is_empty();
            let near = self.machine().nodes.iter().filter(is_near).map(|node| node.id);
            return sets(&piece.cpus, &piece.cpus, &homes.chain(near).collect(), None);
        }
        let machine = self.machine();
        let nodes: NodeSet = machine.nodes.iter().map(|node| node.id).collect();
        let cpus = piece.cpus.union(&machine.hidden.cpus);
        sets(&piece.cpus, &cpus, &nodes, Some(&nodes.union(&machine.hidden.nodes)))
    }

    fn infos(&mut self, what: What<'_>) {
        match what {
            What::Machine => self.machine_infos(),
            What::Package(Package { model: Some(model), .. }) => {
                self.info("CPUModel", model);
                if escape(model) != *model || model.is_empty() {
                    self.info("atoll.model", &escape(model));
                }
            }
            What::DomainCache(_) => self.info("atoll.domain", "cache"),
            What::Domain(domain) => self.info("atoll.domain", &domain_fields(domain)),
            _ => {}
        }
    }

    fn machine_infos(&mut self) {
        let machine = self.machine();
        self.info("HostName", &machine.name);
        self.info("atoll.name", &escape(&machine.name));
        self.info("atoll.sources", &sources(machine));
        self.info("atoll.page_size", &machine.page_size.0.to_string());
        if let Some(size) = machine.huge_page_size {
            self.info("atoll.huge_page_size", &size.0.to_string());
        }
        if !machine.hidden.cpus.is_empty() {
            self.info("atoll.hidden_cpus", &machine.hidden.cpus.to_string());
        }
        if !machine.hidden.nodes.is_empty() {
            self.info("atoll.hidden_nodes", &machine.hidden.nodes.to_string());
        }
        if let Some(limit) = &machine.limits.memory {
            self.info("atoll.memory_limit", &infos::write_memory_limit(limit));
        }
        if let Some(limit) = &machine.limits.cpu_time {
            self.info("atoll.cpu_limit", &infos::write_cpu_limit(limit));
        }
        if !self.has_matrix()
            && machine.distances != assemble::distances_assumed(machine.nodes.len())
        {
            self.info("atoll.distances", &rows(&machine.distances));
        }
        self.lists();
    }

    fn lists(&mut self) {
        for package in &self.nest.loose_packages {
            self.info("atoll.package", &package_fields(package));
        }
        for die in &self.nest.loose_dies {
            self.info("atoll.die", &infos::write_die(die));
        }
        for kind in &self.machine().cpu_kinds {
            self.info("atoll.cpu_kind", &infos::write_cpu_kind(kind));
        }
        for assumption in &self.machine().assumptions {
            self.info("atoll.assumption", &escape(assumption));
        }
        for cache in &self.nest.loose_caches {
            self.info("atoll.cache", &infos::write_cache(cache));
        }
        for link in &self.machine().links {
            self.info("atoll.link", &infos::write_link(link));
        }
        for fact in &self.knowledge.facts {
            self.info("atoll.fact", &facts::write(fact));
        }
    }

    /// A node, inside the caches in front of its memory.
    fn node(&mut self, node: &Node) {
        let cpus = if node.cpus.is_empty() { &node.near } else { &node.cpus };
        let sets = sets(cpus, cpus, &NodeSet::from_iter([node.id]), None);
        for cache in &node.side_caches {
            self.index += 1;
            let (size, line) = (cache.size.0, cache.line.unwrap_or_default().0);
            let attributes = cache_attributes(cache.level, size, line, 0, 0);
            self.line(&format!(
                "<object type=\"MemCache\" {sets} gp_index=\"{}\"{attributes}>",
                self.index
            ));
            self.depth += 1;
        }
        self.memory(node, &sets);
        for _ in &node.side_caches {
            self.depth -= 1;
            self.line("</object>");
        }
    }

    fn memory(&mut self, node: &Node, sets: &str) {
        self.index += 1;
        self.node_index.insert(node.id, self.index);
        self.line(&format!(
            "<object type=\"NUMANode\" os_index=\"{}\" {sets} gp_index=\"{}\" local_memory=\"{}\">",
            node.id, self.index, node.memory.0
        ));
        self.depth += 1;
        self.pages(node);
        if node.memory_free != node.memory {
            self.info("atoll.memory_free", &node.memory_free.0.to_string());
        }
        if node.cpus.is_empty() {
            self.info("atoll.cpus", "none");
        }
        for pages in &node.huge_pages {
            self.info("atoll.huge_pages", &infos::write_huge_pages(pages));
        }
        self.depth -= 1;
        self.line("</object>");
    }

    /// Pages of each size: the pools, and base pages for the rest.
    fn pages(&mut self, node: &Node) {
        let base = self.machine().page_size.0;
        let pools = node.huge_pages.iter().filter(|pool| pool.size.0 > 0 && pool.size.0 != base);
        let pools: Vec<(u64, u64)> = pools.map(|pool| (pool.size.0, pool.total)).collect();
        let huge = pools.iter().map(|(size, count)| size.saturating_mul(*count));
        let huge = huge.fold(0u64, u64::saturating_add);
        if let Some(count) = node.memory.0.saturating_sub(huge).checked_div(base) {
            self.line(&format!("<page_type size=\"{base}\" count=\"{count}\"/>"));
        }
        for (size, count) in pools {
            self.line(&format!("<page_type size=\"{size}\" count=\"{count}\"/>"));
        }
    }

    /// Whether the distances are known and hwloc can represent them: it has no matrix of one node.
    fn has_matrix(&self) -> bool {
        let machine = self.machine();
        machine.nodes.len() > 1 && machine.distances_source != Source::Assumed
    }

    /// SLIT distances: all of them, or those between some nodes from facts.
    fn distances(&mut self) {
        let machine = self.machine();
        let all = || machine.nodes.iter().map(|node| node.id).collect();
        let (nodes, values): (Vec<NodeId>, Vec<u32>) = match self.has_matrix() {
            true => (all(), machine.distances.concat()),
            false => self.partial_distances(),
        };
        let count = nodes.len();
        if count < 2 {
            return;
        }
        // Kind: 4 for latency, 1 from the system or 2 from the user.
        let kind = if machine.distances_source == Source::Discovered { 5 } else { 6 };
        self.line(&format!(
            "<distances2 type=\"NUMANode\" nbobjs=\"{count}\" kind=\"{kind}\" \
             name=\"NUMALatency\" indexing=\"os\">"
        ));
        self.depth += 1;
        let ids: Vec<u32> = nodes.iter().map(|node| node.0).collect();
        self.numbers("indexes", &ids);
        self.numbers("u64values", &values);
        self.depth -= 1;
        self.line("</distances2>");
    }

    /// Distances from facts, as a square matrix; no nodes if it has gaps.
    fn partial_distances(&self) -> (Vec<NodeId>, Vec<u32>) {
        let mut told: BTreeMap<(NodeId, NodeId), u32> = BTreeMap::new();
        for fact in &self.knowledge.facts {
            if let (Subject::Path { from, to }, Quantity::Distance) = (fact.subject, fact.quantity)
            {
                told.insert((from, to), fact.value as u32);
            }
        }
        let nodes: BTreeSet<NodeId> = told.keys().map(|&(from, _)| from).collect();
        let pairs = nodes.iter().flat_map(|&from| nodes.iter().map(move |&to| (from, to)));
        let values: Option<Vec<u32>> = pairs.map(|pair| told.get(&pair).copied()).collect();
        values.map_or_else(Default::default, |values| (nodes.into_iter().collect(), values))
    }

    fn numbers(&mut self, name: &str, numbers: &[u32]) {
        for numbers in numbers.chunks(VALUES_PER_ELEMENT) {
            let list =
                numbers.iter().fold(String::new(), |list, number| format!("{list}{number} "));
            self.line(&format!("<{name} length=\"{}\">{list}</{name}>", list.len()));
        }
    }

    /// Kinds of cpus, the slowest first, as programs that use hwloc expect them.
    fn cpu_kinds(&mut self) {
        for kind in &self.knowledge.machine.cpu_kinds {
            self.line(&format!("<cpukind cpuset=\"{}\">", mask::write(&kind.cpus)));
            self.depth += 1;
            self.info("Name", &kind.name);
            self.depth -= 1;
            self.line("</cpukind>");
        }
    }

    fn attributes(&mut self) {
        for attribute in ATTRIBUTES.iter().take(3) {
            let values: Vec<String> = self.paths(attribute);
            if values.is_empty() {
                continue;
            }
            let (name, flags) = (attribute.name, attribute.flags);
            self.line(&format!("<memattr name=\"{name}\" flags=\"{flags}\">"));
            self.depth += 1;
            for value in values {
                self.line(&value);
            }
            self.depth -= 1;
            self.line("</memattr>");
        }
    }

    /// Values of an attribute: the most trusted fact of each path without conditions.
    fn paths(&self, attribute: &Attribute) -> Vec<String> {
        let mut best: Vec<(NodeId, NodeId, &Fact)> = Vec::new();
        for fact in &self.knowledge.facts {
            if let Subject::Path { from, to } = fact.subject
                && fact.quantity == attribute.quantity
                && fact.conditions == Default::default()
            {
                best.push((from, to, fact));
            }
        }
        best.sort_by_key(|&(from, to, fact)| (to, from, fact.source));
        best.dedup_by_key(|&mut (from, to, _)| (to, from));
        best.into_iter()
            .filter_map(|(from, to, fact)| self.value(attribute, from, to, fact))
            .collect()
    }

    fn value(
        &self,
        attribute: &Attribute,
        from: NodeId,
        to: NodeId,
        fact: &Fact,
    ) -> Option<String> {
        let initiator = &self.machine().node(from)?.cpus;
        let (target, value) = (self.node_index.get(&to)?, attribute.value_of(fact));
        (!initiator.is_empty()).then(|| {
            format!(
                "<memattr_value target_obj_type=\"NUMANode\" target_obj_gp_index=\"{target}\" \
                 value=\"{value}\" initiator_cpuset=\"{}\"/>",
                mask::write(initiator)
            )
        })
    }
}

/// The sets of an object; the machine also has the allowed ones.
fn sets(cpus: &CpuSet, complete: &CpuSet, nodes: &NodeSet, machine: Option<&NodeSet>) -> String {
    let (cpus, nodes) = (mask::write(cpus), mask::write(nodes));
    let complete_nodes = machine.map_or_else(|| nodes.clone(), mask::write);
    let complete = mask::write(complete);
    let mut text = format!("cpuset=\"{cpus}\" complete_cpuset=\"{complete}\"");
    if machine.is_some() {
        let _ = write!(text, " allowed_cpuset=\"{cpus}\"");
    }
    let _ = write!(text, " nodeset=\"{nodes}\" complete_nodeset=\"{complete_nodes}\"");
    if machine.is_some() {
        let _ = write!(text, " allowed_nodeset=\"{nodes}\"");
    }
    text
}

/// Attributes that only some types have.
fn extra(what: What<'_>) -> String {
    match what {
        // hwloc's kinds of a group that holds a node, and of one that the user wants to keep.
        What::Group => " kind=\"1001\" subkind=\"0\"".to_owned(),
        What::Domain(_) => " kind=\"0\" subkind=\"0\" dont_merge=\"1\"".to_owned(),
        What::DomainCache(domain) => {
            let size = domain.cache.unwrap_or_default().0;
            cache_attributes(domain.cache_level.unwrap_or_default(), size, 0, 0, 0)
        }
        What::Cache(cache) => {
            let ways = match cache.ways {
                None => 0,
                Some(0) => -1,
                Some(ways) => i64::from(ways),
            };
            let kind = match cache.kind {
                CacheKind::Unified => 0,
                CacheKind::Data => 1,
                CacheKind::Instruction => 2,
            };
            let size = cache.size.unwrap_or_default().0;
            cache_attributes(cache.level, size, cache.line.unwrap_or_default().0, ways, kind)
        }
        _ => String::new(),
    }
}

fn cache_attributes(level: u32, size: u64, line: u64, ways: i64, kind: u32) -> String {
    format!(
        " cache_size=\"{size}\" depth=\"{level}\" cache_linesize=\"{line}\" \
         cache_associativity=\"{ways}\" cache_type=\"{kind}\""
    )
}

/// `10,20 20,10`
fn rows(distances: &[Vec<u32>]) -> String {
    let row = |row: &Vec<u32>| row.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    distances.iter().map(row).collect::<Vec<_>>().join(" ")
}

fn sources(machine: &Machine) -> String {
    [
        ("structure", machine.source),
        ("memory", machine.memory_source),
        ("memory_free", machine.memory_free_source),
        ("caches", machine.caches_source),
        ("distances", machine.distances_source),
        ("links", machine.links_source),
        ("pages", machine.pages_source),
    ]
    .map(|(name, source)| format!("{name}={}", source.name()))
    .join(" ")
}

fn domain_fields(domain: &Domain) -> String {
    let level = domain.cache_level.map(|level| format!("level={level}"));
    let size = domain.cache.map(|size| format!("size={}", size.0));
    level.into_iter().chain(size).collect::<Vec<_>>().join(" ")
}

fn package_fields(package: &Package) -> String {
    let model = package
        .model
        .as_ref()
        .map_or_else(String::new, |model| format!(" model={}", escape(model)));
    format!("id={} cpus={}{model}", package.id, package.cpus)
}

/// Escapes an attribute's value. Characters that XML 1.0 does not allow are left out.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => quoted.push_str("&amp;"),
            '<' => quoted.push_str("&lt;"),
            '>' => quoted.push_str("&gt;"),
            '"' => quoted.push_str("&quot;"),
            '\t' | '\n' | '\r' => drop(write!(quoted, "&#{};", u32::from(character))),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => {}
            _ => quoted.push(character),
        }
    }
    quoted
}
