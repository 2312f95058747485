//! The best set of k cores for a set of pages.

use std::collections::{BTreeMap, BTreeSet};

use super::costs::{CostBasis, CpuNodeCosts, QuestionError};
use crate::{CoreId, CpuId, CpuSet, DomainId, Knowledge, Machine, NodeId};

/// A set of cores and the cost of accessing the given pages from them.
#[derive(Clone, Debug, PartialEq)]
pub struct BestCores {
    /// The cores, by id.
    pub cores: Vec<CoreId>,
    /// The first free cpu of each, for one thread per core.
    pub cpus: CpuSet,
    /// The other free cpus of these cores, for second threads or to be left idle.
    pub siblings: CpuSet,
    /// Mean cost of an access to the pages, over all cores; 0 without pages.
    pub cost: f64,
    /// The unit of the cost.
    pub basis: CostBasis,
}

/// A core with a free cpu.
#[derive(Clone, Debug)]
struct Candidate {
    core: CoreId,
    domain: DomainId,
    node: NodeId,
    /// Its free cpus.
    cpus: CpuSet,
    /// Whether all its cpus are free.
    is_free: bool,
}

/// Cores chosen so far.
#[derive(Default)]
struct ChosenCores<'a> {
    cores: Vec<&'a Candidate>,
    by_domain: BTreeMap<DomainId, usize>,
}

impl Knowledge {
    /// The best set of `count` cores, out of those with a cpu in `free`, for threads that access
    /// these pages (nodes with numbers of pages) evenly. It optimises these criteria in lexicographic order:
    ///
    /// 1. the fewest cores with a busy cpu, so that no thread shares a core with another program before all free cores
    ///    are taken;
    /// 2. the smallest mean cost of an access, Σ over cores and pages of cost(core's node, page's
    ///    node) ÷ (cores × pages), with costs as [`CostBasis`] says;
    /// 3. the most cores in one domain, then the most in a second, and so on: few domains, complete if possible, so
    ///    that threads share last-level caches only with each other;
    /// 4. the fewest free cores left over in the domains it takes free cores from;
    /// 5. the smallest domain ids, then the smallest core ids.
    pub fn best_cores(
        &self,
        count: usize,
        pages: &[(NodeId, u64)],
        free: &CpuSet,
    ) -> Result<BestCores, QuestionError> {
        let costs = CpuNodeCosts::for_data(self, pages)?;
        let candidates = candidates(&self.machine, free);
        if count > candidates.len() {
            return Err(QuestionError::TooFewCores { asked: count, free: candidates.len() });
        }
        let mut chosen = ChosenCores::default();
        for is_free in [true, false] {
            let pool = candidates.iter().filter(|core| core.is_free == is_free).collect();
            chosen.take(count - chosen.cores.len(), pool, &costs);
        }
        Ok(chosen.answer(&costs))
    }
}

/// Cores with a free cpu, by id.
fn candidates(machine: &Machine, free: &CpuSet) -> Vec<Candidate> {
    let candidate = |core: &crate::Core| {
        let cpus = core.cpus.intersection(free);
        let node = machine.domains[core.domain.index()].node;
        let is_free = cpus.len() == core.cpus.len();
        (!cpus.is_empty()).then_some(Candidate {
            core: core.id,
            domain: core.domain,
            node,
            cpus,
            is_free,
        })
    };
    machine.cores.iter().filter_map(candidate).collect()
}

impl<'a> ChosenCores<'a> {
    /// Takes up to `count` cores from the pool, those of the cheapest nodes first. Criteria 3 to 5 matter only among
    /// nodes of equal cost if not all of their cores are needed.
    fn take(&mut self, count: usize, mut pool: Vec<&'a Candidate>, costs: &CpuNodeCosts) {
        let mut left = count.min(pool.len());
        let cost = |core: &Candidate| costs.sum(core.node);
        pool.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
        for class in pool.chunk_by(|a, b| cost(a) == cost(b)) {
            left -= self.fill(left, class);
        }
    }

    /// Takes up to `count` cores of equal cost and returns the number taken: repeatedly from the domain that then has
    /// the most cores taken in total; ties go to the domain that needs the fewest new cores, then to the smallest id.
    fn fill(&mut self, count: usize, class: &[&'a Candidate]) -> usize {
        let mut domains: BTreeMap<DomainId, Vec<&Candidate>> = BTreeMap::new();
        for core in class {
            domains.entry(core.domain).or_default().push(core);
        }
        // Domains with the same cores taken and the same number to take differ only in ids.
        let mut alike: BTreeMap<(usize, usize), BTreeSet<DomainId>> = BTreeMap::new();
        for (&domain, cores) in &domains {
            let taken = self.by_domain.get(&domain).copied().unwrap_or(0);
            alike.entry((taken, cores.len())).or_default().insert(domain);
        }
        let mut left = count.min(class.len());
        while left > 0 {
            let rank = |&(taken, pool): &(usize, usize)| {
                let new = pool.min(left);
                (taken + new, usize::MAX - new, usize::MAX - pool)
            };
            let Some(&key) = alike.keys().max_by_key(|key| rank(key)) else { break };
            let Some(domain) = alike.get_mut(&key).and_then(BTreeSet::pop_first) else {
                alike.remove(&key);
                continue;
            };
            let new = key.1.min(left);
            self.cores.extend(&domains[&domain][..new]);
            *self.by_domain.entry(domain).or_default() += new;
            left -= new;
        }
        count.min(class.len())
    }

    fn answer(self, costs: &CpuNodeCosts) -> BestCores {
        let first = |core: &Candidate| -> Option<CpuId> { core.cpus.first() };
        let cpus: CpuSet = self.cores.iter().filter_map(|core| first(core)).collect();
        let all: CpuSet = self.cores.iter().flat_map(|core| core.cpus.iter()).collect();
        let sum = self.cores.iter().map(|core| costs.sum(core.node)).sum();
        let mut cores: Vec<CoreId> = self.cores.iter().map(|core| core.core).collect();
        cores.sort_unstable();
        let cost = costs.mean(sum, cores.len());
        BestCores { cores, siblings: all.difference(&cpus), cpus, cost, basis: costs.basis }
    }
}
