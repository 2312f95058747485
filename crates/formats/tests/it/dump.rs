use std::fmt::Write;
use std::sync::LazyLock;

use atoll_formats::dump;
use atoll_sys::Root;
use atoll_testkit::machines;
use atoll_topology::{Allowed, Machine};
use proptest::prelude::*;

use atoll_testkit::tree::{CPU, Tree};

fn open(text: &str) -> Root {
    dump::open(text, "a.dump").unwrap()
}

/// A dump of these lines.
fn of_lines(lines: &str) -> String {
    format!("atoll-dump 1\n{lines}\nend\n")
}

fn mistake(lines: &str) -> String {
    dump::open(&of_lines(lines), "a.dump").unwrap_err().to_string()
}

fn discover(root: &Root) -> Machine {
    Machine::discover_at(root, &Allowed::of_process(root)).unwrap()
}

#[test]
fn every_fake_machine_is_the_same_machine_from_its_dump() {
    for machine in machines::all() {
        let tree = Tree::from_machine(&machine);
        let text = dump::gather(&tree.root(), &machine.name);
        assert!(dump::is_dump(&text));
        let again = open(&text);
        assert_eq!(discover(&again), discover(&tree.root()), "{}", machine.name);
        assert_eq!(dump::gather(&again, &machine.name), text, "{}", machine.name);
    }
}

#[test]
fn the_live_machine_is_the_same_from_its_dump_but_for_the_memory_free_and_the_name() {
    let from_dump = discover(&open(&dump::gather(&Root::live(), "somewhere")));
    let live = Machine::discover().unwrap();
    assert_eq!(from_dump.name, "somewhere");
    assert_eq!((&from_dump.cpus, &from_dump.packages), (&live.cpus, &live.packages));
    assert_eq!((&from_dump.domains, &from_dump.caches), (&live.domains, &live.caches));
    assert_eq!((&from_dump.limits, &from_dump.distances), (&live.limits, &live.distances));
    assert_eq!((from_dump.memory(), from_dump.page_size), (live.memory(), live.page_size));
}

#[test]
fn a_dump_holds_nothing_private_of_host_and_process() {
    let tree = Tree::from_machine(&machines::two_nodes())
        .with("proc/sys/kernel/hostname", "secret-host\n")
        .with("proc/self/status", "Name:\tsecret\nUid:\t1\nCpus_allowed_list:\t0-3\n")
        .with("proc/cpuinfo", "processor\t: 0\nSerial\t: secret\nmodel name\t: M\n\n\n")
        .with("proc/self/mountinfo", "9 1 0:1 / /secret rw - nfs secret:/ rw\n")
        .with(&format!("{CPU}/cpu0/topology/ppin"), "secret\n");
    let text = dump::gather(&tree.root(), "given");
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(discover(&open(&text)).name, "given");
}

#[test]
fn files_that_are_equal_for_many_cpus_are_written_once() {
    let lines = "\
/sys/devices/system/cpu/cpu{0-1023}/cache/index0/level = 1
/sys/devices/system/cpu/cpu{0-1023}/cache/index0/size = 32K
/sys/devices/system/cpu/cpu{0,512}/cache/index0/shared_cpu_list = 0,512";
    let text = dump::gather(&open(&of_lines(lines)), "n");
    for line in lines.lines() {
        assert_eq!(text.matches(line).count(), 1, "{line} in\n{text}");
    }
}

#[test]
fn whatever_a_file_holds_comes_back_byte_by_byte() {
    let contents: [&[u8]; 8] =
        [b"", b"\n", b"a\n", b"a", b" a \n\n| b\n", b"\t\xc3\xa9\n", b"\xff\n", b"a\r\n"];
    for bytes in contents {
        let tree = Tree::empty().with("proc/meminfo", bytes);
        let again = open(&dump::gather(&tree.root(), "n"));
        assert_eq!(again.read_bytes("/proc/meminfo").unwrap(), bytes, "{bytes:?}");
    }
}

