//! The model once more, slow and readable: no filter, no stripes, no packed words, one thread.

use std::collections::{BTreeMap, BTreeSet};

use atoll_simulation::{
    CacheCounts, CacheShape, ControllerCounts, Counting, LinkTraffic, Setup, SupplierCounts,
    TagCounts, Traffic,
};

pub(crate) const PAGE: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Modified,
    Exclusive,
    Shared,
    Forward,
}

/// Keys in the order of their use, the last used first, by set.
struct Lru<V> {
    sets: Vec<Vec<(u64, V)>>,
    ways: usize,
}

impl<V> Lru<V> {
    fn new(shape: CacheShape) -> Self {
        Self { sets: (0..shape.sets).map(|_| Vec::new()).collect(), ways: shape.ways as usize }
    }

    fn set(&mut self, key: u64) -> &mut Vec<(u64, V)> {
        let sets = self.sets.len() as u64;
        &mut self.sets[(key % sets) as usize]
    }

    fn get(&mut self, key: u64) -> Option<&mut V> {
        self.set(key).iter_mut().find(|(k, _)| *k == key).map(|(_, v)| v)
    }

    fn remove(&mut self, key: u64) -> Option<V> {
        let set = self.set(key);
        let at = set.iter().position(|(k, _)| *k == key)?;
        Some(set.remove(at).1)
    }

    /// Puts a key first; what fell out.
    fn put(&mut self, key: u64, value: V) -> Option<(u64, V)> {
        let ways = self.ways;
        let set = self.set(key);
        set.retain(|(k, _)| *k != key);
        set.insert(0, (key, value));
        if set.len() > ways { set.pop() } else { None }
    }
}

struct Core {
    /// Whether each line may be written.
    l1: Lru<bool>,
    l2: Option<Lru<bool>>,
    dtlb: Lru<()>,
}

impl Core {
    fn lose(&mut self, line: u64) {
        self.l1.remove(line);
        if let Some(l2) = &mut self.l2 {
            l2.remove(line);
        }
    }

    fn set_writable(&mut self, line: u64, writable: bool) {
        for cache in [Some(&mut self.l1), self.l2.as_mut()].into_iter().flatten() {
            if let Some(copy) = cache.get(line) {
                *copy = writable;
            }
        }
    }

    /// Level in which a line is, which it uses.
    fn use_line(&mut self, line: u64) -> Option<u32> {
        if let Some(writable) = self.l1.get(line).copied() {
            self.l1.put(line, writable);
            return Some(1);
        }
        let l2 = self.l2.as_mut()?;
        let writable = *l2.get(line)?;
        l2.put(line, writable);
        self.l1.put(line, writable);
        Some(2)
    }

    fn writable(&mut self, line: u64) -> bool {
        let in_l1 = self.l1.get(line).copied();
        let in_l2 = || self.l2.as_mut().and_then(|l2| l2.get(line).copied());
        in_l1.or_else(in_l2).unwrap_or(false)
    }
}

struct Held {
    state: State,
    cores: BTreeSet<u32>,
}

pub(crate) struct Reference {
    setup: Setup,
    cores: BTreeMap<u32, Core>,
    domains: Vec<Lru<Held>>,
    tags: BTreeMap<u64, u8>,
    inside: BTreeMap<u8, u64>,
    open: Vec<u8>,
    pub(crate) total: Traffic,
    pub(crate) regions: BTreeMap<u8, Traffic>,
}

/// An access to a linear address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) cpu: usize,
    pub(crate) address: u64,
    pub(crate) linear: u64,
    pub(crate) bytes: u32,
    pub(crate) is_store: bool,
}

impl Reference {
    pub(crate) fn new(setup: &Setup) -> Self {
        let dtlb = CacheShape { sets: setup.dtlb.sets, ways: setup.dtlb.ways };
        let core =
            || Core { l1: Lru::new(setup.l1), l2: setup.l2.map(Lru::new), dtlb: Lru::new(dtlb) };
        Self {
            cores: setup.cpus.iter().map(|seat| (seat.core.0, core())).collect(),
            domains: setup.llc.iter().map(|shape| Lru::new(*shape)).collect(),
            tags: BTreeMap::new(),
            inside: BTreeMap::new(),
            open: vec![],
            total: nothing(setup),
            regions: BTreeMap::new(),
            setup: setup.clone(),
        }
    }

    pub(crate) fn open(&mut self, region: u8) {
        let inside = self.inside.entry(region).or_default();
        *inside += 1;
        if *inside == 1 {
            self.open.push(region);
            self.regions.entry(region).or_insert_with(|| nothing(&self.setup));
        }
    }

    pub(crate) fn close(&mut self, region: u8) {
        let inside = self.inside.entry(region).or_default();
        *inside = inside.saturating_sub(1);
        if *inside == 0 {
            self.open.retain(|open| *open != region);
        }
    }

    pub(crate) fn tag(&mut self, linear: u64, tag: u8) {
        self.tags.insert(linear / PAGE, tag);
    }

    pub(crate) fn instructions(&mut self, cpu: usize, count: u64) {
        let node = self.setup.cpus[cpu].node;
        self.count(|traffic| traffic.instructions[node] += count);
    }

