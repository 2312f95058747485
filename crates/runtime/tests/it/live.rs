use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_placement::{Kernel, LiveKernel};
use atoll_runtime::{Binding, Pin, Runtime, RuntimeOptions, WorkerId};
use atoll_topology::{CpuSet, Domain, DomainId, Machine};

use crate::support::run;

/// The machine the tests run on, as if no two of its cpus shared a cache: then the masks of the
/// groups differ also where all cpus share one.
fn split() -> Arc<Machine> {
    let mut machine = Machine::discover().expect("a machine");
    let domain = |(cpu, number)| {
        let cpu: &atoll_topology::Cpu = cpu;
        let cpus = CpuSet::from_iter([cpu.id]);
        Domain { id: DomainId(number), node: cpu.node, cpus, cache_level: None, cache: None }
    };
    machine.domains = machine.cpus.iter().zip(0..).map(domain).collect();
    for (number, cpu) in (0..).zip(&mut machine.cpus) {
        cpu.domain = DomainId(number);
    }
    Arc::new(machine)
}

fn start(machine: Arc<Machine>, pin: Pin, name: &str) -> Runtime {
    let kernel: Arc<dyn Kernel> = Arc::new(LiveKernel::new());
    let options = RuntimeOptions { pin, name: name.to_owned(), ..RuntimeOptions::default() };
    Runtime::start(machine, kernel, options).expect("the runtime starts")
}

fn field(status: &str, name: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("a line of that name").trim().to_owned()
}

/// Name and `Cpus_allowed_list` of every thread of this process whose name starts so, by number.
fn threads(prefix: &str) -> BTreeMap<u32, (String, CpuSet)> {
    let mut threads = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").expect("procfs") {
        let path = task.expect("a thread").path();
        // A thread of another test may end between the listing and here.
        let Ok(status) = std::fs::read_to_string(path.join("status")) else { continue };
        let name = field(&status, "Name");
        if name.starts_with(prefix) {
            let cpus = CpuSet::parse(&field(&status, "Cpus_allowed_list")).expect("a set");
            threads.insert(field(&status, "Pid").parse().expect("a number"), (name, cpus));
        }
    }
    threads
}

fn agree(runtime: &Runtime, prefix: &str) {
    let threads = threads(prefix);
    for worker in runtime.workers() {
        let (name, allowed) = threads.get(&worker.thread).expect("a thread of this process");
        assert_eq!(*name, format!("{prefix}-n{}d{}", worker.node, worker.domain));
        match worker.binding {
            Binding::Bound { cpus, cpu } => {
                assert_eq!(*allowed, cpus);
                assert_eq!(cpus, worker.cpus);
                assert!(cpus.contains(cpu));
            }
            // Some sandboxes forbid the call: then the report must not claim otherwise.
            other => assert_ne!(*allowed, worker.cpus, "{other}"),
        }
    }
}

#[test]
fn procfs_agrees_with_what_workers_bound_to_domains_say() {
    let runtime = start(split(), Pin::Node, "dom");
    let groups = runtime.pools().iter().map(|pool| pool.groups().len()).sum::<usize>();
    assert_eq!(groups, runtime.machine().cpus.len());
    agree(&runtime, "dom");
}

#[test]
fn procfs_agrees_with_what_workers_bound_to_cpus_say() {
    let machine = Arc::new(Machine::discover().expect("a machine"));
    let runtime = start(machine, Pin::Cpu, "cpu");
    assert!(runtime.workers().iter().all(|worker| worker.cpus.len() == 1));
    agree(&runtime, "cpu");
}

#[test]
fn blocking_threads_inherit_the_mask_of_their_group() {
    let runtime = start(split(), Pin::Node, "blk");
    let last = WorkerId(runtime.worker_count() as u32 - 1);
    let mask = runtime.handle_of(last).spawn_blocking(|| {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("procfs");
        CpuSet::parse(&field(&status, "Cpus_allowed_list")).expect("a set")
    });
    let mask = run(&runtime, mask).expect("it ran");
    let worker = &runtime.workers()[last.index()];
    assert_eq!(mask == worker.cpus, worker.binding.is_bound());
}

#[test]
fn the_thread_that_starts_a_runtime_stays_free() {
    let kernel = LiveKernel::new();
    let before = kernel.thread_cpus().expect("a mask");
    let runtime = start(split(), Pin::Cpu, "free");
    runtime.block_on(async {});
    assert_eq!(kernel.thread_cpus().expect("a mask"), before);
}
