//! The files of a dump: directories by pattern, and the files in each.
//!
//! If a list of cpus does not exist, its mask is read instead. In a pattern, `#` matches a number and `*` anything
//! within one path component.

/// Directories and their files, in dump order. Files that identify an individual machine (serial numbers, `ppin`)
/// are excluded.
pub(super) const FILES: &[(&str, &[&str])] = &[
    ("/proc/sys/kernel", &["hostname", "osrelease", "numa_balancing"]),
    ("/proc/sys/kernel", &["numa_balancing_promote_rate_limit_MBps", "perf_event_paranoid"]),
    ("/proc/sys/vm", &["nr_hugepages", "nr_overcommit_hugepages", "overcommit_memory"]),
    ("/proc/sys/vm", &["swappiness", "zone_reclaim_mode"]),
    ("/proc/self", &["status", "cgroup", "mountinfo", "auxv"]),
    ("/proc", &["meminfo", "cpuinfo", "vmstat"]),
    ("/sys/devices/system/cpu", &["possible", "present", "online", "offline", "isolated"]),
    ("/sys/devices/system/cpu/smt", &["active", "control"]),
    ("/sys/devices/system/cpu/intel_pstate", &["status", "no_turbo"]),
    ("/sys/devices/cpu_*", &["cpus"]),
    ("/sys/devices/system/cpu/cpu#", &["online", "cpu_capacity"]),
    ("/sys/devices/system/cpu/cpu#/topology", TOPOLOGY),
    ("/sys/devices/system/cpu/cpu#/cache/index#", CACHE),
    ("/sys/devices/system/cpu/cpu#/cpufreq", &["scaling_driver", "scaling_governor"]),
    ("/sys/devices/system/cpu/cpu#/cpufreq", &["cpuinfo_max_freq", "base_frequency"]),
    ("/sys/devices/system/cpu/cpu#/cpufreq", &["energy_performance_preference"]),
    ("/sys/devices/system/node", &["possible", "online", "has_cpu", "has_memory"]),
    ("/sys/devices/system/node", &["has_normal_memory", "has_generic_initiator"]),
    ("/sys/devices/system/node/node#", &["cpulist", "distance", "meminfo", "numastat"]),
    ("/sys/devices/system/node/node#/hugepages/hugepages-*", HUGE_PAGES),
    ("/sys/devices/system/node/node#/access#/initiators", ACCESS),
    ("/sys/devices/system/node/node#/memory_side_cache/index#", SIDE_CACHE),
    ("/sys/devices/virtual/memory_tiering/memory_tier#", &["nodelist"]),
    ("/sys/kernel/mm/hugepages/hugepages-*", HUGE_PAGES),
    ("/sys/kernel/mm/transparent_hugepage", &["enabled", "defrag", "shmem_enabled"]),
    ("/sys/kernel/mm/transparent_hugepage", &["hpage_pmd_size", "use_zero_page"]),
    ("/sys/kernel/mm/transparent_hugepage/khugepaged", &["defrag"]),
    ("/sys/kernel/mm/numa", &["demotion_enabled"]),
    ("/sys/kernel/mm/mempolicy/weighted_interleave", &["node#"]),
];

const TOPOLOGY: &[&str] = &[
    "physical_package_id",
    "die_id",
    "cluster_id",
    "core_id",
    "core_cpus_list",
    "thread_siblings_list",
    "cluster_cpus_list",
    "die_cpus_list",
    "package_cpus_list",
    "core_siblings_list",
];

const CACHE: &[&str] = &[
    "level",
    "type",
    "size",
    "shared_cpu_list",
    "coherency_line_size",
    "ways_of_associativity",
    "number_of_sets",
];

const HUGE_PAGES: &[&str] = &["nr_hugepages", "free_hugepages", "surplus_hugepages"];

const ACCESS: &[&str] = &["read_latency", "write_latency", "read_bandwidth", "write_bandwidth"];

const SIDE_CACHE: &[&str] = &["size", "line_size", "indexing", "write_policy"];

/// Directories whose mere existence is the information: links to the initiators of an access class, and from a cpu
/// to its node.
pub(super) const DIRECTORIES: &[&str] = &[
    "/sys/devices/system/node/node#/access#/initiators/node#",
    "/sys/devices/system/cpu/cpu#/node#",
];

/// Files of a control group, of both versions.
pub(super) const GROUP: &[&str] = &[
    "memory.max",
    "cpu.max",
    "cpuset.cpus.effective",
    "cpuset.mems.effective",
    "memory.limit_in_bytes",
    "cpu.cfs_quota_us",
    "cpu.cfs_period_us",
    "cpuset.effective_cpus",
    "cpuset.effective_mems",
];
