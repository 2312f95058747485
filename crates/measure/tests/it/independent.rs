//! The independent program and the library both run and give plausible figures. How well they agree depends on the
//! load of the machine and can only be checked on a quiet one.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use atoll_measure::{BUFFER_MIN, MeasureOptions, MeasurementKind, measure};
use atoll_placement::{Kernel, LiveKernel};
use atoll_testkit::{Need, skip};
use atoll_topology::{Machine, Quantity};

use crate::support::{brief, facts_of};

/// Builds and runs the program. Returns None without a C compiler.
fn independent(cpu: u32) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("latency");
    // At run time: checkouts may share a target directory.
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    let source = Path::new(&folder).join("independent/latency.c");
    let mut cc = Command::new("cc");
    cc.args(["-O3", "-pthread", "-Wall", "-Werror", "-o"]).arg(&program).arg(source);
    let compiled = cc.output().map_err(|error| skip(Need::Compiler, error)).ok()?;
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let megabytes = (BUFFER_MIN.0 >> 20).to_string();
    let cpu = cpu.to_string();
    let run = Command::new(program).args([&megabytes, "1", &cpu, &cpu]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    Some(String::from_utf8(run.stdout).unwrap())
}

fn figure(output: &str, name: &str) -> f64 {
    let line = output.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn the_independent_program_and_the_library_both_give_figures() {
    let machine = Arc::new(Machine::discover().unwrap());
    let Some(output) = independent(machine.cpus[0].id.0) else { return };
    let kernel: Arc<dyn Kernel> = Arc::new(LiveKernel::new());
    let options: MeasureOptions = brief(&[MeasurementKind::Latency, MeasurementKind::Bandwidth]);
    let report = measure(&machine, &kernel, &options, &mut |_| ()).unwrap();
    for (name, quantity) in
        [("latency_ns", Quantity::Latency), ("read_gb_s", Quantity::ReadBandwidth)]
    {
        assert!(figure(&output, name) > 0.0, "{output}");
        assert!(!facts_of(&report, quantity).is_empty());
    }
}
