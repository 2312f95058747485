//! The simulated kernel's state: mappings with the home of each page, memory of each node, and cpus of threads.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use atoll_placement::{KernelError, Mapping, Policy};
use atoll_sys as sys;
use atoll_topology::{Bytes, CpuId, CpuSet, Machine, NodeId};

use super::Denial;

/// The state of the simulated kernel.
#[derive(Debug)]
pub(super) struct Book {
    machine: Arc<Machine>,
    page: usize,
    mappings: BTreeMap<usize, BookEntry>,
    /// By thread number.
    seats: HashMap<u32, ThreadSeat>,
    seats_taken: usize,
    pub(super) free: BTreeMap<NodeId, u64>,
    pub(super) cache: BTreeMap<NodeId, u64>,
    pub(super) denials: HashMap<&'static str, Denial>,
    pub(super) calls: HashMap<&'static str, u64>,
}

/// Where a thread may run, and where it runs.
#[derive(Clone, Debug)]
pub(super) struct ThreadSeat {
    pub(super) cpus: CpuSet,
    pub(super) cpu: CpuId,
}

#[derive(Debug)]
struct BookEntry {
    len: usize,
    policy: Policy,
    /// Node of the thread that mapped it.
    mapper: NodeId,
    homes: Vec<Option<NodeId>>,
}

impl Book {
    pub(super) fn new(machine: Arc<Machine>) -> Self {
        let free = machine.nodes.iter().map(|node| (node.id, node.memory_free.0)).collect();
        Self {
            page: machine.page_size.0 as usize,
            machine,
            mappings: BTreeMap::new(),
            seats: HashMap::new(),
            seats_taken: 0,
            free,
            cache: BTreeMap::new(),
            denials: HashMap::new(),
            calls: HashMap::new(),
        }
    }

    pub(super) fn add(&mut self, mapping: Mapping) {
        let entry = BookEntry {
            len: mapping.len(),
            policy: Policy::Default,
            mapper: self.own_node(),
            homes: vec![None; mapping.len() / self.page],
        };
        self.mappings.insert(mapping.address(), entry);
    }

    pub(super) fn remove(&mut self, mapping: Mapping) {
        let entry = self.mappings.remove(&mapping.address());
        let entry = entry.expect("only mappings of the simulated kernel are given back to it");
        assert_eq!(entry.len, mapping.len(), "a mapping is given back whole");
        for home in entry.homes.into_iter().flatten() {
            *self.free.entry(home).or_insert(0) += self.page as u64;
        }
    }

    pub(super) fn mapped(&self) -> Bytes {
        Bytes(self.mappings.values().map(|entry| entry.len as u64).sum())
    }

    pub(super) fn policy_at(&self, address: usize) -> Option<Policy> {
        let start = self.find(address)?;
        Some(self.mappings[&start].policy.clone())
    }

    pub(super) fn set_policy(
        &mut self,
        mapping: Mapping,
        policy: &Policy,
    ) -> Result<(), KernelError> {
        let (machine, call) = (&self.machine, "mbind");
        let has_memory =
            |node: NodeId| machine.node(node).is_some_and(|node| node.memory > Bytes(0));
        let valid = match policy {
            Policy::Default | Policy::Local => true,
            Policy::Preferred(node) => has_memory(*node),
            Policy::Bind(nodes) | Policy::Interleave(nodes) | Policy::WeightedInterleave(nodes) => {
                !nodes.is_empty() && nodes.iter().all(has_memory)
            }
        };
        if !valid {
            let reason = format!("EINVAL: not all nodes of {policy:?} have memory here");
            return Err(KernelError::Refused { call, reason });
        }
        let entry = self.mappings.get_mut(&mapping.address());
        let reason = || "EFAULT: not the start of a mapping".to_owned();
        entry.ok_or_else(|| KernelError::Failed { call, reason: reason() })?.policy =
            policy.clone();
        Ok(())
    }

    /// Gives every page that the range overlaps a home, as if the calling thread touched it.
    pub(super) fn populate(&mut self, range: Mapping) -> Result<(), KernelError> {
        let toucher = self.own_node();
        let first = range.address() / self.page * self.page;
        for address in (first..range.address() + range.len()).step_by(self.page) {
            if !self.touch(address, toucher) {
                let reason =
                    format!("no page free for {} under its policy", Bytes(range.len() as u64));
                return Err(KernelError::OutOfMemory { call: "populate", reason });
            }
        }
        Ok(())
    }