    pub(crate) fn node(&self, linear: u64) -> usize {
        let mut end = 0;
        self.setup
            .nodes
            .iter()
            .position(|node| {
                end += node.memory.0;
                linear < end
            })
            .expect("an address of RAM")
    }

    /// Pages of each tag are counted at the end.
    pub(crate) fn finish(mut self) -> Self {
        for (page, tag) in self.tags.clone() {
            let node = self.node(page * PAGE);
            for traffic in self.regions.values_mut().chain([&mut self.total]) {
                traffic.tags[usize::from(tag)].pages[node] += 1;
            }
        }
        for traffic in self.regions.values_mut().chain([&mut self.total]) {
            let met = |tag: &TagCounts| {
                tag.tag != 0
                    && tag.accesses.iter().flatten().chain(&tag.pages).any(|count| *count > 0)
            };
            traffic.tags.retain(met);
        }
        self
    }

    fn count(&mut self, what: impl Fn(&mut Traffic)) {
        match self.open.last() {
            Some(region) => what(self.regions.get_mut(region).expect("was opened")),
            None if self.setup.counting != Counting::User => return,
            None => {}
        }
        what(&mut self.total);
    }

    pub(crate) fn access(&mut self, access: Access) {
        let Access { cpu, address, linear, bytes, is_store } = access;
        let (from, home) = (self.setup.cpus[cpu].node, self.node(linear));
        let tag = usize::from(*self.tags.get(&(linear / PAGE)).unwrap_or(&0));
        self.count(|traffic| {
            let (count, sum) = match is_store {
                false => (&mut traffic.loads, &mut traffic.load_bytes),
                true => (&mut traffic.stores, &mut traffic.store_bytes),
            };
            count[from][home] += 1;
            sum[from][home] += u64::from(bytes);
            traffic.cpus[cpu] += 1;
            traffic.tags[tag].accesses[from][home] += 1;
        });
        let core = self.cores.get_mut(&self.setup.cpus[cpu].core.0).expect("a core");
        let translated = core.dtlb.get(address / PAGE).is_some();
        core.dtlb.put(address / PAGE, ());
        if !translated {
            self.count(|traffic| traffic.caches[from].dtlb_misses += 1);
        }
        let end = linear + u64::from(bytes.max(1)) - 1;
        let page_end = linear / PAGE * PAGE + PAGE - 1;
        for line in linear / self.setup.line..=end.min(page_end) / self.setup.line {
            self.line(cpu, line, home, tag, is_store);
        }
    }

    fn line(&mut self, cpu: usize, line: u64, home: usize, tag: usize, is_store: bool) {
        let seat = self.setup.cpus[cpu];
        let (from, domain) = (seat.node, seat.domain.index());
        let core = self.cores.get_mut(&seat.core.0).expect("a core");
        if !is_store || core.writable(line) {
            match core.use_line(line) {
                Some(1) => return self.count(|traffic| traffic.caches[from].private.l1 += 1),
                Some(_) => return self.count(|traffic| traffic.caches[from].private.l2 += 1),
                None => {}
            }
        }
        let sharers = self.sharers(domain);
        let before = match self.domains[domain].remove(line) {
            Some(held) => Some(self.here(cpu, line, held, is_store, sharers)),
            None => {
                self.elsewhere(cpu, line, home, tag, is_store);
                None
            }
        };
        let core = self.cores.get_mut(&seat.core.0).expect("a core");
        if is_store {
            core.set_writable(line, true);
        }
        let level = core.use_line(line);
        if level.is_none() {
            core.l1.put(line, is_store);
            if let Some(l2) = &mut core.l2 {
                l2.put(line, is_store);
            }
        }
        let Some((state, alone)) = before else { return };
        let silent = is_store && alone && matches!(state, State::Modified | State::Exclusive);
        self.count(|traffic| {
            let caches = &mut traffic.caches[from];
            match (level.filter(|_| silent), state) {
                (Some(1), _) => caches.private.l1 += 1,
                (Some(_), _) => caches.private.l2 += 1,
                (_, State::Modified) => caches.llc_hits.modified += 1,
                (_, State::Exclusive) => caches.llc_hits.exclusive += 1,
                (_, State::Shared) => caches.llc_hits.shared += 1,
                (_, State::Forward) => caches.llc_hits.forward += 1,
            }
        });
    }

    /// A line that the domain has, just taken out of its cache to be put in again.
    fn here(
        &mut self,
        cpu: usize,
        line: u64,
        mut held: Held,
        is_store: bool,
        sharers: usize,
    ) -> (State, bool) {
        let seat = self.setup.cpus[cpu];
        let (me, domain) = (seat.core.0, seat.domain.index());
        let others: Vec<u32> = held.cores.iter().copied().filter(|core| *core != me).collect();
        let (state, alone) = (held.state, others.is_empty() && sharers <= 32);
        for core in others {
            let core = self.cores.get_mut(&core).expect("a core");
            match is_store {
                true => core.lose(line),
                false => core.set_writable(line, false),
            }
        }
        if is_store {
            held = Held { state: State::Modified, cores: BTreeSet::new() };
            if matches!(state, State::Shared | State::Forward) {
                self.count(|traffic| traffic.caches[seat.node].upgrades += 1);
                self.take_from_others(domain, line);
            }
        }
        held.cores.insert(me);
        self.domains[domain].put(line, held);
        (state, alone)
    }

