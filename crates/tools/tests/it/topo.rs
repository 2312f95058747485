//! `topo`: this machine and others, in every format; questions; figures kept from run to run.

use std::fs;
use std::process::Command;

use atoll_testkit::{Need, skip};

use crate::support::{tools, tools_in};

#[test]
fn the_first_screen_is_a_tree_with_distances() {
    let text = tools(&["topo"]).done();
    assert!(text.starts_with("Machine "), "{text}");
    assert!(text.contains("node 0") && text.contains("Distances"), "{text}");
}

#[test]
fn one_json_document_holds_structure_and_facts() {
    let machine = tools(&["topo", "--json"]).json();
    assert_eq!(machine["sources"]["structure"], "discovered");
    let facts = machine["facts"].as_array().unwrap();
    let is_distance = |fact: &serde_json::Value| fact["quantity"] == "distance";
    assert!(facts.iter().any(is_distance), "{facts:?}");
    assert!(facts.iter().all(|fact| !fact["origin"].as_str().unwrap().is_empty()), "{facts:?}");
}

#[test]
fn hardware_is_what_numactl_prints_but_for_the_free_memory() {
    let numactl = match Command::new("numactl").arg("-H").output() {
        Ok(output) => output,
        Err(error) => return skip(Need::Numactl, error),
    };
    let without_free = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.contains(" free: ")).map(str::to_owned).collect()
    };
    let theirs = String::from_utf8(numactl.stdout).unwrap();
    for flags in [&["topo", "-H"][..], &["topo", "--of", "numactl"]] {
        let ours = tools(flags).done();
        assert_eq!(without_free(&ours), without_free(&theirs));
        assert_eq!(ours.matches(" free: ").count(), theirs.matches(" free: ").count());
    }
}

#[test]
fn a_machine_written_to_a_file_is_the_same_machine_when_read() {
    let home = tempfile::tempdir().unwrap();
    for machine in ["nehalem-ex-4", "sapphire-rapids-2-snc4", "cxl-2"] {
        let of =
            |which: &str| tools_in(home.path(), &["topo", "--json", "--machine", which]).json();
        let original = of(machine);
        for file in ["out.toml", "out.xml"] {
            tools_in(home.path(), &["topo", "-m", machine, "-o", file]).done();
            assert_eq!(of(file), original, "{machine} as {file}");
        }
    }
}

#[test]
fn a_dump_of_this_machine_is_this_machine_elsewhere() {
    let home = tempfile::tempdir().unwrap();
    tools_in(home.path(), &["topo", "-o", "here.dump"]).done();
    let here = tools_in(home.path(), &["topo", "--json"]).json();
    let there = tools_in(home.path(), &["topo", "--json", "-m", "here.dump"]).json();
    for key in ["cpus", "cores", "domains", "caches", "distances", "packages"] {
        assert_eq!(here[key], there[key], "{key}");
    }
    let hardware = tools_in(home.path(), &["topo", "-H", "-m", "here.dump"]).done();
    assert!(hardware.starts_with("available: "), "{hardware}");
    tools_in(home.path(), &["topo", "check", "-m", "here.dump"]).done();
}

#[test]
fn every_suffix_has_its_format_and_an_unknown_one_is_refused() {
    let home = tempfile::tempdir().unwrap();
    for (file, start) in
        [("m.svg", "<?xml"), ("m.xml", "<?xml"), ("m.json", "{"), ("m.dump", "atoll-dump")]
    {
        tools_in(home.path(), &["topo", "-o", file]).done();
        let text = fs::read_to_string(home.path().join(file)).unwrap();
        assert!(text.starts_with(start), "{file}: {text}");
    }
    let error = tools_in(home.path(), &["topo", "-o", "m.pdf"]).failed(2);
    assert!(error.contains("m.pdf") && error.contains(".svg"), "{error}");
    assert!(tools(&["topo", "--json", "-H"]).failed(2).contains("--json and another format"));
    assert!(tools(&["topo", "-H", "check"]).failed(2).contains("belong to 'topo' itself"));
}

