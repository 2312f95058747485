#!/usr/bin/env python3
"""Writes the machines of the corpus that no emulator shows, in the form that such machines have.

    written.py DIRECTORY

One <shape>.dump each, listed in the README.md of the corpus. Sizes and distances are plausible, neither
measured nor copied from a machine.
"""

import struct
import sys
from pathlib import Path

CPU = "/sys/devices/system/cpu"
NODE = "/sys/devices/system/node"
V2 = "31 24 0:28 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime - cgroup2 cgroup2 rw"


def ranges(numbers):
    """Numbers in the kernel's list notation."""
    parts, numbers = [], sorted(numbers)
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def braces(numbers):
    text = ranges(numbers)
    return text if text.isdigit() else f"{{{text}}}"


class Machine:
    def __init__(self, name, page=4096):
        self.files = {}
        self.put("/proc/sys/kernel/hostname", name)
        self.name = name
        self.page = page

    def put(self, path, *lines):
        self.files[path] = [str(line) for line in lines]

    def cpu(self, cpus, path, value):
        self.put(f"{CPU}/cpu{braces(cpus)}/{path}", value)

    def cpus(self, online, possible=None):
        self.online = sorted(online)
        possible = sorted(possible or online)
        for name in ("possible", "present"):
            self.put(f"{CPU}/{name}", ranges(possible))
        self.put(f"{CPU}/online", ranges(online))
        self.put(f"{CPU}/offline", ranges(set(possible) - set(online)))

    def package(self, number, cpus, names=("package_cpus_list", "core_siblings_list")):
        self.cpu(cpus, "topology/physical_package_id", number)
        for name in names:
            self.cpu(cpus, f"topology/{name}", ranges(cpus))

    def core(self, number, cpus, names=("core_cpus_list", "thread_siblings_list")):
        self.cpu(cpus, "topology/core_id", number)
        for name in names:
            self.cpu(cpus, f"topology/{name}", ranges(cpus))

    def cache(self, index, level, kind, kib, cpus, ways=None, line=64):
        """A cache shared by all these cpus."""
        self.cpu(cpus, f"cache/index{index}/shared_cpu_list", ranges(cpus))
        self.kinds = getattr(self, "kinds", {})
        key = (index, level, kind, kib, ways, line)
        self.kinds.setdefault(key, []).extend(cpus)

    def node(self, number, cpus, mib, free, distance=None):
        self.put(f"{NODE}/node{number}/cpulist", ranges(cpus))
        if distance:
            self.put(f"{NODE}/node{number}/distance", " ".join(map(str, distance)))
        self.put(
            f"{NODE}/node{number}/meminfo",
            *(f"Node {number} {key + ':':<15}{mib * 1024:>9} kB" for key, mib in
              (("MemTotal", mib), ("MemFree", free), ("MemUsed", mib - free))),
        )
        self.nodes = getattr(self, "nodes", []) + [(number, cpus, mib, free)]

    def process(self, cpus=None, nodes=None, cgroup="0::/", mounts=(V2,)):
        with_memory = [number for number, _, mib, _ in getattr(self, "nodes", []) if mib] or [0]
        self.put(
            "/proc/self/status",
            f"Cpus_allowed_list:\t{ranges(cpus or self.online)}",
            f"Mems_allowed_list:\t{ranges(nodes or with_memory)}",
        )
        self.put("/proc/self/cgroup", *([cgroup] if isinstance(cgroup, str) else cgroup))
        self.put("/proc/self/mountinfo", *mounts)

    def memory(self, mib, free):
        self.put("/proc/meminfo", f"MemTotal:   {mib * 1024:>12} kB", f"MemFree:    {free * 1024:>12} kB")

    def cpuinfo(self, *lines):
        blocks = [[f"processor\t: {cpu}", *lines, ""] for cpu in self.online]
        self.put("/proc/cpuinfo", *(line for block in blocks for line in block))

    def huge_pages(self, size, enabled="always [madvise] never"):
        self.put("/sys/kernel/mm/transparent_hugepage/enabled", enabled)
        self.put("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", size)

    def text(self):
        for (index, level, kind, kib, ways, line), cpus in getattr(self, "kinds", {}).items():
            directory = f"cache/index{index}"
            self.cpu(cpus, f"{directory}/level", level)
            self.cpu(cpus, f"{directory}/type", kind)
            self.cpu(cpus, f"{directory}/size", f"{kib}K")
            self.cpu(cpus, f"{directory}/coherency_line_size", line)
            if ways:
                self.cpu(cpus, f"{directory}/ways_of_associativity", ways)
        nodes = getattr(self, "nodes", [])
        if nodes:
            for name in ("possible", "online"):
                self.put(f"{NODE}/{name}", ranges(number for number, *_ in nodes))
            self.put(f"{NODE}/has_cpu", ranges(number for number, cpus, *_ in nodes if cpus))
            self.put(f"{NODE}/has_memory", ranges(number for number, _, mib, _ in nodes if mib))
            self.memory(sum(mib for *_, mib, _ in nodes), sum(free for *_, free in nodes))
        vector = struct.pack("<4Q", 6, self.page, 0, 0).hex()
        lines = ["atoll-dump 1"]
        for path, contents in self.files.items():
            if len(contents) == 1:
                lines.append(f"{path} = {contents[0]}".rstrip())
            else:
                lines += [f"{path} :", *(f"| {line}" for line in contents)]
        return "\n".join([*lines, f"/proc/self/auxv hex {vector}", "end", ""])


