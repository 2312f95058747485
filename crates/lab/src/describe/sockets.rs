//! Where each cpu sits in QEMU's sockets, dies, cores and threads.
//!
//! QEMU's shape is regular: every socket has as many dies, every die as many cores, every core as many
//! threads. An uneven machine gets the smallest regular shape around it, of which only the places that
//! it has are plugged; the others are holes. A die is what shares a last-level cache, so a domain is a
//! die.

use std::collections::HashMap;

use atoll_topology::{CpuId, Machine, NodeId};

use super::DescribeError;

/// Largest APIC id without an interrupt-remapping unit.
const APIC_ID_MAX: u64 = 254;

/// A regular shape and the places of it that are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sockets {
    pub(super) sockets: u32,
    pub(super) dies: u32,
    pub(super) cores: u32,
    pub(super) threads: u32,
    /// Every place in the order of vCPU numbers.
    pub(super) places: Vec<VcpuSlot>,
}

/// A place for a cpu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VcpuSlot {
    pub(super) socket: u32,
    pub(super) die: u32,
    pub(super) core: u32,
    pub(super) thread: u32,
    /// Its node; of a hole that of the last cpu before it.
    pub(super) node: NodeId,
    /// The cpu; None for a hole.
    pub(super) cpu: Option<CpuId>,
}

/// Socket, die, core, thread.
type VcpuSeat = [u32; 4];

impl Sockets {
    pub(super) fn try_from_machine(
        machine: &Machine,
        notes: &mut Vec<String>,
    ) -> Result<Self, DescribeError> {
        let exact = seats(machine, false);
        if apic_id_max(shape(&exact)) <= APIC_ID_MAX {
            return Ok(Self::around(machine, &exact));
        }
        let flat = seats(machine, true);
        let count = apic_id_max(shape(&flat)) + 1;
        if count > APIC_ID_MAX + 1 {
            return Err(DescribeError::TooMany {
                machine: machine.name.clone(),
                what: "places for cpus",
                count,
                limit: APIC_ID_MAX + 1,
                advice: "ask for fewer cpus a node (--cpus)",
            });
        }
        notes.push("the kernel sees one domain a package and no threads of cores".into());
        Ok(Self::around(machine, &flat))
    }

    fn around(machine: &Machine, seats: &[VcpuSeat]) -> Self {
        let [sockets, dies, cores, threads] = shape(seats);
        let taken: HashMap<VcpuSeat, usize> =
            seats.iter().enumerate().map(|(cpu, &seat)| (seat, cpu)).collect();
        let mut node = machine.cpus[0].node;
        let mut places = Vec::new();
        for seat in all_seats([sockets, dies, cores, threads]) {
            let cpu = taken.get(&seat).map(|&cpu| &machine.cpus[cpu]);
            node = cpu.map_or(node, |cpu| cpu.node);
            let [socket, die, core, thread] = seat;
            places.push(VcpuSlot { socket, die, core, thread, node, cpu: cpu.map(|cpu| cpu.id) });
        }
        Self { sockets, dies, cores, threads, places }
    }

    /// Whether a place is not taken.
    pub(super) fn has_holes(&self) -> bool {
        self.places.iter().any(|place| place.cpu.is_none())
    }
}

/// The seat of every cpu; cpus are numbered by package, domain and core already. Flat seats have a core for
/// every cpu and one die a socket.
fn seats(machine: &Machine, is_flat: bool) -> Vec<VcpuSeat> {
    let mut seats: Vec<VcpuSeat> = Vec::new();
    for (index, cpu) in machine.cpus.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| (&machine.cpus[before], seats[before]));
        seats.push(match before {
            None => [0; 4],
            Some((last, [s, ..])) if last.package != cpu.package => [s + 1, 0, 0, 0],
            Some((_, [s, _, c, _])) if is_flat => [s, 0, c + 1, 0],
            Some((last, [s, d, ..])) if last.domain != cpu.domain => [s, d + 1, 0, 0],
            Some((last, [s, d, c, _])) if last.core != cpu.core => [s, d, c + 1, 0],
            Some((_, [s, d, c, t])) => [s, d, c, t + 1],
        });
    }
    seats
}

/// The smallest shape with room for all seats.
fn shape(seats: &[VcpuSeat]) -> VcpuSeat {
    let mut shape = [1; 4];
    for seat in seats {
        for (size, place) in shape.iter_mut().zip(seat) {
            *size = (*size).max(place + 1);
        }
    }
    shape
}

/// An APIC id has a field of bits for each level.
fn apic_id_max([sockets, dies, cores, threads]: VcpuSeat) -> u64 {
    let bits = |count: u32| u32::BITS - (count - 1).leading_zeros();
    let fields = [(sockets, 0), (dies, bits(dies)), (cores, bits(cores)), (threads, bits(threads))];
    fields.into_iter().fold(0, |id, (count, bits)| (id << bits) + u64::from(count - 1))
}

fn all_seats([sockets, dies, cores, threads]: VcpuSeat) -> impl Iterator<Item = VcpuSeat> {
    let places = u64::from(sockets) * u64::from(dies) * u64::from(cores) * u64::from(threads);
    (0..places as u32).map(move |place| {
        let (rest, thread) = (place / threads, place % threads);
        let (rest, core) = (rest / cores, rest % cores);
        [rest / dies, rest % dies, core, thread]
    })
}
