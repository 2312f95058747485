//! Whether a set-up describes a machine that can be simulated.

use std::collections::BTreeMap;

use super::{CacheShape, PAGE, SET_TAGS, SETUP_VERSION, Setup, SetupError};

/// Cpus at most.
const CPUS: usize = 1024;
/// Nodes at most.
const NODES: usize = 64;
/// Links at most: twice as many as join each of the nodes with each other.
const LINKS: usize = 4096;
/// RAM at most, in bytes: 16 TiB.
const RAM: u64 = 1 << 44;
/// Sets of a cache at most.
const SETS: u32 = 1 << 24;
/// Ways of a cache at most: a fully associative buffer of this many entries is searched one by one.
const WAYS: u32 = 4096;
/// Lines of all last-level caches together at most, and of all private ones: 4 GiB at 64 bytes.
const LINES: u64 = 1 << 26;
/// End of the addresses below the hole.
const HOLE_END: u64 = 1 << 32;

impl Setup {
    /// Checks sizes, indexes and version.
    ///
    /// # Errors
    ///
    /// The first thing found wrong, by its name in the JSON.
    pub fn check(&self) -> Result<(), SetupError> {
        self.check_version()?;
        self.check_nodes()?;
        self.check_cpus()?;
        self.check_caches()?;
        self.check_routes()
    }

    fn check_version(&self) -> Result<(), SetupError> {
        require(self.version == SETUP_VERSION, || {
            format!("version is {}, this plugin reads {SETUP_VERSION}", self.version)
        })
    }

    fn check_nodes(&self) -> Result<(), SetupError> {
        in_range("nodes", self.nodes.len(), NODES)?;
        let page = |bytes: u64| bytes.is_multiple_of(PAGE);
        for (i, node) in self.nodes.iter().enumerate() {
            require(page(node.memory.0), || {
                format!(
                    "nodes[{i}].memory is not a multiple of \
                                                     {PAGE}"
                )
            })?;
            let before = i.checked_sub(1).and_then(|i| self.nodes.get(i));
            require(before.is_none_or(|before| before.id < node.id), || {
                format!("nodes[{i}].id does not follow the one before it")
            })?;
        }
        let ram = self.nodes.iter().try_fold(0u64, |sum, node| sum.checked_add(node.memory.0));
        require(ram.is_some_and(|ram| ram <= RAM), || {
            "nodes have more than 16 TiB of memory".into()
        })?;
        let low = self.low_memory.0;
        require(page(low) && low <= HOLE_END, || {
            format!("low_memory is {low}, not a multiple of {PAGE} up to 4 GiB")
        })
    }

    fn check_cpus(&self) -> Result<(), SetupError> {
        in_range("cpus", self.cpus.len(), CPUS)?;
        let mut places = BTreeMap::new();
        for (i, seat) in self.cpus.iter().enumerate() {
            require(seat.node < self.nodes.len(), || format!("cpus[{i}].node does not exist"))?;
            require(seat.domain.index() < self.llc.len(), || {
                format!("cpus[{i}].domain has no cache in llc")
            })?;
            let place = places.entry(seat.core).or_insert((seat.node, seat.domain));
            require(*place == (seat.node, seat.domain), || {
                format!("cpus[{i}].core lies on two nodes or in two domains")
            })?;
        }
        Ok(())
    }

    fn check_caches(&self) -> Result<(), SetupError> {
        let line = self.line;
        require(line.is_power_of_two() && (16..=PAGE).contains(&line), || {
            format!("line is {line}, not a power of two from 16 to {PAGE}")
        })?;
        let private = lines("l1", self.l1)? + self.l2.map_or(Ok(0), |l2| lines("l2", l2))?;
        let dtlb = CacheShape { sets: self.dtlb.sets, ways: self.dtlb.ways };
        let private = (private + lines("dtlb", dtlb)?) * self.cpus.len() as u64;
        require(private <= LINES, || "l1, l2 and dtlb of all cpus are too large".into())?;
        in_range("llc", self.llc.len(), CPUS)?;
        let shared = self.llc.iter().map(|llc| lines("llc", *llc)).sum::<Result<u64, _>>()?;
        require(shared <= LINES, || format!("llc has {shared} lines, more than {LINES}"))?;
        let ram = self.nodes.iter().map(|node| node.memory.0).sum::<u64>() / line;
        let fits = |shape: &CacheShape| ram / u64::from(shape.sets) < SET_TAGS;
        require(self.llc.iter().all(fits), || "llc has too few sets for so much memory".into())
    }

    fn check_routes(&self) -> Result<(), SetupError> {
        require(self.links <= LINKS, || format!("links is more than {LINKS}"))?;
        let nodes = self.nodes.len();
        require(self.routes.len() == nodes, || format!("routes must have {nodes} rows"))?;
        for (i, row) in self.routes.iter().enumerate() {
            require(row.len() == nodes, || format!("routes[{i}] must have {nodes} entries"))?;
            for (j, route) in row.iter().enumerate() {
                let known = route.iter().all(|crossing| crossing.link.index() < self.links);
                require(known, || format!("routes[{i}][{j}] crosses a link that does not exist"))?;
                require(route.len() < nodes && (i != j || route.is_empty()), || {
                    format!("routes[{i}][{j}] contains a cycle")
                })?;
            }
        }
        Ok(())
    }
}

/// Lines of a cache.
fn lines(name: &str, shape: CacheShape) -> Result<u64, SetupError> {
    require((1..=SETS).contains(&shape.sets) && (1..=WAYS).contains(&shape.ways), || {
        format!(
            "{name} has {} sets of {} ways, not 1 to {SETS} of 1 to {WAYS}",
            shape.sets, shape.ways
        )
    })?;
    Ok(u64::from(shape.sets) * u64::from(shape.ways))
}

fn in_range(name: &str, count: usize, most: usize) -> Result<(), SetupError> {
    require((1..=most).contains(&count), || format!("{name} has {count} entries, not 1 to {most}"))
}

fn require(holds: bool, what: impl FnOnce() -> String) -> Result<(), SetupError> {
    if holds { Ok(()) } else { Err(SetupError(what())) }
}
