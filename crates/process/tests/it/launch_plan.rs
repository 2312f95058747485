//! Plans on every fake machine, against what the strategies' definitions say.

use atoll_placement::Strategy;
use atoll_process::launch::{
    InstancePlan, Instances, LaunchPlan, LaunchPlanError, LaunchRequest, MemoryFlag, Program,
};
use atoll_sys::PolicyMode;
use atoll_testkit::machines;
use atoll_topology::{CpuId, CpuSet, Machine, NodeId, NodeSet};

const STRATEGIES: [Strategy; 11] = [
    Strategy::Default,
    Strategy::Aligned,
    Strategy::Ahead(1),
    Strategy::Ahead(5),
    Strategy::Farthest,
    Strategy::Interleave,
    Strategy::Spread,
    Strategy::Subset(2),
    Strategy::Local,
    Strategy::Preferred(NodeId(0)),
    Strategy::WeightedInterleave,
];

fn by(strategy: Strategy, instances: Option<Instances>) -> LaunchRequest {
    LaunchRequest { strategy: Some(strategy), instances, ..LaunchRequest::default() }
}

fn memory(mode: PolicyMode, nodes: &str) -> Option<MemoryFlag> {
    Some(MemoryFlag { mode, nodes: Some(nodes.parse().unwrap()) })
}

fn plan(machine: &Machine, request: &LaunchRequest) -> LaunchPlan {
    LaunchPlan::new(machine, request).unwrap_or_else(|error| panic!("{}: {error}", machine.name))
}

/// `cpus | policy` of an instance, `-` for what is left as it is.
fn line(instance: &InstancePlan) -> String {
    let cpus = instance.cpus.as_ref().map_or("-".to_owned(), CpuSet::to_string);
    let memory = instance.memory.as_ref().map_or("-".to_owned(), ToString::to_string);
    format!("{cpus} | {memory}")
}

fn lines(machine: &Machine, request: &LaunchRequest) -> Vec<String> {
    plan(machine, request).instances.iter().map(line).collect()
}

fn ids<'a>(nodes: impl Iterator<Item = &'a atoll_topology::Node>) -> NodeSet {
    nodes.map(|node| node.id).collect()
}

/// Memory of an instance on `node` by the definitions of the strategies, slowly.
fn expected_memory(
    machine: &Machine,
    strategy: Strategy,
    node: NodeId,
) -> Option<(PolicyMode, NodeSet)> {
    let all = ids(machine.nodes_with_memory());
    let list: Vec<NodeId> = all.iter().collect();
    let serving = machine.nearest_with_memory(node).unwrap().id;
    let one = |node| (PolicyMode::Preferred, NodeSet::from_iter([node]));
    Some(match strategy {
        Strategy::Default | Strategy::Replicate => return None,
        Strategy::Local => (PolicyMode::Local, NodeSet::new()),
        Strategy::Aligned => one(serving),
        Strategy::Ahead(k) => {
            let at = list.iter().position(|id| *id == serving).unwrap();
            one(list[(at + k as usize) % list.len()])
        }
        Strategy::Farthest => {
            let distance = |to: NodeId| machine.distance(node, to).unwrap();
            let most = list.iter().map(|id| distance(*id)).max().unwrap();
            let after = list.iter().filter(|id| **id > node).chain(&list);
            one(*after.into_iter().find(|id| distance(**id) == most).unwrap())
        }
        Strategy::Preferred(home) => one(machine.nearest_with_memory(home).unwrap().id),
        Strategy::Interleave | Strategy::Spread => (PolicyMode::Interleave, all),
        Strategy::WeightedInterleave => (PolicyMode::WeightedInterleave, all),
        Strategy::Subset(k) => {
            (PolicyMode::Interleave, list.into_iter().take(k as usize).collect())
        }
    })
}

fn is_free(strategy: Strategy) -> bool {
    use Strategy::{Default, Local, Preferred, Spread, WeightedInterleave};
    matches!(strategy, Default | Local | Preferred(_) | Spread | WeightedInterleave)
}

