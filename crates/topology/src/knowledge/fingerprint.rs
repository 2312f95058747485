//! Fingerprints, which identify a machine across runs.

use std::fmt::{self, Write};

use crate::Machine;

/// A machine's fingerprint, 16 hexadecimal digits: equal for two descriptions of the same hardware.
///
/// It covers models and packages, nodes with their cpus and memory, cores, caches and distances. It leaves out what can
/// change without the hardware: the name, free memory, huge pages, page sizes, limits and sources. Memory is rounded
/// up to eighths of its order of magnitude, because the kernel reserves a varying percent or two; it is ignored if one
/// node has all of it, as in virtual machines with a balloon. Cpusets must not matter either, so take the fingerprint
/// of the whole machine ([`Allowed::everything`](crate::Allowed::everything)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The fingerprint of a machine.
    pub fn from_machine(machine: &Machine) -> Self {
        let mut hash = Hash(Hash::START);
        // Hashing cannot fail: see `write_str`.
        let _ = describe(machine, &mut hash);
        Self(hash.0)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// 64-bit FNV-1a (draft-eastlake-fnv): the same in every version of Atoll and Rust. Collisions are unlikely, as only a
/// few machines share a directory.
struct Hash(u64);

impl Hash {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
}

impl Write for Hash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(Self::PRIME);
        }
        Ok(())
    }
}

/// The hardware as text. Changing a word here invalidates all stored measurements.
fn describe(machine: &Machine, text: &mut impl Write) -> fmt::Result {
    writeln!(text, "machine 1")?;
    for package in &machine.packages {
        writeln!(text, "package {} {:?} {}", package.id, package.model, package.cpus)?;
    }
    let several = machine.nodes_with_memory().nth(1).is_some();
    for node in &machine.nodes {
        let memory = if several { rounded(node.memory.0) } else { u64::from(node.memory.0 > 0) };
        writeln!(text, "node {} {} {memory}", node.id, node.cpus)?;
    }
    for core in &machine.cores {
        writeln!(text, "core {}", core.cpus)?;
    }
    for cache in &machine.caches {
        let (size, line) = (cache.size.map(|size| size.0), cache.line.map(|line| line.0));
        let (level, kind, ways, cpus) = (cache.level, cache.kind, cache.ways, &cache.cpus);
        writeln!(text, "cache {level} {kind:?} {size:?} {line:?} {ways:?} {cpus}")?;
    }
    for row in &machine.distances {
        writeln!(text, "distances {row:?}")?;
    }
    Ok(())
}

/// Rounds bytes up to a multiple of an eighth of the power of two below: 15.6 GiB become 16.
fn rounded(bytes: u64) -> u64 {
    let step = bytes.checked_ilog2().map_or(1, |log| 1 << log.saturating_sub(3));
    bytes.checked_next_multiple_of(step).unwrap_or(bytes)
}
