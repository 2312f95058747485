use std::process::Command;

use atoll_sys::Root;
use atoll_topology::{Allowed, Machine, Source};

use atoll_testkit::tree::set;

/// Value of a line of a file under `/proc`.
fn proc(file: &str, key: &str) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    value.trim().to_owned()
}

/// What a program prints, without the variable that would change what `nproc` says.
fn output(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    let command = command.args(arguments).env_remove("OMP_NUM_THREADS");
    let output = command.output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn the_live_machine_has_as_many_cpus_as_nproc_says() {
    let machine = Machine::discover().unwrap();
    assert_eq!(machine.source, Source::Discovered);
    assert_eq!(machine.cpus.len().to_string(), output("nproc", &[]));
}

#[test]
fn the_live_machine_has_the_cpus_that_proc_allows() {
    let machine = Machine::discover().unwrap();
    let allowed = set(&proc("/proc/self/status", "Cpus_allowed_list:"));
    assert!(machine.cpus.iter().all(|cpu| allowed.contains(cpu.id)));
    assert!(machine.hidden.cpus.iter().all(|cpu| !allowed.contains(cpu)));
}

#[test]
fn the_live_machine_s_memory_is_that_of_its_nodes() {
    let everything = Allowed::everything();
    let machine = Machine::discover_at(&Root::live(), &everything).unwrap();
    for node in &machine.nodes {
        let name = format!("/sys/devices/system/node/node{}/meminfo", node.id);
        let (name, key) = match std::fs::exists(&name).unwrap() {
            true => (name, format!("Node {} MemTotal:", node.id)),
            false => ("/proc/meminfo".to_owned(), "MemTotal:".to_owned()),
        };
        let total = proc(&name, &key);
        let total: u64 = total.trim_end_matches("kB").trim().parse().unwrap();
        assert_eq!(node.memory.0, total * 1024, "{name}");
    }
    assert!(machine.memory_free() <= machine.memory());
}

#[test]
fn the_live_machine_s_page_size_is_that_of_the_system() {
    let machine = Machine::discover().unwrap();
    assert_eq!(machine.page_size.0.to_string(), output("getconf", &["PAGESIZE"]));
    assert_eq!(machine.pages_source, Source::Discovered);
}

#[test]
fn the_live_machine_s_distances_are_a_square_with_the_diagonal_local() {
    let machine = Machine::discover().unwrap();
    assert_eq!(machine.distances.len(), machine.nodes.len());
    for (index, row) in machine.distances.iter().enumerate() {
        assert_eq!(row.len(), machine.nodes.len());
        assert_eq!(row[index], 10);
    }
}
