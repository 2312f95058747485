use std::process::Command;
use std::time::{Duration, SystemTime};

use atoll_formats::xml;
use atoll_testkit::{Need, machines, skip};
use atoll_topology::{
    Bytes, Cache, CacheKind, Conditions, CpuId, CpuSet, CpuTimeLimit, Fact, HugePages, Knowledge,
    Link, LinkId, Machine, MemoryLimit, NodeId, Quantity, Source, Spread, Subject,
};
use proptest::collection::vec;
use proptest::prelude::*;

use atoll_testkit::tree::{CPU, Tree};

fn parsed(text: &str) -> Knowledge {
    xml::parse(text, "lab.xml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn assert_survives(knowledge: &Knowledge) {
    assert_eq!(parsed(&xml::write(knowledge)), *knowledge);
}

/// Latency and bandwidth of every path, as from firmware or a measurement.
fn with_facts(machine: Machine) -> Knowledge {
    let mut knowledge = Knowledge::from_machine(machine);
    let nodes: Vec<NodeId> = knowledge.machine.nodes.iter().map(|node| node.id).collect();
    for (&from, &to) in nodes.iter().flat_map(|from| nodes.iter().map(move |to| (from, to))) {
        let fact = |quantity, value| {
            Fact::new(Subject::Path { from, to }, quantity, value, Source::Measured, "a test, ñ")
        };
        knowledge.facts.push(fact(Quantity::Latency, 80.25 + f64::from(from.0 + to.0)));
        knowledge.facts.push(fact(Quantity::ReadBandwidth, 41.5));
    }
    knowledge
}

#[test]
fn every_fake_machine_and_its_facts_survive() {
    for machine in machines::all() {
        assert_survives(&Knowledge::from_machine(machine.clone()));
        assert_survives(&with_facts(machine));
    }
}

#[test]
fn what_discovery_finds_of_every_fake_machine_survives() {
    for machine in machines::all() {
        let mut tree = Tree::from_machine(&machine);
        assert_survives(&Knowledge::from_machine(tree.discover().unwrap()));
        // A package that a node partially overlaps does not fit into hwloc's tree.
        tree = tree.with(&format!("{CPU}/cpu3/topology/physical_package_id"), "7\n");
        assert_survives(&Knowledge::from_machine(tree.discover().unwrap()));
    }
    assert_survives(&Knowledge::from_machine(Machine::discover().unwrap()));
}

#[test]
fn a_machine_in_part_keeps_what_is_hidden_and_why() {
    let tree = Tree::from_machine(&machines::sub_numa_clusters());
    let machine = tree.discover_only("2-9", "1-2").unwrap();
    assert!(!machine.hidden.cpus.is_empty() && !machine.hidden.nodes.is_empty());
    assert_survives(&Knowledge::from_machine(machine));
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,12}", "\\PC{0,6}", Just("a\n\t\r\u{1}\\ \"<&>".to_owned())]
}

fn figure() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..1e4f64, any::<f64>().prop_filter("finite", |value| value.is_finite())]
}

fn source() -> impl Strategy<Value = Source> {
    proptest::sample::select(Source::ALL.to_vec())
}

fn subject() -> impl Strategy<Value = Subject> {
    (0..6u32, 0..9u32, 0..9u32).prop_map(|(kind, a, b)| match kind {
        0 => Subject::Machine,
        1 => Subject::Node(NodeId(a)),
        2 => Subject::Link(LinkId(b)),
        3 => Subject::CpuPair { from: CpuId(a), to: CpuId(b) },
        4 => Subject::Domain(atoll_topology::DomainId(a)),
        _ => Subject::Path { from: NodeId(a), to: NodeId(b) },
    })
}

fn time() -> impl Strategy<Value = SystemTime> {
    (any::<bool>(), 0..1u64 << 34, 0..1_000_000_000u32).prop_map(|(before, seconds, nanos)| {
        let time = Duration::new(seconds, nanos);
        if before { SystemTime::UNIX_EPOCH - time } else { SystemTime::UNIX_EPOCH + time }
    })
}