def x86(machine, model, vendor="GenuineIntel"):
    machine.cpuinfo(f"vendor_id\t: {vendor}", f"model name\t: {model}")
    machine.huge_pages(2 << 20)


def power9_gpu_memory():
    """Two packages, SMT4, nodes 0 and 8; the memory of four GPUs as nodes 252 to 255."""
    machine = Machine("power9-gpu-memory", page=65536)
    machine.cpus(range(32))
    for package in range(2):
        number, cpus = package * 8, list(range(package * 16, package * 16 + 16))
        machine.package(number, cpus)
        for core in range(4):
            threads = cpus[core * 4:core * 4 + 4]
            machine.core(number * 4 + core * 4, threads)
            machine.cache(0, 1, "Data", 32, threads, 8, 128)
            machine.cache(1, 1, "Instruction", 32, threads, 8, 128)
        for pair in range(2):
            threads = cpus[pair * 8:pair * 8 + 8]
            machine.cache(2, 2, "Unified", 512, threads, 8, 128)
            machine.cache(3, 3, "Unified", 10240, threads, 20, 128)
    row = lambda index: [10 if to == index else 40 if index < 2 and to < 2 else 80 for to in range(6)]
    machine.node(0, range(16), 261664, 250000, row(0))
    machine.node(8, range(16, 32), 261759, 255000, row(1))
    for index, number in enumerate((252, 253, 254, 255)):
        machine.node(number, [], 16128, 16126, row(index + 2))
    machine.cpuinfo("cpu\t\t: POWER9, altivec supported", "clock\t\t: 3800.000000MHz", "revision\t: 2.2 (pvr 004e 1202)")
    machine.huge_pages(2 << 20)
    machine.process()
    return machine


def power_empty_node_0():
    """A logical partition whose resources all lie on node 1; node 0 is online and empty."""
    machine = Machine("power-empty-node-0", page=65536)
    machine.cpus(range(8), range(16))
    machine.package(-1, range(8))
    machine.core(0, range(8))
    machine.cache(0, 1, "Data", 32, list(range(8)), 8, 128)
    machine.cache(1, 2, "Unified", 1024, list(range(8)), 8, 128)
    machine.cache(2, 3, "Unified", 4096, list(range(8)), 16, 128)
    machine.node(0, [], 0, 0, [10, 40])
    machine.node(1, range(8), 32768, 20000, [40, 10])
    machine.cpuinfo("cpu\t\t: POWER10 (architected), altivec supported", "revision\t: 2.0 (pvr 0080 0200)")
    machine.process()
    return machine


