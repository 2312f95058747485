//! Parses the output of `numactl -H` into a machine: nodes with their cpus and memory, and distances.
//!
//! The output does not include packages, cores and caches: each node becomes a package, each cpu a core, and
//! a node's cpus one domain, marked as assumed.

use std::collections::{BTreeMap, BTreeSet};

use super::NO_NUMA;
use crate::FormatError;
use atoll_topology::assemble::{self, CachePart, CpuPart, MachineParts, NodePart};
use atoll_topology::{
    Bytes, CPUS_MAX, CpuId, CpuSet, Hidden, Knowledge, Limits, NODES_MAX, NodeId, PackageId,
    SET_NUMBER_MAX, Source,
};
use atoll_topology::{HUGE_PAGE_SIZE, PAGE_SIZE};

const HEADER: &str = "'available: 2 nodes (0-1)', the first line of 'numactl -H'";

/// The name of the end of input in messages.
const END: &str = "the end of the text";

/// Reads the output of `numactl -H`, also with `--cpu-compress`; `file` is the name for messages.
pub fn parse(text: &str, file: &str) -> Result<Knowledge, FormatError> {
    let mut lines = RemainingLines { file, lines: text.lines().zip(1..), line: 0 };
    lines.header()?;
    let mut nodes = BTreeMap::new();
    let distances = loop {
        let Some(line) = lines.next() else { break None };
        if line == "No distance information available." {
            break None;
        }
        if line == "node distances:" {
            break Some(lines.distances(&nodes)?);
        }
        lines.node(line, &mut nodes)?;
    };
    lines.end()?;
    lines.machine(nodes, distances)
}

/// A node of the output.
#[derive(Clone, Debug, Default)]
struct Lot {
    cpus: Option<CpuSet>,
    size: Option<Bytes>,
    free: Option<Bytes>,
}

impl Lot {
    fn is_empty(&self) -> bool {
        self.cpus.as_ref().is_none_or(CpuSet::is_empty) && self.size.is_none_or(|size| size.0 == 0)
    }
}

/// The remaining lines, and the current position.
struct RemainingLines<'a, I> {
    file: &'a str,
    lines: I,
    line: usize,
}