fn fact() -> impl Strategy<Value = Fact> {
    let quantity = proptest::sample::select(Quantity::ALL.to_vec());
    let conditions = (proptest::option::of(0..99u32), proptest::option::of(figure()));
    let spread = proptest::option::of((figure(), figure(), any::<u32>()));
    let known = (source(), text(), proptest::option::of(time()));
    (subject(), quantity, conditions, figure(), spread, known).prop_map(
        |(subject, quantity, (threads, load), value, spread, (source, origin, at))| Fact {
            subject,
            quantity,
            conditions: Conditions { threads, load },
            value,
            spread: spread.map(|(min, max, runs)| Spread { min, max, runs }),
            source,
            origin,
            at,
        },
    )
}

/// Caches of any level over any cpus, nested or not.
fn cache() -> impl Strategy<Value = Cache> {
    let kinds = [CacheKind::Data, CacheKind::Instruction, CacheKind::Unified];
    let sizes = || proptest::option::of((0..4u64).prop_map(|size| Bytes(size << 15)));
    let cpus = (0..40u32, 1..20u32);
    let kind = proptest::sample::select(kinds.to_vec());
    (0..8u32, kind, cpus, sizes(), sizes(), proptest::option::of(0..20u32)).prop_map(
        |(level, kind, (first, count), size, line, ways)| {
            let cpus = (first..first + count).map(CpuId).collect();
            Cache { level, kind, cpus, size, line, ways }
        },
    )
}

/// A fake machine with random values for all independent attributes.
fn machine() -> impl Strategy<Value = Machine> {
    let base = proptest::sample::select(machines::all());
    let lists = (vec(cache(), 0..12), vec((0..9u32, 0..9u32, text()), 0..4));
    let levels = vec((proptest::option::of(0..8u32), proptest::option::of(0..9u64)), 16);
    let memory = vec((0..1u64 << 40, vec((0..3u64, 0..99u64, 0..99u64), 0..3)), 8);
    let names = (text(), text(), text(), proptest::option::of(figure()));
    (base, lists, levels, memory, vec(source(), 6), names).prop_map(
        |(mut machine, (caches, links), levels, memory, sources, names)| {
            for (domain, (level, size)) in machine.domains.iter_mut().zip(levels) {
                domain.cache_level = level;
                domain.cache = size.map(|size| Bytes(size << 20));
            }
            for (node, (free, pools)) in machine.nodes.iter_mut().zip(memory) {
                node.memory_free = Bytes(free);
                let pool = |(size, total, free)| HugePages { size: Bytes(size << 12), total, free };
                node.huge_pages = pools.into_iter().map(pool).collect();
            }
            machine.caches = caches;
            machine.caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
            let link =
                |((a, b, kind), id)| Link { id: LinkId(id), a: NodeId(a), b: NodeId(b), kind };
            let is_there = |(a, b, _): &(u32, u32, String)| {
                machine.has(Subject::Path { from: NodeId(*a), to: NodeId(*b) })
            };
            let links = links.into_iter().filter(is_there).collect::<Vec<_>>();
            machine.links = links.into_iter().zip(0..).map(link).collect();
            describe(&mut machine, &sources, names);
            machine
        },
    )
}

fn describe(
    machine: &mut Machine,
    sources: &[Source],
    names: (String, String, String, Option<f64>),
) {
    let (name, model, file, cpus) = names;
    [
        &mut machine.source,
        &mut machine.memory_source,
        &mut machine.caches_source,
        &mut machine.distances_source,
        &mut machine.links_source,
        &mut machine.pages_source,
    ]
    .into_iter()
    .zip(sources)
    .for_each(|(place, &source)| *place = source);
    machine.name = name;
    machine.packages[0].model = Some(model);
    machine.page_size = Bytes(4096 << (machine.cpus.len() % 3));
    machine.huge_page_size = cpus.map(|_| Bytes(1 << 21));
    machine.limits.memory = cpus.map(|_| MemoryLimit { bytes: Bytes(9), file: file.clone() });
    machine.limits.cpu_time = cpus.map(|cpus| CpuTimeLimit { cpus, file });
    machine.hidden.cpus = CpuSet::parse("70-72").unwrap();
}

