//! Obstacles, on simulated kernels.

use std::sync::Mutex;

use atoll_placement::Strategy;
use atoll_process::launch::{
    Instances, LaunchPlan, LaunchPlanError, LaunchRequest, MemoryFlag, MemoryPolicy, Obstacle,
    ObstacleCause, PlacementCalls, apply, probe,
};
use atoll_sys::{CallError, PolicyMode};
use atoll_testkit::machines;
use atoll_topology::{Bytes, CpuId, CpuSet, Machine, NodeId};

const EPERM: i32 = 1;
const EINVAL: i32 = 22;
const ENOSYS: i32 = 38;

/// A kernel that writes down what it is asked and answers with these errors.
#[derive(Default)]
struct Answers {
    affinity: Option<i32>,
    policy: Option<i32>,
    reclaimable: Bytes,
    asked: Mutex<Vec<String>>,
}

impl Answers {
    fn answer(
        &self,
        call: &'static str,
        what: String,
        errno: Option<i32>,
    ) -> Result<(), CallError> {
        self.asked.lock().unwrap().push(format!("{call} {what}"));
        errno.map_or(Ok(()), |errno| Err(CallError { call, errno }))
    }
}

impl PlacementCalls for Answers {
    fn set_affinity(&self, cpus: &CpuSet) -> Result<(), CallError> {
        self.answer("sched_setaffinity", cpus.to_string(), self.affinity)
    }

    fn set_policy(&self, policy: &MemoryPolicy) -> Result<(), CallError> {
        self.answer("set_mempolicy", policy.to_string(), self.policy)
    }

    fn reclaimable(&self, _: NodeId) -> Bytes {
        self.reclaimable
    }
}

fn flags(nodes: &str, mode: PolicyMode, memory: &str) -> LaunchRequest {
    LaunchRequest {
        cpu_nodes: Some(nodes.parse().unwrap()),
        memory: Some(MemoryFlag { mode, nodes: Some(memory.parse().unwrap()) }),
        ..LaunchRequest::default()
    }
}

fn probed(
    machine: &Machine,
    request: &LaunchRequest,
    calls: &Answers,
) -> Vec<(&'static str, ObstacleCause)> {
    let plan = LaunchPlan::new(machine, request).unwrap();
    probe(machine, &plan, calls).into_iter().map(|it| (it.call, it.cause)).collect()
}

/// Four nodes of which the process may use 0 to 2.
fn restricted() -> Machine {
    let mut machine = machines::four_nodes();
    machine.nodes[3].memory = Bytes(0);
    machine.nodes[3].cpus = CpuSet::new();
    machine.cpus.retain(|cpu| cpu.node != NodeId(3));
    machine.hidden.nodes.insert(NodeId(3));
    machine.hidden.cpus = (12..16).map(CpuId).collect();
    machine
}

#[test]
fn a_kernel_that_agrees_is_asked_for_exactly_the_plan() {
    let calls = Answers::default();
    let request = flags("1", PolicyMode::Bind, "1-2");
    assert_eq!(probed(&machines::four_nodes(), &request, &calls), []);
    let asked = calls.asked.into_inner().unwrap();
    assert_eq!(asked, ["sched_setaffinity 4-7", "set_mempolicy bind on nodes 1-2"]);
}

#[test]
fn each_refusal_is_named_by_its_cause() {
    let machine = machines::four_nodes();
    let cause = |mode, errno, balancing| {
        let calls = Answers { policy: Some(errno), ..Answers::default() };
        let request = LaunchRequest { balancing, ..flags("all", mode, "0") };
        probed(&machine, &request, &calls)
    };
    let policy = |cause| vec![("set_mempolicy", cause)];
    assert_eq!(cause(PolicyMode::Bind, EPERM, false), policy(ObstacleCause::Forbidden));
    assert_eq!(cause(PolicyMode::Bind, ENOSYS, false), policy(ObstacleCause::KernelTooOld));
    assert_eq!(cause(PolicyMode::Bind, EINVAL, false), policy(ObstacleCause::NotAllowed));
    assert_eq!(cause(PolicyMode::Bind, EINVAL, true), policy(ObstacleCause::KernelTooOld));
    assert_eq!(
        cause(PolicyMode::PreferredMany, EINVAL, false),
        policy(ObstacleCause::KernelTooOld)
    );
    assert_eq!(
        cause(PolicyMode::WeightedInterleave, EINVAL, false),
        policy(ObstacleCause::KernelTooOld)
    );
    for (errno, cause) in [(EPERM, ObstacleCause::Forbidden), (EINVAL, ObstacleCause::NotAllowed)] {
        let calls = Answers { affinity: Some(errno), ..Answers::default() };
        let found = probed(&machine, &flags("0", PolicyMode::Bind, "0"), &calls);
        assert_eq!(found, [("sched_setaffinity", cause)]);
    }
}