#[test]
fn a_control_group_s_name_may_hold_blanks_and_braces() {
    let tree = Tree::from_machine(&machines::one_node())
        .with("proc/self/cgroup", "0::/a b{1}\\é\n")
        .with("sys/fs/cgroup/a b{1}\\é/memory.max", "1048576\n");
    let found = discover(&open(&dump::gather(&tree.root(), "n"))).limits.memory.unwrap();
    assert_eq!(
        (found.bytes.0, found.file.as_str()),
        (1 << 20, "/sys/fs/cgroup/a b{1}\\é/memory.max")
    );
}

#[test]
fn links_to_initiators_are_kept_as_directories() {
    let access = "sys/devices/system/node/node0/access0/initiators";
    let tree = Tree::empty()
        .with(&format!("{access}/node1/x"), "")
        .with(&format!("{access}/read_latency"), "9\n");
    let again = open(&dump::gather(&tree.root(), "n"));
    assert_eq!(again.list(access).unwrap(), ["node1", "read_latency"]);
}

#[test]
fn mistakes_are_named_with_their_line_and_what_was_expected() {
    for (lines, expected) in [
        ("/a = 1\n/b", "a.dump:3: /b; expected a file, then"),
        ("/a\n| x", "a.dump:2: /a; expected a file, then"),
        ("| x", "a.dump:2: | x; expected a file, then"),
        ("/a : x", "a.dump:2: /a : x; expected a file, then"),
        ("/a hex 0g", "a.dump:2: 0g; expected pairs of hexadecimal digits"),
        ("/a hex 012", "a.dump:2: 012; expected pairs"),
        ("/a/../b = 1", "a.dump:2: /a/../b; expected an absolute path"),
        ("a = 1", "a.dump:2: a; expected an absolute path"),
        ("/a{0 = 1", "a.dump:2: /a{0; expected an absolute path"),
        ("/a{0-1}{0-1} = 1", "a.dump:2: a name with a wrong"),
        ("/a{2-1} = 1", "runs backwards"),
        ("/a{0-99999} = 1", "99999 is above 65535"),
        ("/a\\9 = 1", "a.dump:2: a name with a wrong"),
        ("/a = 1\n\n/a = 2", "a.dump:4: /a; expected each file once"),
    ] {
        let message = mistake(lines);
        assert!(message.contains(expected), "{lines:?}: {message}");
    }
}

#[test]
fn a_dump_that_is_cut_short_or_of_another_kind_is_refused() {
    let message = |text: &str| dump::open(text, "a.dump").unwrap_err().to_string();
    assert!(message("atoll-dump 1\n/a = 1\n").contains("a.dump:3: nothing more; expected 'end'"));
    assert!(message("").contains("a.dump:1: ; expected 'atoll-dump 1'"));
    assert!(message("atoll-dump 2\nend\n").contains("a.dump:1: atoll-dump 2; expected"));
    assert!(message("<?xml?>").contains("expected 'atoll-dump 1'"));
}

#[test]
fn a_dump_of_too_many_files_is_refused_before_it_fills_the_memory() {
    let lines = (0..100).fold(String::new(), |mut text, index| {
        _ = writeln!(text, "/a{{0-65535}}/{index} = 1");
        text
    });
    let message = mistake(&lines);
    assert!(
        message.contains("a.dump:18: ") && message.contains("more than 1048576 files"),
        "{message}"
    );
}

/// A dump to damage.
static WHOLE: LazyLock<String> =
    LazyLock::new(|| dump::gather(&Tree::from_machine(&machines::two_nodes()).root(), "n"));

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_text_makes_reading_a_dump_panic(text in "(/[a{}0-9,\\\\-]{0,9} (=|:|hex|dir|) ?[a0-9|]{0,5}\n|\\PC{0,20}\n){0,12}") {
        let _ = dump::open(&of_lines(&text), "a.dump");
    }

    #[test]
    fn a_damaged_dump_is_an_error_or_a_tree_and_discovery_an_error_or_a_machine(
        at in 0usize..4000, with in "[\\x00-\\x7f]{0,4}",
    ) {
        let at = at.min(WHOLE.len() - 1);
        let damaged = format!("{}{with}{}", &WHOLE[..at], &WHOLE[at + 1..]);
        if let Ok(root) = dump::open(&damaged, "a.dump") {
            let _ = Machine::discover_at(&root, &Allowed::everything());
        }
    }
}
