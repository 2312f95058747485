//! Builds a machine from objects.
//!
//! A cpu's package, core and caches are the ancestors of its PU; its node is the NUMANode with the fewest cpus that
//! contains it (additional memory such as HBM counts as a node without cpus); its domain is the set of cpus that share
//! the outermost data cache on that node. PUs and nodes that the file does not allow are hidden.

mod cpus;
mod distances;
mod figures;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::FormatError;
use crate::xml::document::XmlDocument;
use crate::xml::infos::{self, Fields};
use crate::xml::parts::{ObjectKind, XmlInfo, XmlObject};
use crate::xml::scan::XmlPosition;
use atoll_topology::assemble::{self, MachineParts, NodePart};
use atoll_topology::mask;
use atoll_topology::{
    Bytes, CPUS_MAX, CpuId, CpuSet, Hidden, HugePages, IdSet, Knowledge, Limits, Link, LinkId,
    NODES_MAX, NodeId, NodeSet, SideCache, Source, Subject,
};
use atoll_topology::{HUGE_PAGE_SIZE, PAGE_SIZE};

/// The knowledge in a file.
pub(super) fn knowledge(document: &XmlDocument<'_>) -> Result<Knowledge, FormatError> {
    let reading = ReadIndex::from_document(document)?;
    let machine = assemble::machine(reading.parts()?);
    let facts = reading.facts(&machine)?;
    Ok(present(Knowledge { machine, facts }))
}

/// Removes links and facts about missing parts: `lstopo --restrict` cuts a machine but leaves its infos unchanged.
fn present(mut known: Knowledge) -> Knowledge {
    let machine = &mut known.machine;
    let is_there = |link: &Link| machine.has(Subject::Path { from: link.a, to: link.b });
    let kept: Vec<Link> = machine.links.iter().filter(|link| is_there(link)).cloned().collect();
    let numbers: HashMap<LinkId, LinkId> =
        kept.iter().zip(0..).map(|(link, number)| (link.id, LinkId(number))).collect();
    machine.links = kept.into_iter().map(|link| Link { id: numbers[&link.id], ..link }).collect();
    known.facts.retain_mut(|fact| {
        if let Subject::Link(id) = &mut fact.subject {
            return numbers.get(id).is_some_and(|number| {
                *id = *number;
                true
            });
        }
        known.machine.has_or_hides(fact.subject)
    });
    known
}

/// Indexes of the objects.
struct ReadIndex<'a> {
    document: &'a XmlDocument<'a>,
    /// Usable PUs.
    cpus: BTreeMap<CpuId, usize>,
    /// All NUMANodes.
    nodes: BTreeMap<NodeId, usize>,
    /// Nodes that are only known from their cpus.
    absent: BTreeSet<NodeId>,
    home: HashMap<CpuId, NodeId>,
    /// Usable cpus below each cache and core.
    below: BTreeMap<usize, Vec<CpuId>>,
    hidden: Hidden,
    /// What is missing in the file, and what is assumed instead.
    assumptions: Vec<String>,
}

impl<'a> ReadIndex<'a> {
    fn from_document(document: &'a XmlDocument<'a>) -> Result<Self, FormatError> {
        let mut cpus = BTreeMap::new();
        let mut reading = Self {
            document,
            cpus: BTreeMap::new(),
            nodes: BTreeMap::new(),
            absent: BTreeSet::new(),
            home: HashMap::new(),
            below: BTreeMap::new(),
            hidden: Hidden::default(),
            assumptions: Vec::new(),
        };
        for (index, object) in document.objects.iter().enumerate() {
            match object.kind {
                ObjectKind::Pu => number(object, index, CPUS_MAX, &mut cpus)?,
                ObjectKind::Node => number(object, index, NODES_MAX, &mut reading.nodes)?,
                _ => {}
            }
        }
        reading.allow(cpus)?;
        reading.find_homes()?;
        reading.find_below();
        Ok(reading)
    }

    fn machine(&self) -> &'a XmlObject<'a> {
        &self.document.objects[0]
    }

    /// Infos of the machine and of the file, by name.
    fn infos(&self, name: &str) -> impl Iterator<Item = &'a XmlInfo<'a>> {
        let all = self.machine().infos.iter().chain(&self.document.infos);
        all.filter(move |info| info.name == name)
    }

    fn info(&self, name: &str) -> Option<&'a XmlInfo<'a>> {
        self.infos(name).next()
    }

