//! QEMU's arguments for a machine.

use atoll_topology::{Machine, Node};

use super::sockets::{Sockets, VcpuSlot};
use super::{Guest, LOW_MEMORY, MIB, hmat, position};

/// Without `erms` and `fsrm`, which would have `rep movsb` counted byte by byte; Intel's, because
/// Linux finds the threads of a core of no other emulated processor.
const CPU: &str = "max,-erms,-fsrm,vendor=GenuineIntel";
/// The same as a device, for cpus that are plugged one by one; what `-cpu` says holds for it too.
const CPU_DEVICE: &str = "max-x86_64-cpu";

pub(super) fn arguments(guest: &Guest) -> Vec<String> {
    let machine = &guest.knowledge.machine;
    let hmat = hmat::entries(&guest.knowledge);
    let hmat_word = if hmat.is_empty() { "off" } else { "on" };
    let low = LOW_MEMORY.0;
    let mut words = QemuArguments::default();
    words.pair("-machine", format!("q35,hmat={hmat_word},max-ram-below-4g={low}"));
    words.pair("-cpu", CPU.to_owned());
    words.pair("-smp", smp(guest));
    words.pair("-m", format!("{}M", machine.memory().0 / MIB));
    for node in &machine.nodes {
        add_node(node, machine, !hmat.is_empty(), &mut words);
    }
    add_cpus(guest, &mut words);
    add_distances(machine, &mut words);
    for entry in &hmat {
        add_entry(entry, &mut words);
    }
    words.0
}

#[derive(Default)]
struct QemuArguments(Vec<String>);

impl QemuArguments {
    fn pair(&mut self, flag: &str, value: String) {
        self.0.extend([flag.to_owned(), value]);
    }
}

fn smp(guest: &Guest) -> String {
    let sockets = &guest.sockets;
    // The cpus of `-smp` fill the places from the first on; with holes only the first cpu
    // is taken so, and the others are devices.
    let cpus = if sockets.has_holes() { 1 } else { sockets.places.len() };
    format!(
        "cpus={cpus},maxcpus={},sockets={},dies={},cores={},threads={}",
        sockets.places.len(),
        sockets.sockets,
        sockets.dies,
        sockets.cores,
        sockets.threads
    )
}

fn add_node(node: &Node, machine: &Machine, has_hmat: bool, words: &mut QemuArguments) {
    let id = position(node.id);
    let mut value = format!("node,nodeid={id}");
    if node.memory.0 > 0 {
        let size = node.memory.0 / MIB;
        words.pair("-object", format!("memory-backend-ram,id=memory{id},size={size}M"));
        value += &format!(",memdev=memory{id}");
    }
    let nearest = machine.nearest_with_cpus(node.id).filter(|_| has_hmat);
    if let Some(initiator) = nearest {
        value += &format!(",initiator={}", position(initiator.id));
    }
    words.pair("-numa", value);
}

fn add_cpus(guest: &Guest, words: &mut QemuArguments) {
    let sockets = &guest.sockets;
    for place in &sockets.places {
        let (node, seat) = (position(place.node), seat(place, sockets));
        words.pair("-numa", format!("cpu,node-id={node},{seat}"));
    }
    if sockets.has_holes() {
        let taken = sockets.places.iter().filter(|place| place.cpu.is_some());
        for place in taken.skip(1) {
            let (node, seat) = (position(place.node), seat(place, sockets));
            words.pair("-device", format!("{CPU_DEVICE},node-id={node},{seat}"));
        }
    }
}

/// QEMU knows of no die where a socket has only one.
fn seat(place: &VcpuSlot, sockets: &Sockets) -> String {
    let VcpuSlot { socket, die, core, thread, .. } = place;
    let die = if sockets.dies > 1 { format!(",die-id={die}") } else { String::new() };
    format!("socket-id={socket}{die},core-id={core},thread-id={thread}")
}

fn add_distances(machine: &Machine, words: &mut QemuArguments) {
    for (from, row) in machine.distances.iter().enumerate() {
        for (to, distance) in row.iter().enumerate().filter(|(to, _)| *to != from) {
            words.pair("-numa", format!("dist,src={from},dst={to},val={distance}"));
        }
    }
}

fn add_entry(entry: &hmat::HmatEntry, words: &mut QemuArguments) {
    let path = format!(
        "hmat-lb,initiator={},target={},hierarchy=memory",
        position(entry.from),
        position(entry.to)
    );
    words.pair("-numa", format!("{path},data-type=access-latency,latency={}", entry.latency));
    if let Some(bandwidth) = entry.bandwidth {
        words.pair("-numa", format!("{path},data-type=access-bandwidth,bandwidth={bandwidth}"));
    }
}