def arm_two_packages():
    """Two packages of two nodes; clusters of four cores share what the kernel does not call a cache."""
    machine = Machine("arm-two-packages", page=65536)
    machine.cpus(range(32))
    for package in range(2):
        machine.package(36 + package * 3000, range(package * 16, package * 16 + 16))
    rows = [[10, 12, 20, 22], [12, 10, 22, 24], [20, 22, 10, 12], [22, 24, 12, 10]]
    for node in range(4):
        cpus = list(range(node * 8, node * 8 + 8))
        for cluster in (cpus[:4], cpus[4:]):
            machine.cpu(cluster, "topology/cluster_cpus_list", ranges(cluster))
        for cpu in cpus:
            machine.core(cpu, [cpu])
            machine.cache(0, 1, "Data", 64, [cpu], 4)
            machine.cache(1, 1, "Instruction", 64, [cpu], 4)
            machine.cache(2, 2, "Unified", 512, [cpu], 8)
        machine.cache(3, 3, "Unified", 32768, cpus, 15, 128)
        machine.node(node, cpus, 65536, 60000, rows[node])
    machine.cpuinfo("CPU implementer\t: 0x48", "CPU architecture: 8", "CPU variant\t: 0x1", "CPU part\t: 0xd01", "CPU revision\t: 0")
    machine.huge_pages(512 << 20, "[always] madvise never")
    machine.process()
    return machine


def arm_without_last_level():
    """The system-level cache is not described: the last cache of a core is its own."""
    machine = Machine("arm-without-last-level")
    machine.cpus(range(8))
    machine.package(0, range(8))
    for cpu in range(8):
        machine.core(cpu, [cpu])
        machine.cache(0, 1, "Data", 64, [cpu], 4)
        machine.cache(1, 1, "Instruction", 64, [cpu], 4)
        machine.cache(2, 2, "Unified", 1024, [cpu], 8)
    machine.node(0, range(8), 131072, 120000, [10])
    machine.cpuinfo("CPU implementer\t: 0x41", "CPU architecture: 8", "CPU variant\t: 0x3", "CPU part\t: 0xd0c", "CPU revision\t: 1")
    machine.process()
    return machine


def hybrid():
    """Eight performance cores of two threads, eight efficient cores in two clusters, one L3."""
    machine = Machine("hybrid")
    machine.cpus(range(24))
    machine.package(0, range(24))
    for core in range(8):
        threads = [core * 2, core * 2 + 1]
        machine.core(core * 4, threads)
        machine.cache(0, 1, "Data", 48, threads, 12)
        machine.cache(1, 1, "Instruction", 32, threads, 8)
        machine.cache(2, 2, "Unified", 1280, threads, 10)
    for cpu in range(16, 24):
        machine.core(cpu + 16, [cpu])
        machine.cache(0, 1, "Data", 32, [cpu], 8)
        machine.cache(1, 1, "Instruction", 64, [cpu], 8)
    for first in (16, 20):
        machine.cache(2, 2, "Unified", 2048, list(range(first, first + 4)), 16)
    machine.cache(3, 3, "Unified", 30720, list(range(24)), 12)
    machine.put("/sys/devices/cpu_core/cpus", "0-15")
    machine.put("/sys/devices/cpu_atom/cpus", "16-23")
    machine.node(0, range(24), 64000, 40000, [10])
    x86(machine, "12th Gen Intel(R) Core(TM) i9-12900K")
    machine.process()
    return machine


def hybrid_island():
    """As hybrid, and two low-power cores that the L3 does not serve."""
    machine = Machine("hybrid-island")
    machine.cpus(range(14))
    machine.package(0, range(14))
    for core in range(2):
        threads = [core * 2, core * 2 + 1]
        machine.core(core, threads)
        machine.cache(0, 1, "Data", 48, threads, 12)
        machine.cache(2, 2, "Unified", 2048, threads, 16)
    for cpu in range(4, 14):
        machine.core(cpu, [cpu])
        machine.cache(0, 1, "Data", 32, [cpu], 8)
    for group in (range(4, 8), range(8, 12), range(12, 14)):
        machine.cache(2, 2, "Unified", 2048, list(group), 16)
    machine.cache(3, 3, "Unified", 18432, list(range(12)), 12)
    machine.node(0, range(14), 32000, 16000, [10])
    x86(machine, "Intel(R) Core(TM) Ultra 5")
    machine.process()
    return machine