    /// Separates usable from hidden parts.
    fn allow(&mut self, cpus: BTreeMap<CpuId, usize>) -> Result<(), FormatError> {
        let place = self.machine().place;
        let allowed_cpus: Option<CpuSet> = allowed(&self.document.allowed_cpuset, place)?;
        let allowed_nodes: Option<NodeSet> = allowed(&self.document.allowed_nodeset, place)?;
        for (cpu, object) in cpus {
            if allowed_cpus.as_ref().is_none_or(|allowed| allowed.contains(cpu)) {
                self.cpus.insert(cpu, object);
            } else {
                self.hidden.cpus.insert(cpu);
            }
        }
        let is_hidden =
            |&node: &NodeId| allowed_nodes.as_ref().is_some_and(|allowed| !allowed.contains(node));
        self.hidden.nodes = self.nodes.keys().copied().filter(is_hidden).collect();
        if let Some(info) = self.info("atoll.hidden_cpus") {
            self.hidden.cpus = self.hidden.cpus.union(&list(info)?);
        }
        if let Some(info) = self.info("atoll.hidden_nodes") {
            self.hidden.nodes = self.hidden.nodes.union(&list(info)?);
        }
        match self.cpus.is_empty() {
            true => {
                Err(place.fail("no PU that is allowed", "<object type=\"PU\" os_index=\"0\" …>"))
            }
            false => Ok(()),
        }
    }

    fn find_homes(&mut self) -> Result<(), FormatError> {
        let mut claims: Vec<(CpuSet, NodeId)> = Vec::new();
        for (&node, &object) in &self.nodes {
            let object = &self.document.objects[object];
            let text = object.cpuset.as_deref();
            let cpus = text.and_then(mask::parse).ok_or_else(|| {
                let found = format!("a NUMANode with cpuset '{:.40}'", text.unwrap_or_default());
                object.place.fail(found, mask::EXPECTED)
            })?;
            if !object.infos.iter().any(|info| info.name == "atoll.cpus" && info.value == "none") {
                claims.push((cpus, node));
            }
        }
        claims.sort_by_key(|(cpus, node)| (cpus.len(), *node));
        for (cpus, node) in claims {
            for cpu in cpus.iter() {
                self.home.entry(cpu).or_insert(node);
            }
        }
        let mut strays: BTreeMap<NodeId, CpuSet> = BTreeMap::new();
        for (&cpu, &object) in &self.cpus {
            if !self.home.contains_key(&cpu) {
                let told = Self::home_of(&self.document.objects[object]);
                let first = || self.nodes.keys().next().copied().unwrap_or_default();
                let home = told.unwrap_or_else(first);
                if told.is_none() {
                    strays.entry(home).or_default().insert(cpu);
                }
                self.home.insert(cpu, home);
            }
        }
        let stray =
            |(home, cpus)| format!("no NUMANode has PUs {cpus}; taken as cpus of node {home}");
        self.assumptions.extend(strays.into_iter().map(stray));
        self.hide_absent_nodes()
    }

    /// Nodes of usable cpus without an object: their memory is not allowed.
    fn hide_absent_nodes(&mut self) -> Result<(), FormatError> {
        let homes = self.cpus.keys().map(|cpu| self.home[cpu]);
        let absent: BTreeSet<NodeId> =
            homes.filter(|node| !self.nodes.contains_key(node)).collect();
        if self.nodes.len() + absent.len() > NODES_MAX as usize {
            let expected = format!("at most {NODES_MAX}");
            return Err(self.machine().place.fail("more nodes", expected));
        }
        self.hidden.nodes = self.hidden.nodes.union(&absent.iter().copied().collect());
        self.absent = absent;
        Ok(())
    }

    /// The first node in a PU's own nodeset; if that is empty, a node whose memory is not allowed and which therefore
    /// has no object in the file.
    fn home_of(object: &XmlObject<'_>) -> Option<NodeId> {
        let first = |text: &Option<String>| mask::parse(text.as_deref()?)?.first();
        first(&object.nodeset).or_else(|| first(&object.complete_nodeset))
    }

    fn find_below(&mut self) {
        for (&cpu, &object) in &self.cpus {
            for (index, object) in self.document.around(object) {
                if matches!(
                    object.kind,
                    ObjectKind::Core | ObjectKind::Die | ObjectKind::Cache { .. }
                ) || object.is_domain
                {
                    self.below.entry(index).or_default().push(cpu);
                }
            }
        }
    }

