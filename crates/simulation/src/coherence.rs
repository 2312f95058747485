//! Requests of a core to the last-level caches, and the protocol's actions.
//!
//! | Request | Own domain | Other domains | Supplied by | Afterwards |
//! |---|---|---|---|---|
//! | load | has it | any | own cache | states as they are; a writer in the domain may no longer write |
//! | load | not | one has it M | that cache, which writes it to memory too | there S, here F |
//! | load | not | one has it E or F | that cache | there S, here F |
//! | load | not | only S | memory | here F |
//! | load | not | none | memory | here E |
//! | store | M or E | none | own cache | M, of the storing core alone |
//! | store | S or F | any | own cache, an upgrade | the same |
//! | store | not | any | as for a load, but M moves without a write to memory | the same |
//!
//! A line that a cache gives up is taken from its cores, and written to memory when it is M.

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

use crate::Setup;
use crate::core::SimulatedCore;
use crate::counters::{ByNode, CounterBlock, CounterCell, Single};
use crate::layout::{Requester, SimulatedDomain};
use crate::llc::{CutLine, HeldLine, Holders, LineState, Llc, Sharers, Stripe};
use crate::ram::{LineNumber, NodeIndex, Ram};

/// The memory system below the private caches, and where its traffic is charged.
pub(crate) struct Coherence<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) ram: &'a Ram,
    pub(crate) llc: &'a Llc,
    pub(crate) cores: &'a [CachePadded<Mutex<SimulatedCore>>],
    pub(crate) domains: &'a [SimulatedDomain],
    pub(crate) block: &'a CounterBlock,
}

/// A request of a core.
#[derive(Clone, Copy)]
pub(crate) struct LineRequest {
    pub(crate) from: Requester,
    pub(crate) line: LineNumber,
    /// The same, as [`Llc::cut`] gives it.
    pub(crate) cut: CutLine,
    /// Node of the line.
    pub(crate) home: NodeIndex,
    pub(crate) cell: CounterCell,
    pub(crate) is_store: bool,
}

/// Where a line was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineSource {
    /// In the core's domain, in this state; also whether no other core had it.
    Here { state: LineState, alone: bool },
    /// In no cache of the domain. To make room, its cache evicted another line, which the core may
    /// have and must drop too.
    Elsewhere { lost: Option<LineNumber> },
}

/// The supplier of a line.
#[derive(Clone, Copy)]
enum Supplier {
    Memory { shared: bool },
    Clean(NodeIndex),
    Dirty(NodeIndex),
}