proptest! {
    #[test]
    fn any_knowledge_survives(machine in machine(), mut facts in vec(fact(), 0..8)) {
        facts.retain(|fact| machine.has(fact.subject));
        let knowledge = Knowledge { machine, facts };
        let text = xml::write(&knowledge);
        prop_assert_eq!(xml::parse(&text, "lab.xml"), Ok(knowledge));
    }
}

#[test]
fn links_and_facts_about_what_a_cut_file_lacks_are_left_out() {
    let mut whole = Knowledge::from_machine(machines::two_nodes());
    let link = |id, a, b| Link { id: LinkId(id), a: NodeId(a), b: NodeId(b), kind: "UPI".into() };
    whole.machine.links = vec![link(0, 0, 7), link(1, 0, 1)];
    let fact =
        |subject, value| Fact::new(subject, Quantity::Latency, value, Source::Measured, "a test");
    let path = |from, to| Subject::Path { from: NodeId(from), to: NodeId(to) };
    whole.facts = vec![
        fact(Subject::Link(LinkId(0)), 1.0),
        fact(Subject::Link(LinkId(1)), 2.0),
        fact(path(0, 7), 3.0),
        fact(path(0, 1), 4.0),
    ];
    let cut = parsed(&xml::write(&whole));
    assert_eq!(cut.machine.links, [link(0, 0, 1)]);
    assert_eq!(cut.facts, [fact(Subject::Link(LinkId(0)), 2.0), fact(path(0, 1), 4.0)]);
    let again = atoll_formats::toml::parse(&atoll_formats::toml::write(&cut), "cut.toml");
    assert_eq!(again, Ok(cut));
}

