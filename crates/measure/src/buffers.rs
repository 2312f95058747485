//! Buffers to measure: placed on a node, verified to be there, and large enough that caches do not serve the reads.
//!
//! A node's measurements use up to two buffers. The chain is linked line by line in random order (latency); the stream
//! is read, written and copied (bandwidth and load). Each has four times the size of the caches in front of it, so
//! that at most a quarter of the reads could hit, and far fewer do.

use std::sync::Arc;

use atoll_placement::{
    Arena, ArenaOptions, Kernel, NodeBuffer, PAGES_SEEN_MAX, verify_pages_sampled,
};
use atoll_topology::{Bytes, Machine, Node, NodeId};

use crate::options::{BUFFER_MIN, MeasureOptions, MeasurementKind};
use crate::step::{MeasureStep, Turn};
use crate::{MeasureStepError, chain, crew, pages, seats};

/// Size of a buffer as a multiple of the caches in front of it.
const TIMES_CACHE: u64 = 4;
/// Below this multiple of the caches, too many reads would hit: no figure.
const TIMES_CACHE_MIN: u64 = 2;
/// Minimum buffer size when caches are small or unknown.
const BUFFER_DEFAULT: u64 = 64 << 20;
/// Largest share of a node's free memory that is taken: 1 / this.
const FREE_SHARE: u64 = 2;
/// Pages looked up after each step.
const PAGES_AFTER: u64 = 4096;

/// Lengths of a node's buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BufferSizes {
    pub(crate) chain: Option<Bytes>,
    pub(crate) stream: Option<Bytes>,
}

/// Memory of one node.
#[derive(Debug)]
pub(crate) struct Buffers {
    pub(crate) node: NodeId,
    /// Linked.
    pub(crate) chain: Option<NodeBuffer>,
    pub(crate) stream: Option<NodeBuffer>,
    verifiable: bool,
    kernel: Arc<dyn Kernel>,
}

impl BufferSizes {
    /// The sizes that the steps need, regardless of available memory.
    pub(crate) fn wanted(
        machine: &Machine,
        options: &MeasureOptions,
        steps: &[MeasureStep],
    ) -> Self {
        let needs = |parts: &[MeasurementKind]| steps.iter().any(|step| parts.contains(&step.part));
        let length = |cache: u64| {
            let enough = cache.saturating_mul(TIMES_CACHE).max(BUFFER_DEFAULT);
            options.buffer.unwrap_or(Bytes(enough))
        };
        let chain = needs(&[MeasurementKind::Latency, MeasurementKind::Loaded])
            .then(|| length(cache_of_cpu(machine)));
        let stream = needs(&[
            MeasurementKind::Bandwidth,
            MeasurementKind::Loaded,
            MeasurementKind::CrossTraffic,
        ])
        .then(|| length(cache_of_readers(machine, steps)));
        Self { chain, stream }
    }

    pub(crate) fn total(self) -> Bytes {
        Bytes(self.lengths().fold(0, |sum, len| sum.saturating_add(len.0)))
    }

    fn lengths(self) -> impl Iterator<Item = Bytes> {
        [self.chain, self.stream].into_iter().flatten()
    }

    /// These sizes, or what fits into `room`; `None` when that is too little to measure memory.
    fn within(self, room: Bytes, caches: (u64, u64)) -> Option<Self> {
        if self.total() <= room {
            return Some(self);
        }
        let share = room.0 as f64 / self.total().0 as f64;
        let shrink = |len: Option<Bytes>, cache: u64| match len {
            None => Some(None),
            Some(len) => {
                let len = (len.0 as f64 * share) as u64;
                let least = cache.saturating_mul(TIMES_CACHE_MIN).max(BUFFER_MIN.0);
                (len >= least).then_some(Some(Bytes(len)))
            }
        };
        let (chain, stream) = (shrink(self.chain, caches.0)?, shrink(self.stream, caches.1)?);
        Some(Self { chain, stream })
    }
}

/// The largest last-level cache of a cpu.
fn cache_of_cpu(machine: &Machine) -> u64 {
    machine.domains.iter().filter_map(|domain| domain.cache).map(|cache| cache.0).max().unwrap_or(0)
}