impl Coherence<'_> {
    /// Makes a line usable for a core: afterwards its domain's cache has it, modified for a store.
    pub(crate) fn request(&self, stripe: &mut Stripe, request: LineRequest) -> LineSource {
        if let Some(found) = self.hit(stripe, request) {
            return found;
        }
        let supplier = self.supplier(stripe, request);
        self.charge(supplier, request);
        LineSource::Elsewhere { lost: self.insert(stripe, supplier, request) }
    }

    fn hit(&self, stripe: &mut Stripe, request: LineRequest) -> Option<LineSource> {
        let LineRequest { from, line, is_store, .. } = request;
        let (mut set, tag) = self.llc.set(stripe, from.domain, request.cut)?;
        let at = set.find(tag)?;
        set.promote(at);
        let held = set.get(0, tag);
        let state = held.state;
        let others = self.domains[from.domain].others(held.holders, from.me);
        let told = (from.domain, others);
        if is_store {
            set.put(0, HeldLine { tag, state: LineState::Modified, holders: from.me });
            self.tell(told, Some(from.core), line, SimulatedCore::invalidate);
            if matches!(state, LineState::Shared | LineState::Forward) {
                self.block.single(Single::Upgrades, 1);
                self.supplier(stripe, request);
            }
        } else {
            set.put(0, HeldLine { holders: held.holders.with(from.me), ..held });
            if state == LineState::Modified {
                self.tell(told, Some(from.core), line, SimulatedCore::downgrade);
            }
        }
        Some(LineSource::Here { state, alone: others == Holders::NONE })
    }

    /// Finds the holders of a line, changes the states in the other domains as the request demands, and
    /// updates the domains that have it afterwards.
    fn supplier(&self, stripe: &mut Stripe, request: LineRequest) -> Supplier {
        let mut supplier = Supplier::Memory { shared: false };
        let (own, cut) = (request.from.domain, request.cut);
        let before = self.llc.whereabouts(stripe, cut);
        for domain in before.search(self.domains.len()).filter(|domain| *domain != own) {
            let node = self.domains[domain].node;
            match (self.give(stripe, domain, request), supplier) {
                (Some(LineState::Modified), _) => supplier = Supplier::Dirty(node),
                (Some(LineState::Exclusive | LineState::Forward), _) => {
                    supplier = Supplier::Clean(node)
                }
                (Some(LineState::Shared), Supplier::Memory { .. }) => {
                    supplier = Supplier::Memory { shared: true };
                }
                _ => {}
            }
        }
        let nowhere = request.is_store || matches!(supplier, Supplier::Memory { shared: false });
        let after = if nowhere { Sharers::only(own) } else { before.and(own) };
        if after != before {
            self.llc.set_whereabouts(stripe, cut, after);
        }
        supplier
    }

    /// State in which a domain has a line; a load makes it shared, a store removes it.
    fn give(&self, stripe: &mut Stripe, domain: usize, request: LineRequest) -> Option<LineState> {
        let line = request.line;
        let (mut set, tag) = self.llc.set(stripe, domain, request.cut)?;
        let at = set.find(tag)?;
        let held = set.get(at, tag);
        if request.is_store {
            set.remove(at);
            self.tell((domain, held.holders), None, line, SimulatedCore::invalidate);
        } else {
            set.put(at, HeldLine { state: LineState::Shared, ..held });
            if held.state == LineState::Modified {
                self.tell((domain, held.holders), None, line, SimulatedCore::downgrade);
                self.write_back(domain, request.home);
            }
        }
        Some(held.state)
    }

    /// Counts a miss and its traffic.
    fn charge(&self, supplier: Supplier, request: LineRequest) {
        let to = request.from.node;
        self.block.single(Single::LlcMisses, 1);
        self.block.missed(request.cell);
        let (what, from) = match supplier {
            Supplier::Memory { .. } => (ByNode::FromMemory, request.home),
            Supplier::Clean(node) => (ByNode::FromClean, node),
            Supplier::Dirty(node) => (ByNode::FromDirty, node),
        };
        self.block.by_node(what, from, 1);
        if matches!(supplier, Supplier::Memory { .. }) {
            self.block.by_node(ByNode::Read, from, self.setup.line);
        }
        self.send(from, to);
    }

    /// Puts a line into the domain's cache. The line that it displaces is taken from the cores that
    /// have it, except from the requesting one: for that core it is returned.
    fn insert(
        &self,
        stripe: &mut Stripe,
        supplier: Supplier,
        request: LineRequest,
    ) -> Option<LineNumber> {
        let LineRequest { from, is_store, .. } = request;
        let state = match supplier {
            _ if is_store => LineState::Modified,
            Supplier::Memory { shared: false } => LineState::Exclusive,
            _ => LineState::Forward,
        };
        self.llc.prepare(stripe);
        let (mut set, tag) = self.llc.set(stripe, from.domain, request.cut)?;
        let out = set.insert(HeldLine { tag, state, holders: from.me })?;
        let line = self.llc.line(from.domain, out.tag, request.cut);
        let others = self.domains[from.domain].others(out.holders, from.me);
        self.tell((from.domain, others), Some(from.core), line, SimulatedCore::invalidate);
        if out.state == LineState::Modified {
            self.write_back(from.domain, self.ram.node(line.0 * self.setup.line));
        }
        out.holders.meets(from.me).then_some(line)
    }

    fn write_back(&self, domain: usize, home: NodeIndex) {
        self.block.single(Single::Writebacks, 1);
        self.block.by_node(ByNode::Written, home, self.setup.line);
        self.send(self.domains[domain].node, home);
    }

    /// Charges the links on the route of a line.
    fn send(&self, from: NodeIndex, to: NodeIndex) {
        if from == to {
            return;
        }
        for crossing in &self.setup.routes[from.0][to.0] {
            self.block.link(crossing.link.index(), crossing.forward, self.setup.line);
        }
    }

    /// Notifies cores of a domain, except one if given, of a change of a line.
    fn tell(
        &self,
        (domain, who): (usize, Holders),
        but: Option<usize>,
        line: LineNumber,
        what: fn(&mut SimulatedCore, LineNumber),
    ) {
        if who == Holders::NONE {
            return;
        }
        for core in self.domains[domain].holders(who).filter(|core| Some(*core) != but) {
            what(&mut self.cores[core].lock(), line);
        }
    }
}