    fn take_from_others(&mut self, domain: usize, line: u64) {
        for other in (0..self.domains.len()).filter(|other| *other != domain) {
            if let Some(held) = self.domains[other].remove(line) {
                held.cores.iter().for_each(|core| self.core(*core).lose(line));
            }
        }
    }

    /// A line that the domain does not hold.
    fn elsewhere(&mut self, cpu: usize, line: u64, home: usize, tag: usize, is_store: bool) {
        let seat = self.setup.cpus[cpu];
        let (from, domain, bytes) = (seat.node, seat.domain.index(), self.setup.line);
        self.count(|traffic| {
            traffic.lines[from][home] += 1;
            traffic.caches[from].llc_misses += 1;
            traffic.tags[tag].lines[from][home] += 1;
        });
        let states: Vec<Option<State>> = (0..self.domains.len())
            .map(|other| self.domains[other].get(line).map(|held| held.state))
            .collect();
        let with = |state| states.iter().position(|held| *held == Some(state));
        let dirty = with(State::Modified);
        let clean = with(State::Exclusive).or(with(State::Forward));
        if let Some(owner) = dirty {
            let node = self.node_of(owner);
            self.count(|traffic| traffic.caches[from].sources.dirty[node] += 1);
            self.send(node, from);
            if !is_store {
                self.write_back(from, owner, home);
                let holders = self.domains[owner].get(line).expect("held").cores.clone();
                holders.iter().for_each(|core| self.core(*core).set_writable(line, false));
            }
        } else if let Some(owner) = clean {
            let node = self.node_of(owner);
            self.count(|traffic| traffic.caches[from].sources.clean[node] += 1);
            self.send(node, from);
        } else {
            self.count(|traffic| traffic.caches[from].sources.memory[home] += 1);
            self.count(|traffic| traffic.controllers[home].read += bytes);
            self.send(home, from);
        }
        if is_store {
            self.take_from_others(domain, line);
        } else {
            for other in &mut self.domains {
                if let Some(held) = other.get(line) {
                    held.state = State::Shared;
                }
            }
        }
        let state = match states.iter().any(Option::is_some) {
            _ if is_store => State::Modified,
            true => State::Forward,
            false => State::Exclusive,
        };
        let held = Held { state, cores: BTreeSet::from([seat.core.0]) };
        if let Some((out, held)) = self.domains[domain].put(line, held) {
            held.cores.iter().for_each(|core| self.core(*core).lose(out));
            if held.state == State::Modified {
                let home = self.node(out * self.setup.line);
                self.write_back(from, domain, home);
            }
        }
    }

    fn write_back(&mut self, from: usize, domain: usize, home: usize) {
        let (node, bytes) = (self.node_of(domain), self.setup.line);
        self.count(|traffic| {
            traffic.caches[from].writebacks += 1;
            traffic.controllers[home].written += bytes;
        });
        self.send(node, home);
    }

    fn send(&mut self, from: usize, to: usize) {
        let bytes = self.setup.line;
        for crossing in self.setup.routes[from][to].clone() {
            self.count(|traffic| {
                let link = &mut traffic.links[crossing.link.index()];
                *(if crossing.forward { &mut link.forward } else { &mut link.backward }) += bytes;
            });
        }
    }

    fn core(&mut self, core: u32) -> &mut Core {
        self.cores.get_mut(&core).expect("a core")
    }

    fn node_of(&self, domain: usize) -> usize {
        let seat = self.setup.cpus.iter().find(|seat| seat.domain.index() == domain);
        seat.expect("a domain with lines has cpus").node
    }

    fn sharers(&self, domain: usize) -> usize {
        let seats = self.setup.cpus.iter().filter(|seat| seat.domain.index() == domain);
        seats.map(|seat| seat.core).collect::<BTreeSet<_>>().len()
    }
}

fn nothing(setup: &Setup) -> Traffic {
    let nodes = setup.nodes.len();
    let (row, matrix) = (vec![0; nodes], vec![vec![0; nodes]; nodes]);
    let sources = SupplierCounts { memory: row.clone(), clean: row.clone(), dirty: row.clone() };
    Traffic {
        instructions: row.clone(),
        loads: matrix.clone(),
        stores: matrix.clone(),
        load_bytes: matrix.clone(),
        store_bytes: matrix.clone(),
        lines: matrix.clone(),
        cpus: vec![0; setup.cpus.len()],
        caches: vec![CacheCounts { sources, ..CacheCounts::default() }; nodes],
        controllers: vec![ControllerCounts::default(); nodes],
        links: vec![LinkTraffic::default(); setup.links],
        tags: (0..16)
            .map(|tag| TagCounts {
                tag,
                pages: row.clone(),
                accesses: matrix.clone(),
                lines: matrix.clone(),
            })
            .collect(),
    }
}