#[test]
fn a_refused_call_leaves_the_other_in_force() {
    let plan = LaunchPlan::new(&machines::two_nodes(), &flags("1", PolicyMode::Bind, "0")).unwrap();
    let calls = Answers { affinity: Some(EPERM), ..Answers::default() };
    let found: Vec<Obstacle> = apply(&plan.instances[0], &calls);
    assert_eq!(found.len(), 1);
    assert!(found[0].message.contains("seccomp"), "{}", found[0]);
    assert_eq!(calls.asked.into_inner().unwrap().len(), 2);
}

#[test]
fn nodes_that_are_not_allowed_are_left_out() {
    let calls = Answers::default();
    let found = probed(&restricted(), &flags("0,3", PolicyMode::Bind, "2-3"), &calls);
    assert_eq!(
        found,
        [
            ("sched_setaffinity", ObstacleCause::NotAllowed),
            ("set_mempolicy", ObstacleCause::NotAllowed)
        ]
    );
    let asked = calls.asked.into_inner().unwrap();
    assert_eq!(asked, ["sched_setaffinity 0-3", "set_mempolicy bind on node 2"]);
}

#[test]
fn nodes_and_cpus_that_do_not_exist_or_have_nothing_to_give_start_nothing() {
    let refused =
        |machine: &Machine, request: &LaunchRequest| match LaunchPlan::new(machine, request) {
            Err(LaunchPlanError::NotThere { obstacles }) => {
                obstacles.iter().map(|it| it.cause).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
    let (four, uneven) = (machines::four_nodes(), machines::eight_uneven_nodes());
    let cpus =
        |set: &str| LaunchRequest { cpus: Some(set.parse().unwrap()), ..LaunchRequest::default() };
    let bind = |threads, memory| flags(threads, PolicyMode::Bind, memory);
    assert_eq!(refused(&four, &bind("0,9", "0")), [ObstacleCause::NoSuchNode]);
    assert_eq!(refused(&four, &bind("0", "2-4")), [ObstacleCause::NoSuchNode]);
    assert_eq!(refused(&four, &cpus("0,99")), [ObstacleCause::NoSuchCpu]);
    assert_eq!(refused(&uneven, &bind("5", "0")), [ObstacleCause::NothingThere]);
    assert_eq!(refused(&uneven, &bind("0", "6")), [ObstacleCause::NothingThere]);
    let partly = LaunchPlan::new(&uneven, &bind("0", "0,6")).unwrap();
    assert_eq!(partly.obstacles[0].cause, ObstacleCause::NothingThere);
}

#[test]
fn cpus_outside_of_the_mask_are_left_out() {
    let request =
        LaunchRequest { cpus: Some("11-12".parse().unwrap()), ..LaunchRequest::default() };
    let plan = LaunchPlan::new(&restricted(), &request).unwrap();
    let causes: Vec<ObstacleCause> = plan.obstacles.iter().map(|it| it.cause).collect();
    assert_eq!(plan.instances[0].cpus.clone().unwrap().to_string(), "11");
    assert_eq!(causes, [ObstacleCause::NotAllowed]);
}

/// Four nodes under `taskset -c 0-3`: all memory, the cpus of node 0.
fn masked() -> Machine {
    let mut machine = machines::four_nodes();
    machine.cpus.retain(|cpu| cpu.node == NodeId(0));
    machine.nodes[1..].iter_mut().for_each(|node| node.cpus = CpuSet::new());
    machine.hidden.cpus = (4..16).map(CpuId).collect();
    machine
}

#[test]
fn a_node_without_cpus_in_the_mask_is_not_taken_for_a_node_without_cpus() {
    let request =
        LaunchRequest { cpu_nodes: Some("1-2".parse().unwrap()), ..LaunchRequest::default() };
    let found = LaunchPlan::new(&masked(), &request).unwrap().obstacles;
    assert_eq!(found.iter().map(|it| it.cause).collect::<Vec<_>>(), [ObstacleCause::NotAllowed]);
    assert!(found[0].message.starts_with("nodes 1-2 have none of the cpus"), "{}", found[0]);
    assert!(found[0].message.contains("0-3: its affinity mask"), "{}", found[0]);
}

#[test]
fn instances_are_not_dealt_out_over_other_nodes_than_those_asked_for() {
    let ask = |machine: &Machine, nodes: &str, strategy, instances| {
        let cpu_nodes = Some(nodes.parse().unwrap());
        let request = LaunchRequest { cpu_nodes, strategy, instances, ..LaunchRequest::default() };
        match LaunchPlan::new(machine, &request) {
            Err(
                LaunchPlanError::NowhereToStart { obstacles }
                | LaunchPlanError::NotThere { obstacles },
            ) => obstacles[0].cause,
            other => panic!("{other:?}"),
        }
    };
    let (nodes, aligned) = (Some(Instances::Nodes), Some(Strategy::Aligned));
    assert_eq!(ask(&restricted(), "3", None, nodes), ObstacleCause::NotAllowed);
    assert_eq!(ask(&masked(), "3", None, Some(Instances::Count(2))), ObstacleCause::NotAllowed);
    assert_eq!(ask(&restricted(), "9", aligned, None), ObstacleCause::NoSuchNode);
    assert_eq!(
        ask(&machines::eight_uneven_nodes(), "5", aligned, None),
        ObstacleCause::NothingThere
    );
}

#[test]
fn a_preferred_node_outside_of_the_cpuset_is_in_the_way_and_not_unknown() {
    let prefer = |node| {
        let strategy = Some(Strategy::Preferred(NodeId(node)));
        LaunchPlan::new(&restricted(), &LaunchRequest { strategy, ..LaunchRequest::default() })
    };
    let plan = prefer(3).unwrap();
    assert_eq!(plan.instances[0].memory, None);
    assert_eq!(plan.obstacles.len(), 1);
    assert_eq!(plan.obstacles[0].cause, ObstacleCause::NotAllowed);
    assert!(prefer(9).is_err());
}

#[test]
fn what_stands_in_the_way_names_the_nodes_that_would_do_and_speaks_of_many_in_the_plural() {
    let mut machine = machines::four_nodes();
    // The cpus of nodes 0 and 1 with the memory of nodes 2 and 3.
    for node in &mut machine.nodes[..2] {
        node.memory = Bytes(0);
        machine.hidden.nodes.insert(node.id);
    }
    let plan = LaunchPlan::new(&machine, &flags("0", PolicyMode::Bind, "0-1")).unwrap();
    let said: Vec<&str> = plan.obstacles.iter().map(|it| it.message.as_str()).collect();
    assert!(said[0].starts_with("nodes 0-1 are outside the cpuset"), "{said:?}");
    assert!(said[0].contains("(nodes 2-3: Mems_allowed_list"), "{said:?}");
    let missing = LaunchPlan::new(&machine, &flags("0", PolicyMode::Bind, "0-1,7-9")).unwrap_err();
    let said = missing.to_string();
    assert!(said.starts_with("nodes 7-9 do not exist"), "{said}");
}

#[test]
fn a_nearly_full_node_is_in_the_way_of_memory_for_it_alone() {
    let mut machine = machines::two_nodes();
    machine.nodes[0].memory_free = Bytes(1 << 20);
    let found = |mode, nodes, reclaimable| {
        let calls = Answers { reclaimable: Bytes(reclaimable), ..Answers::default() };
        probed(&machine, &flags("all", mode, nodes), &calls)
    };
    let full = [("set_mempolicy", ObstacleCause::NodeFull)];
    assert_eq!(found(PolicyMode::Bind, "0", 0), full);
    assert_eq!(found(PolicyMode::Preferred, "0", 8 << 30), full, "the cache is left alone");
    assert_eq!(found(PolicyMode::Bind, "0", 8 << 30), [], "the cache is given up");
    assert_eq!(found(PolicyMode::Bind, "1", 0), []);
    assert_eq!(found(PolicyMode::Interleave, "all", 0), []);
}
