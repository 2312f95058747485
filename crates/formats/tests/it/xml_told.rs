use atoll_formats::xml;
use atoll_topology::{Bytes, Knowledge, Machine, NodeId, Quantity, Source, Subject};

/// Two packages of one node each; node 2 is memory of package 1 behind a memory-side cache, node 3 is memory of the
/// machine. The file has distances only between nodes 0 and 1.
const HWLOC: &str = r#"<?xml version="1.0"?><topology version="2.0">
<object type="Machine" os_index="0" cpuset="0xf" nodeset="0xf" allowed_cpuset="0xf" allowed_nodeset="0xf" gp_index="1">
 <object type="NUMANode" os_index="3" cpuset="0xf" nodeset="0x8" gp_index="12" local_memory="4096"/>
 <object type="Package" os_index="0" cpuset="0x3" nodeset="0x9" gp_index="2">
  <object type="NUMANode" os_index="0" cpuset="0x3" nodeset="0x1" gp_index="3" local_memory="1048576"/>
  <object type="PU" os_index="0" cpuset="0x1" nodeset="0x9" gp_index="4"/>
  <object type="PU" os_index="1" cpuset="0x2" nodeset="0x9" gp_index="5"/>
 </object>
 <object type="Package" os_index="1" cpuset="0xc" nodeset="0xe" gp_index="6">
  <object type="NUMANode" os_index="1" cpuset="0xc" nodeset="0x2" gp_index="7" local_memory="1048576"/>
  <object type="MemCache" cpuset="0xc" nodeset="0x4" gp_index="13" cache_size="65536" depth="1" cache_linesize="64" cache_associativity="0" cache_type="0">
   <object type="NUMANode" os_index="2" cpuset="0xc" nodeset="0x4" gp_index="8" local_memory="2097152"/>
  </object>
  <object type="Die" os_index="0" cpuset="0x4" nodeset="0xe" gp_index="14">
   <object type="PU" os_index="2" cpuset="0x4" nodeset="0xe" gp_index="9"/>
  </object>
  <object type="Die" os_index="1" cpuset="0x8" nodeset="0xe" gp_index="15">
   <object type="PU" os_index="3" cpuset="0x8" nodeset="0xe" gp_index="10"/>
  </object>
 </object>
</object>
<distances2 type="NUMANode" nbobjs="2" kind="5" name="NUMALatency" indexing="os">
 <indexes length="4">0 1 </indexes><u64values length="12">10 17 18 10 </u64values>
</distances2>
<cpukind cpuset="0x3"><info name="CoreType" value="IntelAtom"/></cpukind>
<cpukind cpuset="0xc"><info name="CoreType" value="IntelCore"/></cpukind>
</topology>"#;

fn known() -> Knowledge {
    xml::parse(HWLOC, "m.xml").unwrap()
}

/// The line of the written file that has an object.
fn line<'a>(text: &'a str, object: &str) -> &'a str {
    text.lines().find(|line| line.contains(object)).unwrap()
}

#[test]
fn memory_without_cpus_stays_near_to_the_cpus_of_its_place_in_the_tree() {
    let known = known();
    let near: Vec<String> = known.machine.nodes.iter().map(|node| node.near.to_string()).collect();
    assert_eq!(near, ["", "", "2-3", ""]);
    let text = xml::write(&known);
    assert!(line(&text, "os_index=\"2\" cpuset").contains("cpuset=\"0x0000000c\""), "{text}");
    assert_eq!(xml::parse(&text, "again.xml"), Ok(known));
}

#[test]
fn dies_kinds_of_cpus_and_caches_of_memory_are_those_of_hwloc() {
    let Machine { dies, cpu_kinds, nodes, .. } = known().machine;
    let dies: Vec<String> = dies.iter().map(|die| format!("{}: {}", die.id, die.cpus)).collect();
    assert_eq!(dies, ["0: 2", "1: 3"]);
    let kinds: Vec<String> =
        cpu_kinds.iter().map(|kind| format!("{}: {}", kind.name, kind.cpus)).collect();
    assert_eq!(kinds, ["E cores: 0-1", "P cores: 2-3"]);
    assert_eq!(nodes[2].side_caches[0].size, Bytes(65536));
}

#[test]
fn distances_between_some_nodes_are_facts_and_stay_in_the_file() {
    let known = known();
    assert_eq!(known.machine.distances_source, Source::Assumed);
    let subject = Subject::Path { from: NodeId(0), to: NodeId(1) };
    let told = known.best(subject, Quantity::Distance, Default::default()).unwrap();
    assert_eq!((told.value, told.source), (17.0, Source::Declared));
    let text = xml::write(&known);
    assert!(text.contains("<distances2 type=\"NUMANode\" nbobjs=\"2\""), "{text}");
    assert!(text.contains(">10 17 18 10 <"), "{text}");
}

#[test]
fn assumed_distances_are_not_written() {
    let known = Knowledge::from_machine(Machine::synthetic("node:3 core:2").unwrap());
    let text = xml::write(&known);
    assert!(!text.contains("distances2"), "{text}");
    assert_eq!(xml::parse(&text, "again.xml"), Ok(known));
}

#[test]
fn free_memory_that_is_not_in_the_file_is_assumed() {
    let known = known();
    let free = known.all_facts().find(|fact| fact.quantity == Quantity::MemoryFree).unwrap();
    assert_eq!((free.source, free.origin.as_str()), (Source::Assumed, "unknown; assumed"));
    let memory = known.all_facts().find(|fact| fact.quantity == Quantity::Memory).unwrap();
    assert_eq!(memory.source, Source::Declared);
}

#[test]
fn cpus_that_no_node_has_belong_to_the_first_and_this_is_an_assumption() {
    let text = HWLOC.replace(
        "os_index=\"1\" cpuset=\"0xc\" nodeset=\"0x2\"",
        "os_index=\"1\" cpuset=\"0x8\" nodeset=\"0x2\"",
    );
    let text = text.replace("os_index=\"2\" cpuset=\"0xc\"", "os_index=\"2\" cpuset=\"0x8\"");
    let text = text.replace("os_index=\"3\" cpuset=\"0xf\"", "os_index=\"3\" cpuset=\"0x8\"");
    let text = text
        .replace("cpuset=\"0x4\" nodeset=\"0xe\" gp_index=\"9\"", "cpuset=\"0x4\" gp_index=\"9\"");
    let machine = xml::parse(&text, "m.xml").unwrap().machine;
    assert_eq!(machine.nodes[0].cpus.to_string(), "0-2");
    let expected = "no NUMANode has PUs 2; taken as cpus of node 0";
    assert_eq!(machine.assumptions, [expected]);
}