    fn parts(&self) -> Result<MachineParts, FormatError> {
        let (page_size, pages_source) = self.page_size()?;
        let nodes = self.node_parts(page_size)?;
        let caches = self.caches()?;
        let sources = self.info("atoll.sources").map(|info| Fields::parse(info, "")).transpose()?;
        let source = |name: &str, otherwise: Source| match &sources {
            Some(fields) if fields.text(name).is_some() || name != "memory_free" => {
                fields.parsed(name, Source::named(fields.need(name)?))
            }
            _ => Ok(otherwise),
        };
        let told = |told: bool| if told { Source::Declared } else { Source::Assumed };
        let ids: Vec<NodeId> = nodes.iter().map(|node| node.id).collect();
        let (distances, distances_told) = self.distances(&ids)?;
        let mut models = BTreeMap::new();
        let packages = self.loose_packages(&mut models)?;
        self.models(&mut models);
        Ok(MachineParts {
            name: self.name()?,
            source: source("structure", Source::Declared)?,
            nodes,
            cpus: self.cpu_parts(&packages)?,
            models,
            memory_source: source("memory", Source::Declared)?,
            memory_free_source: source("memory_free", told(self.tells_free_memory()))?,
            dies: self.dies()?,
            cpu_kinds: self.cpu_kinds()?,
            assumptions: self.assumptions()?,
            caches_source: source("caches", told(!caches.is_empty()))?,
            caches,
            links: self.links()?,
            links_source: source("links", Source::Assumed)?,
            distances,
            distances_source: source("distances", told(distances_told))?,
            hidden: self.hidden.clone(),
            limits: self.limits()?,
            pages_source: source("pages", pages_source)?,
            page_size,
            huge_page_size: self.huge_page_size(sources.is_some())?,
        })
    }

    fn tells_free_memory(&self) -> bool {
        let mut infos = self.document.objects.iter().flat_map(|object| &object.infos);
        infos.any(|info| info.name == "atoll.memory_free")
    }

    /// The assumptions of the discovery that the file was written from, and those of reading it.
    fn assumptions(&self) -> Result<Vec<String>, FormatError> {
        let text = |info: &XmlInfo<'_>| {
            let expected = "text with '\\u{…}' for what is not ASCII";
            infos::unescape(&info.value).ok_or_else(|| info.place.fail_at(&info.value, expected))
        };
        let told = self.infos("atoll.assumption").map(text);
        told.chain(self.assumptions.iter().cloned().map(Ok)).collect()
    }

    fn name(&self) -> Result<String, FormatError> {
        if let Some(info) = self.info("atoll.name") {
            return infos::unescape(&info.value).ok_or_else(|| {
                info.place.fail_at(&info.value, "text with '\\u{…}' for what is not ASCII")
            });
        }
        let told = self.info("HostName").or_else(|| self.info("SyntheticDescription"));
        let stem = std::path::Path::new(self.document.file).file_stem();
        let stem = || stem.map_or("unnamed".into(), |stem| stem.to_string_lossy().into_owned());
        Ok(told.map(|info| info.value.clone()).filter(|name| !name.is_empty()).unwrap_or_else(stem))
    }

    /// Size of a base page; by default the smallest that a node has.
    fn page_size(&self) -> Result<(Bytes, Source), FormatError> {
        if let Some(info) = self.info("atoll.page_size") {
            return Ok((Bytes(whole(info)?), Source::Declared));
        }
        let pages = self.document.objects.iter().flat_map(|object| &object.pages);
        let smallest = pages.map(|&(size, _)| size).min();
        Ok(smallest.map_or((PAGE_SIZE, Source::Assumed), |size| (Bytes(size), Source::Declared)))
    }

    /// Without an info, a file written by Atoll has none, and for any other the value is unknown.
    fn huge_page_size(&self, ours: bool) -> Result<Option<Bytes>, FormatError> {
        match self.info("atoll.huge_page_size") {
            Some(info) => Ok(Some(Bytes(whole(info)?))),
            None => Ok((!ours).then_some(HUGE_PAGE_SIZE)),
        }
    }

    /// Nodes with usable cpus or memory.
    fn node_parts(&self, page_size: Bytes) -> Result<Vec<NodePart>, FormatError> {
        let with_cpus: BTreeSet<NodeId> = self.cpus.keys().map(|cpu| self.home[cpu]).collect();
        let absent = |&id| NodePart::new(id, Bytes(0));
        let mut parts: Vec<NodePart> = self.absent.iter().map(absent).collect();
        for (&id, &index) in &self.nodes {
            let object = &self.document.objects[index];
            let usable = !self.hidden.nodes.contains(id);
            let memory = Bytes(if usable { object.memory } else { 0 });
            let free = object.infos.iter().find(|info| info.name == "atoll.memory_free");
            let memory_free = free.map(whole).transpose()?.map_or(memory, Bytes);
            if memory.0 > 0 || with_cpus.contains(&id) {
                let huge_pages = huge_pages(object, page_size)?;
                let side_caches = self.side_caches(index);
                let near = self.near(object);
                parts.push(NodePart { id, near, memory, memory_free, huge_pages, side_caches });
            }
        }
        parts.sort_by_key(|part| part.id);
        Ok(parts)
    }

    /// The usable cpus local to a node's memory.
    fn near(&self, node: &XmlObject<'_>) -> CpuSet {
        let cpus: Option<CpuSet> = node.cpuset.as_deref().and_then(mask::parse);
        cpus.unwrap_or_default().iter().filter(|cpu| self.cpus.contains_key(cpu)).collect()
    }

    /// Caches between the cpus and a node's memory, from the outside in.
    fn side_caches(&self, node: usize) -> Vec<SideCache> {
        let around = self.document.around(node).map(|(_, object)| object);
        let caches = around.take_while(|object| object.kind == ObjectKind::MemoryCache);
        let mut caches: Vec<SideCache> = caches
            .map(|object| SideCache {
                level: object.depth,
                size: Bytes(object.cache_size),
                line: size(object.cache_line),
            })
            .collect();
        caches.reverse();
        caches
    }

    fn links(&self) -> Result<Vec<atoll_topology::Link>, FormatError> {
        let links = self.infos("atoll.link").zip(0..);
        links.map(|(info, id)| infos::read_link(info, LinkId(id))).collect()
    }

    fn limits(&self) -> Result<Limits, FormatError> {
        let memory = self.info("atoll.memory_limit").map(infos::read_memory_limit).transpose()?;
        let cpu_time = self.info("atoll.cpu_limit").map(infos::read_cpu_limit).transpose()?;
        Ok(Limits { memory, cpu_time })
    }
}