#[test]
fn every_strategy_with_any_instances_means_on_every_machine_what_it_says() {
    let kinds = [None, Some(Instances::Nodes), Some(Instances::Domains), Some(Instances::Count(7))];
    for machine in machines::all() {
        let nodes: Vec<NodeId> = ids(machine.nodes_with_cpus()).iter().collect();
        for (strategy, instances) in
            STRATEGIES.iter().flat_map(|s| kinds.iter().map(move |i| (*s, *i)))
        {
            let found = plan(&machine, &by(strategy, instances));
            let what = format!("{} {strategy} {instances:?}", machine.name);
            assert!(found.obstacles.is_empty() && found.notes.is_empty(), "{what}");
            let count = match instances {
                None => 1,
                Some(Instances::Nodes) => nodes.len(),
                Some(Instances::Domains) => machine.domains.len(),
                Some(Instances::Count(count)) => count as usize,
            };
            assert_eq!(found.instances.len(), count, "{what}");
            for (index, it) in found.instances.iter().enumerate() {
                let domain =
                    machine.domains.get(index).filter(|_| instances == Some(Instances::Domains));
                let node = domain.map_or(nodes[index % nodes.len()], |domain| domain.node);
                assert_eq!(
                    (it.index, it.node, it.domain),
                    (index, node, domain.map(|it| it.id)),
                    "{what}"
                );
                let memory = it.memory.as_ref().map(|it| (it.mode, it.nodes.clone()));
                assert_eq!(memory, expected_memory(&machine, strategy, node), "{what} {index}");
                let own = domain.map_or(&machine.node(node).unwrap().cpus, |domain| &domain.cpus);
                match strategy {
                    Strategy::Subset(_) => assert!(!it.cpus.as_ref().unwrap().is_empty(), "{what}"),
                    Strategy::Interleave if instances.is_none() => {
                        assert_eq!(it.cpus, None, "{what}")
                    }
                    _ if is_free(strategy) => assert_eq!(it.cpus, None, "{what}"),
                    _ => assert_eq!(it.cpus.as_ref(), Some(own), "{what} {index}"),
                }
            }
        }
    }
}

#[test]
fn kiefers_four_ways_to_place_one_instance_a_node() {
    let machine = machines::four_nodes();
    let nodes = Some(Instances::Nodes);
    assert_eq!(
        lines(&machine, &LaunchRequest { instances: nodes, ..LaunchRequest::default() }),
        [
            "0-3 | preferred on node 0",
            "4-7 | preferred on node 1",
            "8-11 | preferred on node 2",
            "12-15 | preferred on node 3"
        ]
    );
    assert_eq!(lines(&machine, &by(Strategy::Ahead(1), nodes))[3], "12-15 | preferred on node 0");
    assert_eq!(
        lines(&machine, &by(Strategy::Interleave, nodes))[1],
        "4-7 | interleave on nodes 0-3"
    );
    assert_eq!(lines(&machine, &by(Strategy::Default, nodes))[1], "- | -");
}

#[test]
fn a_program_alone_under_interleave_runs_on_all_nodes() {
    let machine = machines::four_nodes();
    let alone = by(Strategy::Interleave, None);
    assert_eq!(lines(&machine, &alone), ["- | interleave on nodes 0-3"]);
    let on_two = LaunchRequest { cpu_nodes: Some("1-2".parse().unwrap()), ..alone };
    assert_eq!(lines(&machine, &on_two), ["4-11 | interleave on nodes 0-3"]);
}

#[test]
fn a_policy_flag_replaces_the_memory_of_instances_and_node_flags_choose_their_nodes() {
    let machine = machines::four_nodes();
    let request = LaunchRequest {
        instances: Some(Instances::Count(3)),
        memory: memory(PolicyMode::Interleave, "all"),
        cpu_nodes: Some("1-2".parse().unwrap()),
        ..LaunchRequest::default()
    };
    let all = "interleave on nodes 0-3";
    assert_eq!(
        lines(&machine, &request),
        [4, 8, 4].map(|cpu| format!("{cpu}-{} | {all}", cpu + 3))
    );
    let aligned =
        LaunchRequest { cpu_nodes: Some("2".parse().unwrap()), ..by(Strategy::Aligned, None) };
    assert_eq!(lines(&machine, &aligned), ["8-11 | preferred on node 2"]);
    let spread =
        LaunchRequest { cpu_nodes: Some("!0".parse().unwrap()), ..by(Strategy::Spread, None) };
    assert_eq!(lines(&machine, &spread), [format!("4-15 | {all}")]);
}