def thousand_cpus():
    """Eight packages of 64 cores × 2 threads, two L3 on each node; second threads numbered last."""
    machine = Machine("1024-cpus")
    machine.cpus(range(1024))
    for package in range(8):
        first = list(range(package * 64, package * 64 + 64))
        both = first + [cpu + 512 for cpu in first]
        machine.package(package, both, ["package_cpus_list"])
        for cpu in first:
            threads = [cpu, cpu + 512]
            machine.core(cpu - first[0], threads, ["core_cpus_list"])
            machine.cache(0, 1, "Data", 32, threads, 8)
            machine.cache(1, 2, "Unified", 1024, threads, 8)
        for half in (first[:32], first[32:]):
            machine.cache(2, 3, "Unified", 65536, half + [cpu + 512 for cpu in half], 16)
        row = [10 if to == package else 16 if to // 4 == package // 4 else 32 for to in range(8)]
        machine.node(package, both, 1 << 20, 1000000, row)
    machine.huge_pages(2 << 20)
    machine.process()
    return machine


def l3_as_node():
    """Firmware that makes a node of every L3: two packages of eight nodes."""
    machine = Machine("l3-as-node")
    machine.cpus(range(64))
    for package in range(2):
        machine.package(package, range(package * 32, package * 32 + 32))
    for node in range(16):
        cpus = list(range(node * 4, node * 4 + 4))
        for cpu in cpus:
            machine.core(cpu % 32, [cpu])
            machine.cache(0, 1, "Data", 32, [cpu], 8)
            machine.cache(1, 2, "Unified", 512, [cpu], 8)
        machine.cache(2, 3, "Unified", 16384, cpus, 16)
        near = lambda to: 10 if to == node else 11 if to // 2 == node // 2 else 12 if to // 8 == node // 8 else 32
        machine.node(node, cpus, 16000, 15000, [near(to) for to in range(16)])
    x86(machine, "AMD EPYC 7F52 16-Core Processor", "AuthenticAMD")
    machine.process()
    return machine


def snc4_hbm_flat():
    """Two packages in four clusters each, their on-package memory as nodes 8 to 15 without cpus."""
    machine = Machine("snc4-hbm-flat")
    machine.cpus(range(64))
    for package in range(2):
        cpus = [cpu + thread for thread in (0, 32) for cpu in range(package * 16, package * 16 + 16)]
        machine.package(package, cpus)
        machine.cache(2, 3, "Unified", 115200, cpus, 15)
    for core in range(32):
        machine.core(core % 16, [core, core + 32])
        machine.cache(0, 1, "Data", 48, [core, core + 32], 12)
        machine.cache(1, 2, "Unified", 2048, [core, core + 32], 16)

    def row(node):
        def distance(to):
            if to == node:
                return 10
            base = 12 if to % 8 // 4 == node % 8 // 4 else 21
            return base + (1 if to % 8 == node % 8 else 2) * (to // 8 != node // 8 or to > 7)
        return [distance(to) for to in range(16)]

    for node in range(8):
        first = list(range(node * 4, node * 4 + 4))
        machine.node(node, first + [cpu + 32 for cpu in first], 32000, 30000, row(node))
    for node in range(8, 16):
        machine.node(node, [], 16384, 16380, row(node))
    x86(machine, "Intel(R) Xeon(R) CPU Max 9480")
    machine.process()
    return machine


def sparse_x86():
    """Nodes whose numbers have holes after memory was unplugged; cpu numbers have holes, too."""
    machine = Machine("sparse-node-numbers")
    machine.cpus([0, 1, 4, 5, 12, 13], range(16))
    for node, cpus in ((1, [0, 1]), (4, [4, 5]), (9, [12, 13])):
        machine.package(node, cpus)
        for cpu in cpus:
            machine.core(cpu, [cpu])
            machine.cache(0, 1, "Data", 32, [cpu], 8)
        machine.cache(1, 3, "Unified", 8192, cpus, 16)
    machine.node(1, [0, 1], 8000, 7000, [10, 20, 30])
    machine.node(4, [4, 5], 4000, 3000, [20, 10, 20])
    machine.node(9, [12, 13], 8000, 6000, [30, 20, 10])
    x86(machine, "Intel(R) Xeon(R) Platinum")
    machine.process()
    return machine


def kernel_without_numa():
    """CONFIG_NUMA is off: no /sys/devices/system/node at all."""
    machine = Machine("kernel-without-numa")
    machine.cpus(range(4))
    machine.package(0, range(4))
    for cpu in range(4):
        machine.core(cpu, [cpu])
        machine.cache(0, 1, "Data", 32, [cpu], 8)
    machine.cache(1, 2, "Unified", 1024, list(range(4)), 16)
    machine.memory(7800, 6100)
    machine.cpuinfo("CPU implementer\t: 0x41", "CPU architecture: 8", "CPU part\t: 0xd08")
    machine.process()
    return machine


def sandbox():
    """A kernel in user space: no caches, no topology, no nodes, no control groups."""
    machine = Machine("sandbox")
    machine.cpus(range(2))
    machine.memory(2048, 1900)
    machine.process(cgroup="0::/", mounts=())
    return machine


def old_kernel_docker():
    """Kernel 3.10: siblings under their old names; a container of version 1 with limits and a cpuset."""
    machine = Machine("old-kernel-docker")
    machine.cpus(range(16))
    for package in range(2):
        cpus = [cpu for cpu in range(16) if cpu % 2 == package]
        machine.package(package, cpus, ["core_siblings_list"])
        machine.cache(2, 3, "Unified", 20480, cpus, 20)
        for cpu in cpus[:4]:
            machine.core(cpu // 2, [cpu, cpu + 8], ["thread_siblings_list"])
            machine.cache(0, 1, "Data", 32, [cpu, cpu + 8], 8)
            machine.cache(1, 2, "Unified", 256, [cpu, cpu + 8], 8)
        machine.node(package, cpus, 65490, 30000, [10, 21] if package == 0 else [21, 10])
    x86(machine, "Intel(R) Xeon(R) CPU E5-2640 v3 @ 2.60GHz")
    group = "/docker/4f2a"
    point = "/sys/fs/cgroup"
    machine.process(
        cpus=[1, 3, 9, 11],
        nodes=[1],
        cgroup=[f"4:memory:{group}", f"3:cpuset:{group}", f"2:cpuacct,cpu:{group}", f"1:name=systemd:{group}"],
        mounts=[
            f"41 30 0:31 {group} {point}/memory ro,nosuid - cgroup cgroup rw,memory",
            f"42 30 0:32 {group} {point}/cpuset ro,nosuid - cgroup cgroup rw,cpuset",
            f"43 30 0:33 {group} {point}/cpuacct,cpu ro,nosuid - cgroup cgroup rw,cpuacct,cpu",
        ],
    )
    machine.put(f"{point}/memory/memory.limit_in_bytes", 8 << 30)
    machine.put(f"{point}/cpuacct,cpu/cpu.cfs_quota_us", 250000)
    machine.put(f"{point}/cpuacct,cpu/cpu.cfs_period_us", 100000)
    return machine


def lxc_container():
    """lxcfs shows a part of the cpus as online and a part of the memory; the nodes are shown whole."""
    machine = Machine("lxc-container")
    machine.cpus([2, 3, 6], range(8))
    for package in range(2):
        cpus = list(range(package * 4, package * 4 + 4))
        machine.package(package, cpus)
        for cpu in cpus:
            machine.core(cpu, [cpu])
            machine.cache(0, 1, "Data", 32, [cpu], 8)
        machine.cache(1, 3, "Unified", 16384, cpus, 16)
        machine.node(package, cpus, 16000, 9000, [10, 20] if package == 0 else [20, 10])
    x86(machine, "AMD EPYC 7313 16-Core Processor", "AuthenticAMD")
    machine.process(cpus=[2, 3, 6])
    machine.put("/sys/fs/cgroup/memory.max", 4 << 30)
    return machine


MACHINES = [
    power9_gpu_memory, power_empty_node_0, arm_two_packages, arm_without_last_level, hybrid, hybrid_island,
    thousand_cpus, l3_as_node, snc4_hbm_flat, sparse_x86, kernel_without_numa, sandbox, old_kernel_docker,
    lxc_container,
]

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for make in MACHINES:
        machine = make()
        Path(sys.argv[1], f"{machine.name}.dump").write_text(machine.text())