#[test]
fn a_machine_that_cannot_be_read_is_named_with_its_line() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("bad.toml"), "name = \"x\"\n\n[[node]]\nid = -1\n").unwrap();
    let error = tools_in(home.path(), &["topo", "-m", "bad.toml"]).failed(125);
    assert!(error.contains("bad.toml:4"), "{error}");
    let error = tools(&["topo", "-m", "symas-9"]).failed(125);
    assert!(error.contains("symas-8"), "{error}");
    let error = tools(&["topo", "--synthetic", "node:x"]).failed(125);
    assert!(error.contains("an example is"), "{error}");
}

#[test]
fn hwlocs_variable_names_a_machine_too() {
    let home = tempfile::tempdir().unwrap();
    tools_in(home.path(), &["topo", "-m", "shanghai-4", "-o", "m.xml"]).done();
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll-tools"));
    command.arg("topo").arg("--json").env("HWLOC_XMLFILE", home.path().join("m.xml"));
    let machine: serde_json::Value =
        serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    assert_eq!(machine["nodes"].as_array().unwrap().len(), 4);
    let error = String::from_utf8(command.arg("measure").output().unwrap().stderr).unwrap();
    assert!(error.contains("only the machine this runs on"), "{error}");
}

#[test]
fn questions_are_answered_on_any_machine() {
    let route = tools(&["topo", "route", "0", "3", "-m", "intel-4-square", "--json"]).json();
    assert_eq!(route["hops"], 2, "{route}");
    let near = tools(&["topo", "nearest", "0=1,3=9", "-m", "symas-8", "--json"]).json();
    assert_eq!(near["node"], 3, "{near}");
    let best =
        tools(&["topo", "best-cores", "8", "--pages", "2=5", "-m", "symas-8", "--json"]).json();
    assert_eq!(best["cpus"], "16-23", "{best}");
    let free = ["topo", "nearest", "3", "--cores", "2", "--free", "0-9,24", "-m", "symas-8"];
    assert!(tools(&free).done().starts_with("node 1"), "{:?}", tools(&free));
    let error = tools(&["topo", "nearest", "9", "-m", "symas-8"]).failed(4);
    assert!(error.contains("node 9"), "{error}");
    let error = tools(&["topo", "route", "0", "1", "--synthetic", "node:2 core:2"]).failed(4);
    assert!(error.contains("links"), "{error}");
}