impl<'a> XmlDocument<'a> {
    /// The ancestors of an object, from the inside out.
    fn around(&self, object: usize) -> impl Iterator<Item = (usize, &XmlObject<'a>)> {
        let parents =
            std::iter::successors(self.objects[object].parent, |&index| self.objects[index].parent);
        parents.map(|index| (index, &self.objects[index]))
    }
}

fn huge_pages(object: &XmlObject<'_>, page_size: Bytes) -> Result<Vec<HugePages>, FormatError> {
    let told: Vec<HugePages> = object
        .infos
        .iter()
        .filter(|info| info.name == "atoll.huge_pages")
        .map(infos::read_huge_pages)
        .collect::<Result<_, _>>()?;
    if !told.is_empty() {
        return Ok(told);
    }
    let pools = object.pages.iter().filter(|(size, _)| *size != page_size.0);
    // hwloc does not record which are free.
    let mut pools: Vec<HugePages> =
        pools.map(|&(size, total)| HugePages { size: Bytes(size), total, free: total }).collect();
    pools.sort_by_key(|pool| pool.size);
    Ok(pools)
}

/// A size, for which hwloc writes 0 if unknown.
fn size(bytes: u64) -> Option<Bytes> {
    (bytes > 0).then_some(Bytes(bytes))
}

/// Indexes a PU or a NUMANode by its number.
fn number<T: From<u32> + Ord>(
    object: &XmlObject<'_>,
    index: usize,
    max: u32,
    numbers: &mut BTreeMap<T, usize>,
) -> Result<(), FormatError> {
    let expected = "a number of its own in 'os_index'";
    let Some(number) = object.os_index else {
        return Err(object.place.fail("a PU or NUMANode without a number", expected));
    };
    if numbers.insert(T::from(number), index).is_some() {
        let found = format!("the number {number} a second time");
        return Err(object.place.fail(found, expected));
    }
    if numbers.len() > max as usize {
        return Err(object.place.fail("one PU or NUMANode more", format!("at most {max}")));
    }
    Ok(())
}

fn allowed<T: From<u32> + Into<u32> + Copy>(
    text: &Option<String>,
    place: XmlPosition<'_>,
) -> Result<Option<IdSet<T>>, FormatError> {
    let set = |text: &String| mask::parse(text).ok_or_else(|| place.fail_at(text, mask::EXPECTED));
    text.as_ref().map(set).transpose()
}

fn list<T: From<u32> + Into<u32> + Copy>(info: &XmlInfo<'_>) -> Result<IdSet<T>, FormatError> {
    IdSet::parse(&info.value).map_err(|error| info.place.fail(error.reason, "a list such as 0-3,8"))
}

fn whole(info: &XmlInfo<'_>) -> Result<u64, FormatError> {
    let number = info.value.parse();
    number
        .map_err(|_| info.place.fail_at(&info.value, format!("a whole number in '{}'", info.name)))
}
