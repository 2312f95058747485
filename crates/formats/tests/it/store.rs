use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use atoll_formats::store::{self, StoreError};
use atoll_sys::Root;
use atoll_testkit::machines;
use atoll_topology::{
    Allowed, Bytes, CpuId, CpuTimeLimit, DomainId, Fact, Fingerprint, Knowledge, Machine, NodeId,
    NodeSet, Quantity, Source, Spread, Subject,
};

use atoll_testkit::tree::{Tree, set};

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn latency(from: u32, to: u32, value: f64, seconds: u64) -> Fact {
    let subject = Subject::Path { from: NodeId(from), to: NodeId(to) };
    Fact {
        spread: Some(Spread { min: value - 1.0, max: value + 1.0, runs: 3 }),
        at: Some(UNIX_EPOCH + Duration::from_secs(seconds)),
        ..Fact::new(subject, Quantity::Latency, value, Source::Measured, "atoll topo measure")
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_was_saved_is_loaded_and_newer_figures_replace_older_ones() {
    let directory = temporary();
    for machine in machines::all() {
        let node = machine.nodes[0].id.0;
        assert_eq!(store::load(directory.path(), &machine).unwrap(), []);
        let first = [latency(node, node, 81.0, 10)];
        let path = store::save(directory.path(), &machine, &first).unwrap();
        assert_eq!(path, store::file(directory.path(), &machine));
        assert_eq!(store::load(directory.path(), &machine).unwrap(), first);
        let second = [latency(node, node, 82.0, 20)];
        store::save(directory.path(), &machine, &second).unwrap();
        store::save(directory.path(), &machine, &first).unwrap();
        assert_eq!(store::load(directory.path(), &machine).unwrap(), second, "{}", machine.name);
    }
}

#[test]
fn the_file_describes_the_machine_as_a_whole_without_this_process_s_limits() {
    let directory = temporary();
    let mut machine = machines::full_detail();
    machine.limits.cpu_time = Some(CpuTimeLimit { cpus: 1.5, file: "/x/cpu.max".to_owned() });
    let path = store::save(directory.path(), &machine, &[latency(0, 1, 140.0, 1)]).unwrap();
    let text = fs::read_to_string(path).unwrap();
    let known = atoll_formats::toml::parse(&text, "kept").unwrap();
    machine.limits = Default::default();
    assert_eq!(known, Knowledge { machine, facts: vec![latency(0, 1, 140.0, 1)] });
}

#[test]
fn files_are_private_and_leave_no_other_files() {
    let directory = temporary();
    let inner = directory.path().join("a/b");
    let machine = machines::one_node();
    let path = store::save(&inner, &machine, &[latency(0, 0, 80.0, 1)]).unwrap();
    assert_eq!(mode(&path), 0o600);
    let mut names: Vec<_> =
        fs::read_dir(&inner).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [OsString::from(".lock"), path.file_name().unwrap().to_owned()]);
    let new = directory.path().join("c/d");
    store::save(&new, &machine, &[]).unwrap();
    assert_eq!((mode(&new), mode(new.parent().unwrap())), (0o700, 0o700));
}

#[test]
fn what_is_not_measured_or_not_named_by_the_kernel_is_not_kept() {
    let directory = temporary();
    let machine = machines::two_nodes();
    let domain = Subject::Domain(DomainId(0));
    let kept = Fact {
        subject: Subject::CpuPair { from: CpuId(0), to: CpuId(15) },
        quantity: Quantity::CoreToCore,
        ..latency(0, 0, 55.0, 1)
    };
    let facts = [
        kept.clone(),
        Fact { source: Source::Observed, ..latency(0, 1, 1.0, 1) },
        Fact { source: Source::Declared, ..latency(0, 1, 2.0, 1) },
        Fact { subject: domain, quantity: Quantity::Cache, ..latency(0, 1, 3.0, 1) },
        latency(0, 7, 4.0, 1),
    ];
    store::save(directory.path(), &machine, &facts).unwrap();
    assert_eq!(store::load(directory.path(), &machine).unwrap(), [kept]);
}

#[test]
fn a_damaged_file_is_named_with_its_line_and_is_not_overwritten() {
    let directory = temporary();
    let machine = machines::one_node();
    let path = store::save(directory.path(), &machine, &[latency(0, 0, 80.0, 1)]).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}\nnonsense = \"")).unwrap();
    for result in [
        store::load(directory.path(), &machine).map(|_| ()),
        store::save(directory.path(), &machine, &[latency(0, 0, 81.0, 2)]).map(|_| ()),
    ] {
        let error = result.unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
        let message = error.to_string();
        let line = text.lines().count() + 2;
        assert!(message.contains(&format!("{}:{line}", path.display())), "{message}");
        assert!(message.contains("correct the file, or remove it"), "{message}");
    }
    assert!(fs::read_to_string(&path).unwrap().ends_with("nonsense = \""));
}

#[test]
fn a_pipe_or_directory_in_place_of_the_file_is_an_error_and_does_not_block() {
    let machine = machines::one_node();
    let directory = temporary();
    let path = store::file(directory.path(), &machine);
    fs::create_dir(&path).unwrap();
    assert!(store::load(directory.path(), &machine).is_err());
    fs::remove_dir(&path).unwrap();
    fs::write(&path, b"\xff\xfe").unwrap();
    assert!(matches!(store::load(directory.path(), &machine), Err(StoreError::Damaged { .. })));
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    assert!(store::load(directory.path(), &machine).is_err());
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let directory = temporary();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let inside = file.join("machines");
    let error = store::save(&inside, &machines::one_node(), &[]).unwrap_err();
    assert!(error.to_string().contains(&inside.display().to_string()), "{error}");
}

