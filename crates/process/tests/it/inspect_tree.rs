//! A `/proc` written by hand for one process after the other, over the sysfs of a fake machine.

use std::fs;
use std::path::Path;

use atoll_process::inspect::{NodeMap, PageHomes, PagesError, ProcessSource};
use atoll_sys::Root;
use atoll_topology::{Allowed, Machine, NodeId};

/// The tree, which vanishes with it.
pub(crate) struct Tree {
    directory: tempfile::TempDir,
    pub(crate) root: Root,
    pub(crate) machine: Machine,
    pub(crate) nodes: NodeMap,
}

/// A thread as the kernel would show it.
pub(crate) struct FakeThread {
    pub(crate) tid: u32,
    pub(crate) cpu: u32,
    pub(crate) cpus: &'static str,
    pub(crate) nanos: u64,
}

impl Tree {
    pub(crate) fn from_machine(machine: &Machine) -> Self {
        let directory = tempfile::tempdir().unwrap();
        atoll_testkit::machines::write_sysfs(machine, directory.path()).unwrap();
        let root = Root::at(directory.path());
        let machine = Machine::discover_at(&root, &Allowed::everything()).unwrap();
        let nodes = NodeMap::read(&root, &machine);
        Self { directory, root, machine, nodes }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn source<'a>(&'a self, homes: &'a dyn PageHomes) -> ProcessSource<'a> {
        ProcessSource::new(&self.root, homes, &self.machine, &self.nodes)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(name.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A process without memory or threads.
    pub(crate) fn process(&self, pid: u32, name: &str, parent: u32, start: u64) {
        self.write(&format!("/proc/{pid}/stat"), stat(pid, name, parent, start, 0));
        self.write(&format!("/proc/{pid}/task/{pid}/stat"), stat(pid, name, parent, start, 0));
        self.write(&format!("/proc/{pid}/task/{pid}/status"), "Cpus_allowed_list:\t0\n");
        self.write(&format!("/proc/{pid}/comm"), format!("{name}\n"));
        self.write(&format!("/proc/{pid}/cmdline"), "");
        self.status(pid, "");
    }

    /// Lines of `status` in addition to those that every process has.
    pub(crate) fn status(&self, pid: u32, lines: &str) {
        let text = format!("Name:\tx\nUid:\t7\t7\t7\t7\nThreads:\t1\n{lines}");
        self.write(&format!("/proc/{pid}/status"), text);
    }

    pub(crate) fn thread(&self, pid: u32, thread: &FakeThread) {
        let FakeThread { tid, cpu, cpus, nanos } = thread;
        let directory = format!("/proc/{pid}/task/{tid}");
        let (name, start) = if *tid == pid { ("server", 77) } else { ("worker", 78) };
        self.write(&format!("{directory}/stat"), stat(*tid, name, 1, start, *cpu));
        let status = format!(
            "Cpus_allowed_list:\t{cpus}\nvoluntary_ctxt_switches:\t11\n\
             nonvoluntary_ctxt_switches:\t12\n"
        );
        self.write(&format!("{directory}/status"), status);
        self.write(&format!("{directory}/schedstat"), format!("{nanos} 0 {}\n", nanos + 1));
        let sched = "worker (1, #threads: 1)\n---\nse.nr_migrations    :   13\n\
                     numa_pages_migrated :  14\nnuma_preferred_nid :  -1\n";
        self.write(&format!("{directory}/sched"), sched);
    }
}

fn stat(pid: u32, name: &str, parent: u32, start: u64, cpu: u32) -> String {
    let mut fields = vec!["0".to_owned(); 49];
    fields[0] = parent.to_string();
    fields[22 - 4] = start.to_string();
    fields[39 - 4] = cpu.to_string();
    format!("{pid} ({name}) S {}\n", fields.join(" "))
}

/// Homes that a test says, the same in every process.
pub(crate) struct Homes<F>(pub(crate) F);

impl<F: Fn(u64) -> Option<u32>> PageHomes for Homes<F> {
    fn homes(&self, _: u32, addresses: &[u64]) -> Result<Vec<Option<NodeId>>, PagesError> {
        Ok(addresses.iter().map(|address| (self.0)(*address).map(NodeId)).collect())
    }
}

/// Homes that a test says of each process and address, or why not.
pub(crate) struct HomesOf<F>(pub(crate) F);

impl<F: Fn(u32, u64) -> Result<Option<u32>, PagesError>> PageHomes for HomesOf<F> {
    fn homes(&self, pid: u32, addresses: &[u64]) -> Result<Vec<Option<NodeId>>, PagesError> {
        let home = |address: &u64| Ok((self.0)(pid, *address)?.map(NodeId));
        addresses.iter().map(home).collect()
    }
}

/// No right to ask.
pub(crate) struct Forbidden;

impl PageHomes for Forbidden {
    fn homes(&self, _: u32, _: &[u64]) -> Result<Vec<Option<NodeId>>, PagesError> {
        Err(PagesError::Denied)
    }
}