#[test]
fn all_shipped_machines_are_listed_and_open() {
    let machines = tools(&["topo", "machines", "--json"]).json();
    let names: Vec<&str> =
        machines.as_array().unwrap().iter().map(|m| m["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"westmere-ex-4"), "{names:?}");
    for name in names {
        let text = tools(&["topo", "-m", name]).done();
        assert!(text.contains("(declared)") || text.contains("(assumed)"), "{text}");
    }
}

#[test]
fn measured_figures_are_kept_and_later_commands_show_them() {
    let home = tempfile::tempdir().unwrap();
    let measure = ["topo", "measure", "--quick", "--parts", "latency", "--runs", "1"];
    let measured = ["topo", "facts", "--source", "measured", "--json"];
    for not_kept in [&["--json", "--no-save"][..], &["--json", "--buffer", "4MiB"]] {
        let report = tools_in(home.path(), &[&measure[..], not_kept].concat()).json();
        assert!(!report["facts"].as_array().unwrap().is_empty(), "{report}");
        assert_eq!(tools_in(home.path(), &measured).json(), serde_json::json!([]));
    }
    tools_in(home.path(), &measure).done();
    let kept = tools_in(home.path(), &measured).json();
    assert_eq!(kept[0]["quantity"], "latency", "{kept}");
    let tree = tools_in(home.path(), &["topo"]).done();
    assert!(tree.contains("(measured)"), "{tree}");
    for file in ["m.toml", "m.xml"] {
        tools_in(home.path(), &["topo", "-o", file]).done();
        let again = tools_in(home.path(), &[&measured[..], &["-m", file]].concat()).json();
        assert_eq!(again[0]["value"], kept[0]["value"], "{file}");
    }
}

#[test]
fn a_buffer_that_no_node_holds_is_refused_and_nothing_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let error = tools_in(home.path(), &["topo", "measure", "--buffer", "9999T"]).failed(2);
    assert!(error.contains("largest node"), "{error}");
    assert!(!home.path().join(".local").exists());
}

#[test]
fn without_a_home_the_machine_is_shown_and_figures_cannot_be_kept() {
    let homeless = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll-tools"));
        for name in ["HOME", "XDG_DATA_HOME", "ATOLL_DATA", "HWLOC_XMLFILE"] {
            command.env_remove(name);
        }
        let output = command.arg("topo").args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(homeless(&[]), (Some(0), String::new()));
    let flags = ["measure", "--quick", "--parts", "latency", "--runs", "1"];
    let (code, error) = homeless(&flags);
    assert!(code == Some(125) && error.contains("set ATOLL_DATA"), "{code:?} {error}");
}

#[test]
fn a_damaged_store_is_reported_and_the_machine_is_shown_anyway() {
    let home = tempfile::tempdir().unwrap();
    let measure = ["topo", "measure", "--quick", "--parts", "latency", "--runs", "1"];
    tools_in(home.path(), &measure).done();
    let store = home.path().join(".local/share/atoll/machines");
    let mut files = fs::read_dir(store).unwrap().map(|file| file.unwrap().path());
    let file = files.find(|file| file.extension().is_some_and(|it| it == "toml")).unwrap();
    fs::write(&file, "name = ").unwrap();
    let ran = tools_in(home.path(), &["topo"]);
    assert!(ran.err.contains(file.file_name().unwrap().to_str().unwrap()), "{ran:?}");
    assert!(ran.done().starts_with("Machine "));
}

#[test]
fn man_pages_and_completions_know_every_command() {
    let home = tempfile::tempdir().unwrap();
    tools_in(home.path(), &["man", "pages"]).done();
    for page in ["atoll-tools.1", "atoll-tools-run.1", "atoll-tools-topo-measure.1"] {
        assert!(home.path().join("pages").join(page).exists(), "{page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let text = tools(&["completions", shell]).done();
        assert!(text.contains("best-cores") && text.contains("cpunodebind"), "{shell}");
    }
}

#[test]
fn a_machine_file_may_be_a_pipe() {
    let home = tempfile::tempdir().unwrap();
    tools_in(home.path(), &["topo", "-o", "here.dump"]).done();
    tools_in(home.path(), &["topo", "-m", "symas-8", "-o", "symas.toml"]).done();
    let binary = env!("CARGO_BIN_EXE_atoll-tools");
    for (file, nodes) in [("here.dump", 1..), ("symas.toml", 8..)] {
        let line = format!("'{binary}' topo --json --machine <(cat {file})");
        let out = Command::new("bash").args(["-c", &line]).current_dir(home.path()).output();
        let out = out.unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out.stdout)
            .unwrap_or_else(|_| panic!("{file}: {}", String::from_utf8_lossy(&out.stderr)));
        assert!(nodes.contains(&json["nodes"].as_array().unwrap().len()), "{file}");
    }
}

#[test]
fn names_from_a_file_do_not_steer_the_terminal() {
    let home = tempfile::tempdir().unwrap();
    let machine = "name = \"\\u001b[31mred\"\n[[node]]\nid = 0\ncores = 1\nmemory = \"1GiB\"\n";
    fs::write(home.path().join("red.toml"), machine).unwrap();
    for of in ["tree", "ascii", "svg", "xml", "toml", "json"] {
        let text = tools_in(home.path(), &["topo", "--of", of, "--machine", "red.toml"]).done();
        assert!(text.contains("[31mred") && !text.contains('\u{1b}'), "{of}: {text}");
    }
}

#[test]
fn missing_hardware_ends_in_4_and_no_cores_at_all_in_2() {
    assert!(tools(&["topo", "nearest", "99"]).failed(4).contains("node 99 does not exist"));
    assert!(tools(&["topo", "nearest", "0", "--cores", "99999"]).failed(4).contains("99999 cores"));
    assert!(tools(&["topo", "best-cores", "99999"]).failed(4).contains("99999 cores"));
    assert!(tools(&["topo", "best-cores", "0"]).failed(2).contains("from 1 on"));
}
