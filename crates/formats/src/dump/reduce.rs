//! Reduces files before they go into a dump: drops what is irrelevant to the machine (addresses, mounts, hundreds of
//! counters) and what is private (the host name).

/// Lines of `/proc/cpuinfo` that identify a processor on x86, Arm and POWER.
const CPUINFO: &[&str] = &[
    "processor",
    "vendor_id",
    "cpu family",
    "model",
    "model name",
    "stepping",
    "cpu",
    "revision",
    "machine",
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
    "CPU revision",
];

/// Lines of `/proc/self/status` that describe the process's permissions.
const STATUS: &[&str] =
    &["CapEff", "CapBnd", "NoNewPrivs", "Seccomp", "Cpus_allowed_list", "Mems_allowed_list"];

/// Prefixes of the lines of `/proc/vmstat` about nodes, migration and huge pages.
const VMSTAT: &[&str] =
    &["numa_", "pgmigrate_", "pgdemote_", "pgpromote_", "thp_fault_", "nr_free_pages"];

/// Key of the page size in the auxiliary vector (`AT_PAGESZ`); key 0 ends it.
const AT_PAGESZ: u64 = 6;

/// The part of a file that a dump holds; `name` replaces the host name.
pub(super) fn reduce(file: &str, contents: Vec<u8>, name: &str) -> Vec<u8> {
    match file {
        "/proc/sys/kernel/hostname" => format!("{name}\n").into_bytes(),
        "/proc/self/auxv" => auxv(&contents),
        "/proc/cpuinfo" => cpuinfo(&String::from_utf8_lossy(&contents)),
        "/proc/self/status" => lines(&contents, |line| STATUS.contains(&key(line))),
        "/proc/self/mountinfo" => lines(&contents, |line| line.contains(" - cgroup")),
        "/proc/vmstat" => lines(&contents, |line| VMSTAT.iter().any(|key| line.starts_with(key))),
        _ => contents,
    }
}

fn key(line: &str) -> &str {
    line.split_once(':').map_or(line, |(key, _)| key).trim()
}

fn lines(contents: &[u8], keep: impl Fn(&str) -> bool) -> Vec<u8> {
    let text = String::from_utf8_lossy(contents);
    let kept = text.lines().filter(|line| keep(line)).flat_map(|line| [line, "\n"]);
    kept.collect::<String>().into_bytes()
}

/// Keeps the blank lines between processors, once each.
fn cpuinfo(text: &str) -> Vec<u8> {
    let mut kept = String::new();
    for line in text.lines() {
        let blank = line.trim().is_empty();
        if CPUINFO.contains(&key(line)) || (blank && !kept.is_empty() && !kept.ends_with("\n\n")) {
            kept.extend([line.trim_end(), "\n"]);
        }
    }
    kept.into_bytes()
}

/// Keeps the page size; the other entries are addresses and random bytes of the process.
fn auxv(contents: &[u8]) -> Vec<u8> {
    let (words, _) = contents.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let kept = pairs.iter().filter(|[key, _]| matches!(u64::from_ne_bytes(*key), AT_PAGESZ | 0));
    kept.flatten().flatten().copied().collect()
}