#[test]
fn flags_alone_mean_what_they_mean_to_numactl() {
    let machine = machines::four_nodes();
    let with = |nodes: Option<&str>, cpus: Option<&str>, memory| {
        let parse = |text: Option<&str>| text.map(|text| text.parse().unwrap());
        LaunchRequest {
            cpu_nodes: parse(nodes),
            cpus: parse(cpus),
            memory,
            ..LaunchRequest::default()
        }
    };
    let bind = |nodes| memory(PolicyMode::Bind, nodes);
    for (request, expected) in [
        (with(None, None, None), "- | -"),
        (with(Some("0,2"), None, None), "0-3,8-11 | -"),
        (with(None, Some("+0-1"), bind("!0")), "0-1 | bind on nodes 1-3"),
        (with(Some("1"), Some("5-9"), None), "5-7 | -"),
        (with(Some("1"), None, bind("same")), "4-7 | bind on node 1"),
        (with(Some("same"), None, bind("3")), "12-15 | bind on node 3"),
        (with(None, None, memory(PolicyMode::Preferred, "2")), "- | preferred on node 2"),
    ] {
        assert_eq!(lines(&machine, &request), [expected], "{request:?}");
    }
    let balanced = LaunchRequest { balancing: true, ..with(None, None, bind("0")) };
    assert_eq!(lines(&machine, &balanced), ["- | bind on node 0, balanced among them"]);
    let ignored =
        LaunchRequest { balancing: true, ..with(None, None, memory(PolicyMode::Interleave, "0")) };
    assert_eq!(plan(&machine, &ignored).notes.len(), 1);
}

#[test]
fn requests_without_a_meaning_are_refused_with_the_reason() {
    let machine = machines::four_nodes();
    let refused = |request: LaunchRequest| LaunchPlan::new(&machine, &request).unwrap_err();
    let nodes = |text: &str| Some(text.parse().unwrap());
    let flags = LaunchRequest::default;
    assert_eq!(refused(by(Strategy::Replicate, None)), LaunchPlanError::Replicate);
    assert_eq!(
        refused(by(Strategy::Replicate, Some(Instances::Nodes))),
        LaunchPlanError::Replicate
    );
    for request in [
        LaunchRequest { cpu_nodes: nodes("same"), ..flags() },
        LaunchRequest { cpus: nodes("same"), cpu_nodes: nodes("0"), ..flags() },
        LaunchRequest { memory: memory(PolicyMode::Bind, "same"), ..flags() },
        LaunchRequest {
            cpu_nodes: nodes("same"),
            memory: memory(PolicyMode::Bind, "same"),
            ..flags()
        },
    ] {
        assert_eq!(refused(request), LaunchPlanError::SameAsNothing);
    }
    for nodes in ["0-1", "all", "!0"] {
        let error =
            refused(LaunchRequest { memory: memory(PolicyMode::Preferred, nodes), ..flags() });
        assert!(matches!(error, LaunchPlanError::NotOneNode { .. }), "{error}");
    }
    let error = refused(LaunchRequest { cpu_nodes: nodes("!0-3"), ..flags() });
    assert!(matches!(error, LaunchPlanError::EmptySet { .. }), "{error}");
    let error = refused(LaunchRequest { cpus: nodes("0"), cpu_nodes: nodes("1"), ..flags() });
    assert!(matches!(error, LaunchPlanError::NoCommonCpu { .. }), "{error}");
    let error = refused(LaunchRequest { cpu_nodes: nodes("1"), ..by(Strategy::Subset(2), None) });
    assert_eq!(error, LaunchPlanError::SubsetOfNodes);
    let error = refused(by(Strategy::Preferred(NodeId(9)), None));
    assert!(matches!(error, LaunchPlanError::Strategy(_)), "{error}");
}

#[test]
fn the_values_of_an_instance_are_filled_in_and_other_braces_stay() {
    let machine = machines::two_nodes();
    let plan = plan(
        &machine,
        &LaunchRequest { instances: Some(Instances::Domains), ..LaunchRequest::default() },
    );
    let program = |argument: &str| Program {
        name: "a".into(),
        arguments: vec![argument.into()],
        environment: vec![("N".into(), argument.into())],
    };
    let last = plan.instances.last().unwrap();
    let filled =
        program("{i}{node}:{domain} {cpus} {} {x} {{i}").of_instance(&machine, last).unwrap();
    let cpus: CpuSet = machine.domains[3].cpus.clone();
    let expected = format!("31:3 {cpus} {{}} {{x}} {{3");
    assert_eq!(filled.arguments, [expected.as_str()]);
    assert_eq!(filled.environment[0].1, expected.as_str());

    let free = InstancePlan { cpus: None, domain: None, ..last.clone() };
    let all: CpuSet = (0..16).map(CpuId).collect();
    let filled = program("{cpus}").of_instance(&machine, &free).unwrap();
    assert_eq!(filled.arguments, [all.to_string().as_str()]);
    assert!(program("{domain}").of_instance(&machine, &free).is_err());
}