/// The largest total last-level cache of readers: of one node, or of all under cross traffic.
fn cache_of_readers(machine: &Machine, steps: &[MeasureStep]) -> u64 {
    let of_node = |node: &Node| {
        let caches = machine.domains_of(node.id).filter_map(|domain| domain.cache);
        caches.fold(0_u64, |sum, cache| sum.saturating_add(cache.0))
    };
    let nodes = machine.nodes.iter().map(of_node);
    match steps.iter().any(|step| step.part == MeasurementKind::CrossTraffic) {
        true => nodes.fold(0, u64::saturating_add),
        false => nodes.max().unwrap_or(0),
    }
}

impl Buffers {
    /// Memory for a turn's steps, strictly on its node; adds notes about it.
    pub(crate) fn allocate(
        machine: &Arc<Machine>,
        kernel: &Arc<dyn Kernel>,
        options: &MeasureOptions,
        turn: &Turn,
        notes: &mut Vec<String>,
    ) -> Result<Self, String> {
        let sizes = fitting(machine, kernel.as_ref(), options, turn, notes)?;
        let describe = |error: MeasureStepError| format!("node {}: {error}", turn.node);
        let arena = Arena::with_options(
            machine.clone(),
            kernel.clone(),
            None,
            ArenaOptions { strict: false, kept_max: Some(Bytes(0)) },
        );
        let place = |len: Option<Bytes>| {
            len.map(|len| arena.allocate(Some(turn.node), len.0 as usize)).transpose()
        };
        let place_both = || Ok((place(sizes.chain)?, place(sizes.stream)?));
        let (chain, stream) =
            beside_memory(machine, kernel.as_ref(), turn.node, place_both).map_err(describe)?;
        let verifiable = machine.nodes_with_memory().nth(1).is_some();
        let kernel = kernel.clone();
        let mut buffers = Self { node: turn.node, chain, stream, verifiable, kernel };
        buffers.check(PAGES_SEEN_MAX)?;
        if let Some(chain) = &mut buffers.chain {
            chain::link(chain.as_mut_slice(), options).map_err(describe)?;
        }
        notes.push(buffers.describe_pages(machine));
        Ok(buffers)
    }

    /// Checks that the memory is still on its node; the error says where it is.
    pub(crate) fn check_after(&self) -> Result<(), String> {
        self.check(PAGES_AFTER)
    }

    fn check(&self, pages_max: u64) -> Result<(), String> {
        if !self.verifiable {
            return Ok(());
        }
        let node = self.node;
        let ranges: Vec<_> = self.each().map(NodeBuffer::pages).collect();
        let report = verify_pages_sampled(self.kernel.as_ref(), &ranges, pages_max)
            .map_err(|error| format!("node {node}: cannot determine where memory is: {error}"))?;
        if report.elsewhere() == 0 && report.untouched == 0 {
            return Ok(());
        }
        let seen = report.pages_seen;
        let found: Vec<String> = report
            .by_node()
            .iter()
            .map(|(node, pages)| format!("{pages} on node {node}"))
            .collect();
        Err(format!("node {node}: of {seen} pages asked for there, {}", found.join(", ")))
    }

    fn each(&self) -> impl Iterator<Item = &NodeBuffer> {
        [&self.chain, &self.stream].into_iter().flatten()
    }

    fn describe_pages(&self, machine: &Machine) -> String {
        let range = |buffer: &NodeBuffer| {
            let start = buffer.as_ptr() as usize;
            (start, start + buffer.len())
        };
        let ranges: Vec<_> = self.each().map(range).collect();
        let len = Bytes(self.each().map(|buffer| buffer.len() as u64).sum());
        let (node, base) = (self.node, machine.page_size);
        let misses = format!("reads of the rest, in pages of {base}, include misses of the TLB");
        match pages::huge_share(&ranges) {
            Some(share) if share > 0.995 => format!("node {node}: {len} read, all on huge pages"),
            Some(share) => {
                format!("node {node}: {len} read, {:.0} % on huge pages; {misses}", share * 100.0)
            }
            None => format!("node {node}: {len} read; the kernel does not report the page size"),
        }
    }
}

