use std::path::Path;
use std::process::{Child, Command};

use crate::support::{atoll_in, command, ended};

/// Spills three million rows, and takes hours to read them back.
const SPILLING: &str = "SELECT sum(u.value % s.v) FROM generate_series(1, 1000000) u CROSS JOIN \
    (SELECT v, row_number() OVER (ORDER BY v % 1013, v) AS r FROM generate_series(1, 3000000) t(v)) s \
    WHERE s.r > 0";

const SIGNALS: [&str; 4] = ["INT", "TERM", "HUP", "KILL"];

/// Waits until the process has a file in the directory open, according to the kernel.
#[track_caller]
fn until_writing(child: &mut Child, directory: &Path) {
    let descriptors = format!("/proc/{}/fd", child.id());
    loop {
        let open = std::fs::read_dir(&descriptors).into_iter().flatten().flatten();
        let mut targets = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        if targets.any(|target| target.starts_with(directory)) {
            return;
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended before it wrote");
        std::thread::yield_now();
    }
}

fn end(child: Child, signal: &str) {
    let kill = format!("kill -{signal} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let code = (signal == "INT").then_some(130);
    assert_eq!(ended(child).code, code, "{signal}");
}

fn names(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).collect()
}

#[test]
fn spill_files_are_gone_whatever_ends_the_process() {
    for signal in SIGNALS {
        let home = tempfile::tempdir().unwrap();
        let spill = home.path().join("spill");
        let mut child = command(home.path())
            .args(["sql", "--memory-limit", "64MiB", "--spill-dir", "spill", "-c", SPILLING])
            .spawn()
            .unwrap();
        until_writing(&mut child, &spill);
        end(child, signal);
        assert!(names(&spill).is_empty(), "{signal}: {:?}", names(&spill));
    }
}

#[test]
fn a_copy_that_is_ended_leaves_the_old_file_and_nothing_else() {
    for signal in SIGNALS {
        let home = tempfile::tempdir().unwrap();
        let out = home.path().join("out");
        std::fs::create_dir(&out).unwrap();
        std::fs::write(out.join("t.csv"), "old").unwrap();
        let copy = "COPY (SELECT * FROM generate_series(1, 100000000000) t(v)) TO 'out/t.csv'";
        let mut child = command(home.path()).args(["sql", "-c", copy]).spawn().unwrap();
        until_writing(&mut child, &out);
        end(child, signal);
        assert_eq!(names(&out), ["t.csv"], "{signal}");
        assert_eq!(std::fs::read_to_string(out.join("t.csv")).unwrap(), "old", "{signal}");
    }
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_written_to() {
    let home = tempfile::tempdir().unwrap();
    let pipe = home.path().join("p.csv");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    let copy = "COPY (SELECT * FROM generate_series(1, 3) t(v)) TO 'p.csv'";
    atoll_in(home.path(), &["sql", "-c", copy], "").done();
    assert_eq!(reader.join().unwrap(), "v\n1\n2\n3\n");
    let shown = atoll_in(home.path(), &["topo", "-o", "/dev/stdout", "--of", "json"], "").done();
    assert!(!shown.is_empty());
}

#[test]
fn a_report_that_cannot_be_written_leaves_the_old_one() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("machine.json");
    std::fs::write(&file, "old").unwrap();
    // Files must stay empty: the write fails after the file was opened.
    let line = "ulimit -f 0; trap '' XFSZ; exec \"$0\" topo -o machine.json";
    let mut limited = Command::new("sh");
    limited.args(["-c", line, env!("CARGO_BIN_EXE_atoll")]).current_dir(home.path());
    let ran = limited.output().unwrap();
    assert!(!ran.status.success());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
    assert_eq!(names(home.path()), ["machine.json"]);
}
