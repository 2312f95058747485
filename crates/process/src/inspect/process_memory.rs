//! Where a process's memory is, and how to read that.

use std::collections::BTreeMap;

use atoll_topology::NodeId;

use super::bytes::{NodeBytes, add, add_all};
use super::procfs::maps::{MappingKind, ProcessMapping, SegmentId};
use super::segment::{ObjectKey, Segment};

/// Default limit of resident bytes for reading a process exactly: 10 to 20 ms.
const EXACT_BYTES_MAX: u64 = 4 << 30;
/// Maximum number of segments distinguished in one process.
const SEGMENTS_MAX: usize = 4096;
/// Maximum number of policies distinguished in one process.
const POLICIES_MAX: usize = 64;

/// Options for reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOptions {
    /// Count every page however many there are.
    pub is_exact: bool,
    /// Pages to look up in a sampled process.
    pub sample_pages: u64,
    /// Resident bytes up to which a process is not sampled.
    pub exact_bytes_max: u64,
    /// Seed of the choice of pages.
    pub seed: u64,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            is_exact: false,
            sample_pages: 16_384,
            exact_bytes_max: EXACT_BYTES_MAX,
            seed: 0x6174_6f6c,
        }
    }
}

/// How it was read.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(tag = "method", rename_all = "snake_case")]
pub enum Method {
    /// Every page was counted.
    Exact,
    /// Some pages were looked up, drawn at random.
    Sampled {
        /// Addresses looked up.
        looked: u64,
        /// Of these, resident.
        resident: u64,
        /// Half the width of the 95 % confidence interval of a node's share of all memory; between
        /// 0 and 1.
        error: f64,
    },
    /// Only sums are known.
    Totals,
}

/// A policy and the mappings under it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PolicyUse {
    /// The policy in the kernel's words, such as `default` or `interleave:0-3`.
    pub policy: String,
    /// Number of mappings under it.
    pub mappings: u64,
    /// Their resident bytes.
    pub bytes: u64,
}

/// Where a process's memory is.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessMemory {
    /// How it was read.
    pub method: Method,
    /// Resident bytes by kind and node.
    pub by_kind: BTreeMap<MappingKind, NodeBytes>,
    /// Policies in force; empty if the process was sampled.
    pub policies: Option<Vec<PolicyUse>>,
    /// Bytes in transparent huge pages, if counted.
    pub huge_transparent: Option<u64>,
    /// The kernel's PSS, if every page was counted: each page divided by the number of processes
    /// of the machine that map it, so that sums over processes count no page twice. Explicit huge
    /// pages are not included.
    pub proportional: Option<u64>,
    /// Bytes swapped out.
    pub swapped: u64,
    /// Segments that other processes may map as well.
    segments: BTreeMap<ObjectKey, Segment>,
}

impl ProcessMemory {
    pub(super) fn new(method: Method, swapped: u64) -> Self {
        Self {
            method,
            by_kind: BTreeMap::new(),
            policies: None,
            huge_transparent: None,
            proportional: None,
            swapped,
            segments: BTreeMap::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        kind: MappingKind,
        segment: Option<SegmentId>,
        node: Option<NodeId>,
        bytes: u64,
    ) {
        add(self.by_kind.entry(kind).or_default(), node, bytes);
        let key = segment.map(|id| (kind, id));
        if let Some(segment) = key.and_then(|key| self.segments.get_mut(&key)) {
            add(&mut segment.bytes, node, bytes);
        }
    }

    /// A mapping of an object that other processes may map as well. Called before its pages are
    /// [added](Self::add).
    pub(super) fn view(&mut self, kind: MappingKind, mapping: &ProcessMapping, page_size: u64) {
        let Some(key) = mapping.segment.map(|id| (kind, id)) else { return };
        if self.segments.len() < SEGMENTS_MAX || self.segments.contains_key(&key) {
            self.segments.entry(key).or_insert_with(|| Segment::new(page_size)).view(mapping);
        }
    }

    pub(super) fn segments(&self) -> impl Iterator<Item = (&ObjectKey, &Segment)> {
        self.segments.iter()
    }

    pub(super) fn add_policy(&mut self, policy: &str, bytes: u64) {
        let policies = self.policies.get_or_insert_default();
        let position = policies.iter().position(|known| known.policy == policy);
        let position = position.unwrap_or_else(|| {
            if policies.len() < POLICIES_MAX {
                policies.push(PolicyUse { policy: policy.to_owned(), ..PolicyUse::default() });
            }
            policies.len() - 1
        });
        policies[position].mappings += 1;
        policies[position].bytes = policies[position].bytes.saturating_add(bytes);
    }

    /// Resident bytes by node.
    pub fn by_node(&self) -> NodeBytes {
        let mut sum = NodeBytes::new();
        for bytes in self.by_kind.values() {
            add_all(&mut sum, bytes);
        }
        sum
    }

    /// Resident bytes.
    pub fn resident(&self) -> u64 {
        self.by_node().values().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }
}