#[test]
fn runs_at_the_same_time_lose_nothing_of_each_other() {
    let directory = temporary();
    let machine = machines::four_nodes();
    std::thread::scope(|scope| {
        for from in 0..4 {
            let (directory, machine) = (directory.path(), &machine);
            scope.spawn(move || {
                for to in 0..4 {
                    store::save(directory, machine, &[latency(from, to, 90.0, 1)]).unwrap();
                }
            });
        }
    });
    assert_eq!(store::load(directory.path(), &machine).unwrap().len(), 16);
}

#[test]
fn the_directory_is_atoll_s_own_then_xdg_s_then_home_s() {
    let directory = |set: &[(&str, &str)]| {
        let value = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, v)| v.into());
        store::directory_in(value).ok()
    };
    let (home, xdg, own) = (("HOME", "/h"), ("XDG_DATA_HOME", "/x"), ("ATOLL_DATA", "/a"));
    let path = |text| Some(PathBuf::from(text));
    assert_eq!(directory(&[home, xdg, own]), path("/a/machines"));
    assert_eq!(directory(&[home, xdg]), path("/x/atoll/machines"));
    assert_eq!(directory(&[home]), path("/h/.local/share/atoll/machines"));
    assert_eq!(
        directory(&[home, ("XDG_DATA_HOME", "relative"), ("ATOLL_DATA", "")]),
        directory(&[home])
    );
    assert_eq!(directory(&[]), None);
}

#[test]
fn a_part_of_the_machine_knows_what_was_measured_on_the_whole() {
    let directory = temporary();
    let tree = Tree::from_machine(&machines::full_detail());
    let facts = [latency(0, 0, 80.0, 1), latency(0, 1, 140.0, 1)];
    store::save(directory.path(), &tree.discover_all(), &facts).unwrap();
    let (cpus, nodes) = (Some(set("2-3")), Some(NodeSet::parse("0").unwrap()));
    let allowed = Allowed { cpus, nodes, ..Allowed::everything() };
    let live = store::live_at(&tree.root(), &allowed, directory.path()).unwrap();
    assert!(live.warning.is_none());
    assert_eq!(live.knowledge.machine.nodes.len(), 1);
    let measured: Vec<&Fact> =
        live.knowledge.facts.iter().filter(|fact| fact.source == Source::Measured).collect();
    assert_eq!(measured, [&facts[0]]);
    assert_eq!(live.knowledge.latency(NodeId(0), NodeId(0)).unwrap().value, 80.0);
}

#[test]
fn a_damaged_file_is_a_warning_next_to_what_discovery_finds() {
    let directory = temporary();
    let tree = Tree::from_machine(&machines::two_nodes());
    fs::write(store::file(directory.path(), &tree.discover_all()), "name = 3").unwrap();
    let live = store::live_at(&tree.root(), &Allowed::everything(), directory.path()).unwrap();
    assert!(matches!(live.warning, Some(StoreError::Damaged { .. })));
    assert_eq!(live.knowledge.machine.cpus.len(), 16);
}

fn fingerprint(machine: &Machine) -> Fingerprint {
    Fingerprint::from_machine(machine)
}

#[test]
fn no_two_fake_machines_have_one_fingerprint() {
    let all: Vec<String> = machines::all().iter().map(|m| fingerprint(m).to_string()).collect();
    let distinct: std::collections::BTreeSet<&String> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
    assert!(
        all.iter().all(|text| text.len() == 16 && !text.contains(|c: char| !c.is_ascii_hexdigit()))
    );
}

#[test]
fn a_fingerprint_is_the_same_in_every_version() {
    assert_eq!(fingerprint(&machines::one_node()).to_string(), "57d430ba9d0c8da3");
}

#[test]
fn what_changes_between_boots_does_not_change_the_fingerprint() {
    let machine = machines::full_detail();
    let mut other = machine.clone();
    other.name = "renamed".to_owned();
    other.source = Source::Declared;
    other.huge_page_size = None;
    other.page_size = Bytes(65_536);
    other.nodes[0].memory_free = Bytes(1);
    other.nodes[0].huge_pages.clear();
    other.nodes[1].memory = Bytes(other.nodes[1].memory.0 - (300 << 20));
    assert_eq!(fingerprint(&other), fingerprint(&machine));
}

#[test]
fn a_balloon_does_not_change_the_fingerprint_where_one_node_has_all_memory() {
    let machine = machines::one_node();
    let mut other = machine.clone();
    other.nodes[0].memory = Bytes(6 << 30);
    assert_eq!(fingerprint(&other), fingerprint(&machine));
}

#[test]
fn other_hardware_has_another_fingerprint() {
    let machine = machines::full_detail();
    let changes: [fn(&mut Machine); 6] = [
        |machine| machine.nodes[0].memory = Bytes(64 << 30),
        |machine| machine.packages[0].model = Some("Server 3".to_owned()),
        |machine| machine.distances[0][1] = 22,
        |machine| machine.caches[3].size = Some(Bytes(1)),
        |machine| machine.nodes[1].id = NodeId(2),
        |machine| drop(machine.cores.pop()),
    ];
    for change in changes {
        let mut other = machine.clone();
        change(&mut other);
        assert_ne!(fingerprint(&other), fingerprint(&machine));
    }
}

#[test]
fn the_live_machine_s_fingerprint_is_the_same_twice() {
    let whole = || Machine::discover_at(&Root::live(), &Allowed::everything()).unwrap();
    assert_eq!(fingerprint(&whole()), fingerprint(&whole()));
}