/// The output of the installed lstopo for a file, in a format. Returns None if it is not installed.
fn lstopo(file: &std::path::Path, format: &str) -> Option<String> {
    let output = Command::new("lstopo-no-graphics")
        .args(["-i".as_ref(), file.as_os_str(), "--of".as_ref(), format.as_ref()])
        .env("HWLOC_XML_VERBOSE", "1")
        .output();
    let output = output.map_err(|error| skip(Need::Lstopo, error)).ok()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{format}: {errors}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn lstopo_reads_what_is_written_and_writes_the_same_machine() {
    let directory = tempfile::tempdir().unwrap();
    let discovered = Tree::from_machine(&machines::sub_numa_clusters()).discover_all();
    for machine in machines::all().into_iter().chain([discovered]) {
        let knowledge = with_facts(machine);
        let file = directory.path().join("machine.xml");
        std::fs::write(&file, xml::write(&knowledge)).unwrap();
        let Some(again) = lstopo(&file, "xml") else { return };
        assert_eq!(parsed(&again), knowledge);
        let (Some(console), machine) = (lstopo(&file, "console"), &knowledge.machine) else {
            return;
        };
        for node in &machine.nodes {
            assert!(console.contains(&format!("P#{}", node.id)), "{console}");
        }
        assert_eq!(console.matches("PU L#").count(), machine.cpus.len(), "{console}");
        assert_eq!(console.matches("NUMANode L#").count(), machine.nodes.len(), "{console}");
        assert_eq!(console.matches("L3 L#").count(), machine.domains.len(), "{console}");
    }
}

#[test]
fn what_lstopo_writes_of_this_machine_is_what_discovery_finds() {
    let output = match Command::new("lstopo-no-graphics").args(["--of", "xml"]).output() {
        Ok(output) => output,
        Err(error) => return skip(Need::Lstopo, error),
    };
    let read = parsed(&String::from_utf8(output.stdout).unwrap()).machine;
    let found = Machine::discover().unwrap();
    assert_eq!(read.cpus, found.cpus);
    assert_eq!(read.name, found.name);
    let ids = |machine: &Machine| machine.nodes.iter().map(|node| node.id).collect::<Vec<_>>();
    assert_eq!(ids(&read), ids(&found));
    assert_eq!(read.page_size, found.page_size);
}

/// A file as lstopo writes it: 2 cpus with DRAM and memory of another kind, one cpu not allowed.
const DECLARED: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x00000007" complete_cpuset="0x00000007" allowed_cpuset="0x00000003" nodeset="0x00000003" allowed_nodeset="0x00000003" gp_index="1">
    <info name="HostName" value="knl &amp; co"/>
    <object type="Package" os_index="3" cpuset="0x00000007" gp_index="2">
      <info name="CPUModel" value="Phi"/>
      <object type="MemCache" cpuset="0x00000007" gp_index="10" cache_size="4096">
        <object type="NUMANode" os_index="0" cpuset="0x00000007" nodeset="0x00000001" gp_index="3" local_memory="1073741824">
          <page_type size="4096" count="245760"/>
          <page_type size="2097152" count="32"/>
        </object>
      </object>
      <object type="NUMANode" os_index="1" cpuset="0x00000007" nodeset="0x00000002" gp_index="4" local_memory="4096"/>
      <object type="L2Cache" cpuset="0x00000003" gp_index="5" cache_size="65536" depth="2" cache_linesize="64" cache_associativity="-1" cache_type="0">
        <object type="Core" os_index="9" cpuset="0x00000003" gp_index="6">
          <object type="PU" os_index="0" cpuset="0x00000001" gp_index="7"/>
          <object type="PU" os_index="1" cpuset="0x00000002" gp_index="8"/>
        </object>
      </object>
      <object type="PU" os_index="2" cpuset="0x00000004" gp_index="9"/>
    </object>
    <object type="Bridge" gp_index="18" bridge_type="0-1" depth="0" bridge_pci="0000:[00-00]"/>
  </object>
  <distances2 type="NUMANode" nbobjs="2" kind="5" name="NUMALatency" indexing="os">
    <indexes length="4">0 1 </indexes>
    <u64values length="6">10 17 </u64values>
    <u64values length="6">18 10 </u64values>
  </distances2>
  <support name="discovery.pu"/>
  <memattr name="Bandwidth" flags="5">
    <memattr_value target_obj_type="NUMANode" target_obj_gp_index="4" value="95367" initiator_cpuset="0x00000007"/>
    <memattr_value target_obj_type="NUMANode" target_obj_gp_index="3" value="1" initiator_cpuset="0x00000001"/>
  </memattr>
  <memattr name="Latency" flags="6">
    <memattr_value target_obj_type="NUMANode" target_obj_gp_index="3" value="130" initiator_obj_gp_index="2" initiator_obj_type="Package"/>
  </memattr>
</topology>
"#;

#[test]
fn a_file_of_lstopo_means_what_hwloc_says() {
    let knowledge = parsed(DECLARED);
    let machine = &knowledge.machine;
    assert_eq!((machine.name.as_str(), machine.source), ("knl & co", Source::Declared));
    assert_eq!(machine.hidden.cpus.to_string(), "2");
    assert_eq!(machine.nodes[0].cpus.to_string(), "0-1");
    assert_eq!(machine.nodes[0].huge_pages[0].total, 32);
    assert!(machine.nodes[1].cpus.is_empty(), "memory of another kind has no cpus of its own");
    assert_eq!(machine.nodes[1].memory, Bytes(4096));
    assert_eq!(machine.packages[0].model.as_deref(), Some("Phi"));
    assert_eq!((machine.cores.len(), machine.domains.len()), (1, 1));
    assert_eq!(machine.domains[0].cache, Some(Bytes(65536)));
    assert_eq!((machine.caches[0].level, machine.caches[0].ways), (2, Some(0)));
    assert_eq!(machine.distances, [[10, 17], [18, 10]]);
    assert_eq!(machine.distances_source, Source::Declared);
}

#[test]
fn a_cpu_whose_node_is_not_allowed_keeps_it_without_its_memory() {
    let (start, end) = DECLARED.split_once("      <object type=\"PU\" os_index=\"2\"").unwrap();
    let foreign =
        "<object type=\"PU\" os_index=\"40\" nodeset=\"0x0\" complete_nodeset=\"0x00000020\"/>";
    let text = format!("{start}{foreign}<object type=\"PU\" os_index=\"2\"{end}")
        .replace("allowed_cpuset=\"0x00000003\"", "allowed_cpuset=\"0x00000100,0x00000003\"");
    let machine = parsed(&text).machine;
    let node = machine.node(NodeId(5)).unwrap();
    assert_eq!((node.cpus.to_string().as_str(), node.memory), ("40", Bytes(0)));
    assert!(machine.hidden.nodes.contains(NodeId(5)));
}

#[test]
fn memory_attributes_of_a_whole_node_are_facts() {
    let facts = parsed(DECLARED).facts;
    let path = |to| Subject::Path { from: NodeId(0), to: NodeId(to) };
    let told: Vec<_> = facts.iter().map(|fact| (fact.subject, fact.quantity)).collect();
    assert_eq!(told, [(path(0), Quantity::Latency), (path(1), Quantity::ReadBandwidth)]);
    assert_eq!(facts[0].value, 130.0);
    assert!((facts[1].value - 100.0).abs() < 0.001, "95367 MiB/s are 100 GB/s");
    assert!(facts[1].origin.contains("lab.xml"), "{}", facts[1].origin);
}

#[test]
fn a_written_file_has_the_latency_and_bandwidth_of_its_paths_for_hwloc() {
    let text = xml::write(&with_facts(machines::two_nodes()));
    let plain: String = text.lines().filter(|line| !line.contains("atoll.")).collect();
    let facts = parsed(&plain).facts;
    assert_eq!(facts.len(), 8, "two quantities of four paths");
    assert!(facts.iter().any(|fact| fact.value == 81.0), "80.25 + 1 is rounded");
}

/// The message for the file with one text replaced.
fn message(from: &str, to: &str) -> String {
    assert!(DECLARED.contains(from), "{from}");
    xml::parse(&DECLARED.replacen(from, to, 1), "lab.xml").expect_err(to).to_string()
}

#[test]
fn every_mistake_is_reported_with_file_and_line() {
    for (from, to, expected) in [
        (
            "version=\"2.0\"",
            "",
            "lab.xml:3: a topology of hwloc 1; expected what 'lstopo --of xml'",
        ),
        ("version=\"2.0\"", "version=\"9\"", "lab.xml:3: '9'; expected what 'lstopo --of xml'"),
        ("os_index=\"2\"", "os_index=\"1\"", "lab.xml:21: the number 1 a second time"),
        ("os_index=\"2\"", "os_index=\"65536\"", "lab.xml:21: os_index=\"65536\""),
        ("os_index=\"2\"", "", "lab.xml:21: a PU or NUMANode without a number"),
        ("os_index=\"2\"", "os_index=\"2\" os_index=\"3\"", "lab.xml:21: "),
        ("local_memory=\"4096\"", "local_memory=\"-1\"", "lab.xml:14: local_memory=\"-1\""),
        ("nbobjs=\"2\"", "nbobjs=\"3\"", "lab.xml:25: 2 indexes and 4 values; expected 3 indexes"),
        ("17 </u64values>", "x </u64values>", "lab.xml:25: 'x'; expected a whole number"),
        (
            "allowed_cpuset=\"0x00000003\"",
            "allowed_cpuset=\"0x0\"",
            "lab.xml:4: no PU that is allowed",
        ),
        (
            "allowed_cpuset=\"0x00000003\"",
            "allowed_cpuset=\"3-\"",
            "lab.xml:4: '3-'; expected a mask",
        ),
        ("</topology>", "", "lab.xml:39: the end with 1 elements open"),
        ("</topology>", "</topology><x/>", "lab.xml:38: a second root element"),
        ("type=\"Machine\"", "type=\"System\"", "lab.xml:4: 'System'; expected the type 'Machine'"),
        ("&amp;", "&who;", "lab.xml:5: "),
        ("knl", "\"knl", "lab.xml:5: "),
    ] {
        let message = message(from, to);
        assert!(message.starts_with(expected), "{to}: {message}");
    }
    let message = xml::parse("", "-").unwrap_err().to_string();
    assert_eq!(message, "-:1: no element; expected <topology>");
}

#[test]
fn hostile_xml_is_refused_cheaply() {
    let laughs = "<!DOCTYPE topology [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>";
    let doctype = "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">";
    assert!(
        message(doctype, laughs).contains("without definitions"),
        "{}",
        message(doctype, laughs)
    );
    let deep = format!("<topology version=\"2.0\">{}", "<object type=\"Group\">".repeat(100_000));
    let error = xml::parse(&deep, "deep").unwrap_err().to_string();
    assert!(error.contains("Machine"), "{error}");
    let deep = deep.replacen("Group", "Machine", 1);
    let error = xml::parse(&deep, "deep").unwrap_err().to_string();
    assert!(error.contains("nested deeper"), "{error}");
    let wide: String = (0..10_000).map(|number| format!(" a{number}=\"\"")).collect();
    let error = xml::parse(&format!("<topology{wide}/>"), "wide").unwrap_err().to_string();
    assert!(error.contains("more attributes"), "{error}");
}

/// The smallest topology, with texts inside and after the machine object.
fn tiny(within: &str, behind: &str) -> String {
    format!(
        "<topology version=\"2.0\"><object type=\"Machine\">{within}<object type=\"NUMANode\" \
         os_index=\"0\" cpuset=\"0x1\" gp_index=\"2\" local_memory=\"4096\"/><object type=\"PU\" \
         os_index=\"0\"/></object>{behind}</topology>"
    )
}

#[test]
fn many_figures_of_many_objects_cost_no_more_than_their_sum() {
    let objects = "<object type=\"Group\"/>".repeat(100_000);
    let value = "<memattr_value target_obj_type=\"NUMANode\" target_obj_gp_index=\"2\" value=\"5\" \
                 initiator_obj_gp_index=\"2\"/>";
    let values = value.repeat(20_000);
    let figures = format!("<memattr name=\"Bandwidth\" flags=\"5\">{values}</memattr>");
    let long = format!("<memattr name=\"{}\">{values}</memattr>", "x".repeat(1 << 20));
    let knowledge = parsed(&tiny(&objects, &(long + &figures)));
    assert_eq!(knowledge.facts.len(), 1, "the same path each time");
}

#[test]
fn infos_that_name_all_cpus_again_and_again_are_refused() {
    for (name, value) in
        [("atoll.cache", "level=1 kind=data cpus=0-65535"), ("atoll.package", "id=1 cpus=0-65535")]
    {
        let info = format!("<info name=\"{name}\" value=\"{value}\"/>\n");
        let error = xml::parse(&tiny(&info.repeat(1000), ""), "big.xml").unwrap_err().to_string();
        assert!(error.starts_with("big.xml:16: too many cpus in infos"), "{error}");
    }
}

#[test]
fn a_message_shows_control_characters_of_the_file_as_numbers() {
    let error = xml::parse("\u{1b}[31m<", "a\nb.xml").unwrap_err().to_string();
    assert!(error.contains("\\u{1b}[31m"), "{error}");
    let name = tiny("", "").replace("0x1", "&#27;");
    let error = xml::parse(&name, "lab.xml").unwrap_err().to_string();
    assert!(!error.contains('\u{1b}') && error.contains("\\u{1b}"), "{error}");
}

#[test]
fn an_invalid_fact_is_reported_with_its_line() {
    let text = xml::write(&with_facts(machines::one_node()));
    for (from, to) in [
        ("path 0-0 latency", "path 0 latency"),
        ("latency value", "loudness value"),
        ("value=80.25", "value=NaN"),
        ("value=80.25", "value=80.25 at=yesterday"),
        ("source=measured origin", "source=rumour origin"),
        ("source=measured origin=a", "source=measured"),
        ("\\u{f1}", "\\u{zz}"),
    ] {
        assert!(text.contains(from), "{from}");
        let error = xml::parse(&text.replacen(from, to, 1), "lab.xml").expect_err(to);
        let line = text.lines().position(|line| line.contains("atoll.fact")).unwrap() + 1;
        assert_eq!(error.line, Some(line), "{error}");
    }
}
