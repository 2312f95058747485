//! Random sets of numactl's flags on every fake machine: what they mean, against a slow reading of the same
//! sets.

use atoll_process::launch::{LaunchPlan, LaunchRequest, MemoryFlag};
use atoll_sys::{PolicyMode, SplitMix64};
use atoll_testkit::machines;
use atoll_topology::{CpuId, CpuSet, Machine, NodeId, NodeSet};

const SETS: u64 = 200;
const MODES: [PolicyMode; 4] =
    [PolicyMode::Bind, PolicyMode::Interleave, PolicyMode::Preferred, PolicyMode::PreferredMany];

/// Some of these numbers, one at least: as a list, as positions among `all` (nodes that have what the flag is
/// about), or as all but the others.
fn written(random: &mut SplitMix64, some: &[u32], all: &[u32], count: usize) -> (String, Vec<u32>) {
    let mut chosen: Vec<u32> =
        (0..count).map(|_| some[random.below(some.len() as u64) as usize]).collect();
    chosen.sort_unstable();
    chosen.dedup();
    let list = |numbers: Vec<String>| numbers.join(",");
    let others: Vec<String> =
        all.iter().filter(|id| !chosen.contains(id)).map(u32::to_string).collect();
    let position = |id: &u32| all.iter().position(|other| other == id).unwrap().to_string();
    let text = match random.below(4) {
        0 => format!("+{}", list(chosen.iter().map(position).collect())),
        1 if !others.is_empty() => format!("!{}", list(others)),
        1 => "all".to_owned(),
        _ => list(chosen.iter().map(u32::to_string).collect()),
    };
    (text, chosen)
}

/// Flags, and the cpus and the policy that they mean; no cpus where nothing is said of them.
type Meaning = (LaunchRequest, Option<CpuSet>, Option<(PolicyMode, NodeSet)>);

fn drawn(random: &mut SplitMix64, machine: &Machine) -> Meaning {
    let numbers =
        |nodes: &mut dyn Iterator<Item = NodeId>| nodes.map(|id| id.0).collect::<Vec<_>>();
    let with_cpus = numbers(&mut machine.nodes_with_cpus().map(|node| node.id));
    let with_memory = numbers(&mut machine.nodes_with_memory().map(|node| node.id));
    let all_cpus: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.id.0).collect();
    let mut request = LaunchRequest::default();
    let mut cpus = None;
    if random.below(2) == 0 {
        let (text, chosen) = written(random, &with_cpus, &with_cpus, 2);
        request.cpu_nodes = Some(text.parse().unwrap());
        let of = |id: &u32| machine.node(NodeId(*id)).unwrap().cpus.iter().collect::<Vec<_>>();
        cpus = Some(chosen.iter().flat_map(of).collect::<CpuSet>());
    }
    if random.below(2) == 0 {
        let allowed =
            cpus.clone().unwrap_or_else(|| all_cpus.iter().map(|id| CpuId(*id)).collect());
        let allowed: Vec<u32> = allowed.iter().map(|id| id.0).collect();
        let (text, chosen) = written(random, &allowed, &all_cpus, 3);
        request.cpus = Some(text.parse().unwrap());
        cpus = Some(chosen.into_iter().map(CpuId).collect());
    }
    let memory = (random.below(4) > 0).then(|| {
        let mode = MODES[random.below(MODES.len() as u64) as usize];
        let count = if mode == PolicyMode::Preferred { 1 } else { 3 };
        let (text, chosen) = written(random, &with_memory, &with_memory, count);
        request.memory = Some(MemoryFlag { mode, nodes: Some(text.parse().unwrap()) });
        (mode, chosen.into_iter().map(NodeId).collect::<NodeSet>())
    });
    (request, cpus, memory)
}

#[test]
fn random_flags_mean_the_cpus_and_nodes_that_they_name() {
    for machine in machines::all() {
        for seed in 0..SETS {
            let (request, cpus, memory) = drawn(&mut SplitMix64::new(seed), &machine);
            let said = format!("{}, seed {seed}: {request:?}", machine.name);
            let plan = LaunchPlan::new(&machine, &request)
                .unwrap_or_else(|error| panic!("{said}: {error}"));
            assert_eq!(plan.instances.len(), 1, "{said}");
            assert_eq!(plan.instances[0].cpus, cpus, "{said}");
            let told = plan.instances[0].memory.clone().map(|policy| (policy.mode, policy.nodes));
            assert_eq!(told, memory, "{said}");
        }
    }
}