    /// Home of the page that contains an address; a page that was written to without being populated gets it now.
    pub(super) fn home(&mut self, address: usize) -> Option<NodeId> {
        let page = address / self.page * self.page;
        let start = self.find(page)?;
        let entry = &self.mappings[&start];
        let (home, mapper) = (entry.homes[(page - start) / self.page], entry.mapper);
        let written = || sys::mincore(page, 1).is_ok_and(|present| present == [true]);
        if home.is_some() || !written() {
            return home;
        }
        self.touch(page, mapper);
        self.mappings[&start].homes[(page - start) / self.page]
    }

    /// Start of the mapping that contains an address.
    fn find(&self, address: usize) -> Option<usize> {
        let (start, entry) = self.mappings.range(..=address).next_back()?;
        (address < start + entry.len).then_some(*start)
    }

    /// Gives one page a home unless it has one; false if there is no memory or no mapping.
    fn touch(&mut self, address: usize, toucher: NodeId) -> bool {
        let Some(start) = self.find(address) else { return false };
        let page = (address - start) / self.page;
        let entry = &self.mappings[&start];
        if entry.homes[page].is_some() {
            return true;
        }
        let policy = entry.policy.clone();
        let home = match policy {
            // Nearly every page comes from the first node; ordering the others takes a sort.
            Policy::Preferred(node) if self.take_free(node) => Some(node),
            _ => self.take_page(&self.nodes_in_order(&policy, page, toucher)),
        };
        if let Some(entry) = self.mappings.get_mut(&start) {
            entry.homes[page] = home;
        }
        home.is_some()
    }

    /// Nodes that a page may come from, the best first.
    fn nodes_in_order(&self, policy: &Policy, page: usize, toucher: NodeId) -> Vec<NodeId> {
        let from = |node: NodeId| -> Vec<NodeId> {
            self.machine.nodes_by_distance(node).into_iter().map(|node| node.id).collect()
        };
        match policy {
            Policy::Default | Policy::Local => from(toucher),
            Policy::Preferred(node) => from(*node),
            Policy::Bind(nodes) => {
                from(toucher).into_iter().filter(|node| nodes.contains(*node)).collect()
            }
            Policy::Interleave(nodes) | Policy::WeightedInterleave(nodes) => {
                nodes.iter().nth(page % nodes.len()).map(from).unwrap_or_default()
            }
        }
    }

    /// Takes a page of free memory; false if there is none.
    fn take_free(&mut self, node: NodeId) -> bool {
        let page = self.page as u64;
        let left = self.free.get_mut(&node).filter(|left| **left >= page);
        left.map(|left| *left -= page).is_some()
    }

    /// Takes a page from the first of the nodes that has one free, else from its file cache.
    fn take_page(&mut self, nodes: &[NodeId]) -> Option<NodeId> {
        let page = self.page as u64;
        for memory in [&mut self.free, &mut self.cache] {
            for node in nodes {
                if let Some(left) = memory.get_mut(node).filter(|left| **left >= page) {
                    *left -= page;
                    return Some(*node);
                }
            }
        }
        None
    }

    pub(super) fn bind_thread(&mut self, thread: u32, cpus: &CpuSet) -> Result<(), KernelError> {
        let usable = cpus.intersection(&self.all_cpus());
        if usable.is_empty() {
            let reason = format!("EINVAL: none of the cpus '{cpus}' exists");
            return Err(KernelError::Refused { call: "sched_setaffinity", reason });
        }
        self.sit(thread, usable);
        Ok(())
    }

    /// The calling thread's seat; a new thread gets one.
    pub(super) fn seat(&mut self) -> &ThreadSeat {
        let thread = sys::gettid().cast_unsigned();
        if !self.seats.contains_key(&thread) {
            self.sit(thread, self.all_cpus());
        }
        &self.seats[&thread]
    }

    pub(super) fn cpus_of(&self, thread: u32) -> CpuSet {
        self.seats.get(&thread).map_or_else(|| self.all_cpus(), |seat| seat.cpus.clone())
    }

    /// Puts a thread on one of these cpus, in turn.
    fn sit(&mut self, thread: u32, cpus: CpuSet) {
        let turn = self.seats_taken % cpus.len();
        let cpu = cpus.iter().nth(turn).expect("a thread sits on at least one cpu");
        self.seats_taken += 1;
        self.seats.insert(thread, ThreadSeat { cpus, cpu });
    }

    fn all_cpus(&self) -> CpuSet {
        self.machine.cpus.iter().map(|cpu| cpu.id).collect()
    }

    fn own_node(&mut self) -> NodeId {
        let cpu = self.seat().cpu;
        self.machine.cpu(cpu).expect("threads sit on cpus of the machine").node
    }
}