/// Runs `task` on a cpu of the node, or of the nearest node with cpus: if `mbind` is refused, first touch then places
/// memory on the right node. If no thread can be bound, it runs unbound.
fn beside_memory<T: Send>(
    machine: &Machine,
    kernel: &dyn Kernel,
    node: NodeId,
    task: impl Fn() -> Result<T, MeasureStepError> + Sync + Send,
) -> Result<T, MeasureStepError> {
    let cpu = machine.nearest_with_cpus(node).and_then(|near| seats::for_latency(machine, near));
    match cpu.map(|cpu| crew::on_cpu(kernel, cpu, &task)) {
        Some(Ok(done)) => Ok(done),
        Some(Err(error @ MeasureStepError::Placement(_))) => Err(error),
        _ => task(),
    }
}

/// The turn's sizes within the free memory of its node and the limit of the control group.
fn fitting(
    machine: &Machine,
    kernel: &dyn Kernel,
    options: &MeasureOptions,
    turn: &Turn,
    notes: &mut Vec<String>,
) -> Result<BufferSizes, String> {
    let node = turn.node;
    let known = machine.node(node).map_or(Bytes(0), |node| node.memory_free);
    let mut free = kernel.node_free(node).unwrap_or(known);
    if let Some(limit) = &machine.limits.memory {
        free = free.min(limit.bytes);
    }
    let wanted = BufferSizes::wanted(machine, options, &turn.steps);
    let caches = (cache_of_cpu(machine), cache_of_readers(machine, &turn.steps));
    let room = Bytes(free.0 / FREE_SHARE);
    let sizes = wanted.within(room, caches).ok_or_else(|| {
        let wanted = wanted.total();
        format!(
            "node {node}: {free} free, of which {room} may be taken, is too little for {wanted}; \
             free some there"
        )
    })?;
    let least = [(sizes.chain, caches.0), (sizes.stream, caches.1)];
    if least.iter().any(|(len, cache)| len.is_some_and(|len| len.0 / TIMES_CACHE_MIN < *cache)) {
        notes.push(format!(
            "node {node}: the buffer asked for is smaller than {TIMES_CACHE_MIN} times the caches: \
             figures are of caches as much as of memory"
        ));
    }
    if sizes != wanted {
        let (used, wanted) = (sizes.total(), wanted.total());
        notes.push(format!(
            "node {node}: {used} read instead of {wanted} for want of free memory: some reads may \
             hit caches"
        ));
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn sizes(chain: u64, stream: u64) -> BufferSizes {
        BufferSizes { chain: Some(Bytes(chain * MIB)), stream: Some(Bytes(stream * MIB)) }
    }

    #[test]
    fn buffers_shrink_with_the_room_down_to_twice_the_caches() {
        let caches = (16 * MIB, 32 * MIB);
        let within = |room: u64| sizes(64, 128).within(Bytes(room * MIB), caches);
        assert_eq!(within(192), Some(sizes(64, 128)));
        assert_eq!(within(96), Some(sizes(32, 64)));
        assert_eq!(within(95), None);
        assert_eq!(BufferSizes::default().within(Bytes(0), caches), Some(BufferSizes::default()));
    }

    #[test]
    fn buffers_are_four_times_the_caches_of_those_who_read() {
        let machine = atoll_testkit::machines::two_nodes();
        let steps = |part| [MeasureStep { part, from: NodeId(0), to: NodeId(1) }];
        let wanted =
            |part, options: &MeasureOptions| BufferSizes::wanted(&machine, options, &steps(part));
        let options = MeasureOptions::quick();
        assert_eq!(wanted(MeasurementKind::Latency, &options).chain, Some(Bytes(64 * MIB)));
        assert_eq!(wanted(MeasurementKind::Latency, &options).stream, None);
        assert_eq!(wanted(MeasurementKind::Bandwidth, &options).stream, Some(Bytes(4 * 32 * MIB)));
        assert_eq!(
            wanted(MeasurementKind::CrossTraffic, &options).stream,
            Some(Bytes(4 * 64 * MIB))
        );
        let options = MeasureOptions { buffer: Some(Bytes(5 * MIB)), ..options };
        assert_eq!(wanted(MeasurementKind::Loaded, &options), sizes(5, 5));
    }
}