impl<'a, I: Iterator<Item = (&'a str, usize)>> RemainingLines<'a, I> {
    /// The next non-blank line, trimmed.
    fn next(&mut self) -> Option<&'a str> {
        for (text, line) in self.lines.by_ref() {
            self.line = line;
            if !text.trim().is_empty() {
                return Some(text.trim());
            }
        }
        None
    }

    fn fail(&self, found: impl Into<String>, expected: impl Into<String>) -> FormatError {
        FormatError {
            file: self.file.to_owned(),
            line: (self.line > 0).then_some(self.line),
            found: found.into(),
            expected: expected.into(),
        }
    }

    fn header(&mut self) -> Result<(), FormatError> {
        let Some(line) = self.next() else { return Err(self.fail("nothing", HEADER)) };
        let count = line.strip_prefix("available: ").and_then(|rest| rest.split_once(" nodes ("));
        match count {
            Some(("0", _)) => Err(self.fail("a machine without nodes", HEADER)),
            Some(_) => Ok(()),
            None if line == NO_NUMA || line.starts_with("No NUMA") => {
                Err(self.fail(format!("'{line:.80}'"), "a machine whose kernel has NUMA"))
            }
            None => Err(self.fail(format!("'{line:.80}'"), HEADER)),
        }
    }

    /// A line such as `node 0 cpus: 0 1`.
    fn node(&self, line: &str, nodes: &mut BTreeMap<NodeId, Lot>) -> Result<(), FormatError> {
        let expected = "'node 0 cpus: …', 'node 0 size: … MB' or 'node 0 free: … MB'";
        let fail = || self.fail(format!("'{line:.80}'"), expected);
        let (words, value) = line.split_once(':').ok_or_else(fail)?;
        let words: Vec<&str> = words.split_whitespace().collect();
        let ["node", id, key] = words[..] else { return Err(fail()) };
        let lot = nodes.entry(NodeId(self.number(id, SET_NUMBER_MAX)?)).or_default();
        let twice = match key {
            "cpus" => lot.cpus.replace(self.cpus(value)?).is_some(),
            "size" => lot.size.replace(self.megabytes(value)?).is_some(),
            "free" => lot.free.replace(self.megabytes(value)?).is_some(),
            _ => return Err(fail()),
        };
        if twice {
            return Err(
                self.fail(format!("a second '{words:.80}'", words = words.join(" ")), "one")
            );
        }
        if nodes.len() > NODES_MAX as usize {
            return Err(self.fail("one node more", format!("at most {NODES_MAX}")));
        }
        Ok(())
    }

    fn number(&self, text: &str, max: u32) -> Result<u32, FormatError> {
        match text.parse::<u32>() {
            Ok(number) if number <= max => Ok(number),
            _ => Err(self.fail(format!("'{text:.40}'"), format!("a number up to {max}"))),
        }
    }

    /// Cpus separated by spaces, or `0-3, 8 (5)` with their count.
    fn cpus(&self, value: &str) -> Result<CpuSet, FormatError> {
        let list = value.split_once('(').map_or(value, |(list, _count)| list);
        let parts = list.split([' ', ',', '\t']).filter(|part| !part.is_empty());
        CpuSet::parse(&parts.collect::<Vec<_>>().join(","))
            .map_err(|error| self.fail(error.reason, "cpus such as '0 1 2 3'"))
    }

    fn megabytes(&self, value: &str) -> Result<Bytes, FormatError> {
        if value.trim() == "<not available>" {
            return Ok(Bytes(0));
        }
        let number = value.trim().strip_suffix(" MB").and_then(|number| number.parse::<u64>().ok());
        number
            .and_then(|number| number.checked_mul(1 << 20))
            .map(Bytes)
            .ok_or_else(|| self.fail(format!("'{value:.40}'"), "a size such as '15706 MB'"))
    }

    /// The matrix, one row and one column for each node.
    fn distances(&mut self, nodes: &BTreeMap<NodeId, Lot>) -> Result<Vec<Vec<u32>>, FormatError> {
        let head: Vec<String> = std::iter::once("node".to_owned())
            .chain(nodes.keys().map(ToString::to_string))
            .collect();
        let line = self.next().unwrap_or(END);
        if !line.split_whitespace().eq(head.iter().map(String::as_str)) {
            let found = format!("'{line:.80}'");
            return Err(self.fail(found, "a column of distances for each of the nodes above"));
        }
        nodes.keys().map(|&id| self.row(id, nodes.len())).collect()
    }

    fn row(&mut self, id: NodeId, nodes: usize) -> Result<Vec<u32>, FormatError> {
        let line = self.next().unwrap_or(END);
        let expected = format!("'{id}:' and {nodes} distances");
        let fail = |found: String| self.fail(found, expected.clone());
        let (name, row) = line.split_once(':').ok_or_else(|| fail(format!("'{line:.80}'")))?;
        if name.trim() != id.to_string() {
            return Err(fail(format!("the row '{name:.40}'")));
        }
        let row: Vec<u32> = row
            .split_whitespace()
            .map(|text| self.number(text, u32::MAX))
            .collect::<Result<_, _>>()?;
        if row.len() != nodes {
            return Err(fail(format!("{} distances", row.len())));
        }
        Ok(row)
    }

    fn end(&mut self) -> Result<(), FormatError> {
        match self.next() {
            None => Ok(()),
            Some(line) => Err(self.fail(format!("'{line:.80}'"), "the end of the text")),
        }
    }

    /// The machine, without the nodes that have neither cpus nor memory, which numactl lists.
    fn machine(
        &self,
        nodes: BTreeMap<NodeId, Lot>,
        distances: Option<Vec<Vec<u32>>>,
    ) -> Result<Knowledge, FormatError> {
        let kept: Vec<bool> = nodes.values().map(|lot| !lot.is_empty()).collect();
        let source = if distances.is_some() { Source::Declared } else { Source::Assumed };
        let distances = match distances {
            Some(rows) => only(rows, &kept).map(|row| only(row, &kept).collect()).collect(),
            None => assemble::distances_assumed(kept.iter().filter(|&&kept| kept).count()),
        };
        let cpus = self.cpu_parts(&nodes)?;
        Ok(Knowledge::from_machine(assemble::machine(MachineParts {
            name: self.name(),
            source: Source::Declared,
            nodes: nodes.iter().filter(|(_, lot)| !lot.is_empty()).map(node_part).collect(),
            cpus,
            models: BTreeMap::new(),
            memory_source: Source::Declared,
            memory_free_source: Source::Declared,
            dies: Vec::new(),
            cpu_kinds: Vec::new(),
            caches_source: Source::Assumed,
            caches: Vec::new(),
            links: Vec::new(),
            links_source: Source::Assumed,
            distances,
            distances_source: source,
            hidden: Hidden::default(),
            limits: Limits::default(),
            pages_source: Source::Assumed,
            page_size: PAGE_SIZE,
            huge_page_size: Some(HUGE_PAGE_SIZE),
            assumptions: Vec::new(),
        })))
    }

    fn cpu_parts(&self, nodes: &BTreeMap<NodeId, Lot>) -> Result<Vec<CpuPart>, FormatError> {
        let mut seen = BTreeSet::new();
        let mut parts = Vec::new();
        for (&node, lot) in nodes {
            let cpus = lot.cpus.iter().flat_map(CpuSet::iter);
            let leader = lot.cpus.as_ref().and_then(CpuSet::first).unwrap_or_default();
            for id in cpus {
                // A kernel with numa=fake lists the cpus of a node with every part of it.
                if seen.insert(id) {
                    parts.push(cpu_part(id, node, leader));
                }
            }
        }
        if parts.is_empty() || parts.len() > CPUS_MAX as usize {
            let expected = format!("a machine of 1 to {CPUS_MAX}");
            return Err(self.fail(format!("{} cpus", parts.len()), expected));
        }
        Ok(parts)
    }

    /// The file's name without directories and extension.
    fn name(&self) -> String {
        let path = std::path::Path::new(self.file);
        path.file_stem()
            .map_or_else(|| "numactl".into(), |stem| stem.to_string_lossy().into_owned())
    }
}

fn only<T>(items: Vec<T>, kept: &[bool]) -> impl Iterator<Item = T> {
    items.into_iter().zip(kept).filter(|(_, kept)| **kept).map(|(item, _)| item)
}

fn cpu_part(id: CpuId, node: NodeId, leader: CpuId) -> CpuPart {
    let cache = CachePart { leader, level: None, size: None };
    CpuPart { id, package: PackageId(node.0), node, core: id, cache }
}

fn node_part((&id, lot): (&NodeId, &Lot)) -> NodePart {
    let memory = lot.size.unwrap_or_default();
    let memory_free = lot.free.unwrap_or_default().min(memory);
    NodePart { memory_free, ..NodePart::new(id, memory) }
}
