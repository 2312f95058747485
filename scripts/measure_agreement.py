#!/usr/bin/env python3
"""How far `atoll topo measure` and an independent program agree on this machine.

Alternates the two, pair by pair, and prints the ratio of each figure (Atoll / independent): median,
least and most. The independent program is crates/measure/independent/latency.c, compiled here. Run it
on an idle machine:

    scripts/measure_agreement.py [--pairs 7] [--megabytes 256] [--atoll atoll-tools]
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

SOURCE = pathlib.Path(__file__).parent.parent / "crates/measure/independent/latency.c"


def compiled(directory):
    program = pathlib.Path(directory) / "latency"
    flags = ["-O3", "-march=x86-64-v3", "-pthread"]
    subprocess.run(["cc", *flags, "-o", program, SOURCE], check=True)
    return program


def independent(program, megabytes, cpus):
    """Latency and read bandwidth with one thread and with all."""
    figures = {}
    for threads in sorted({1, len(cpus)}):
        command = [program, str(megabytes), "2", cpus[0], *cpus[:threads]]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        lines = dict(line.split()[:2] for line in out.splitlines())
        figures["latency ns"] = float(lines["latency_ns"])
        figures[f"read GB/s, threads {threads}"] = float(lines["read_gb_s"])
    return figures


def atoll(program, megabytes, node):
    command = [program, "topo", "measure", "--parts", "latency,bandwidth", "--json", "--no-save"]
    command += ["--buffer", f"{megabytes}MiB"]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    figures = {}
    for fact in json.loads(run.stdout)["facts"]:
        if fact.get("from") != node or fact.get("to") != node:
            continue
        if fact["quantity"] == "latency":
            figures["latency ns"] = fact["value"]
        if fact["quantity"] == "read_bandwidth":
            figures[f"read GB/s, threads {fact['threads']}"] = fact["value"]
    return figures


def first_node(program):
    """The first node with cpus and memory, and a cpu of each of its cores."""
    run = subprocess.run([program, "topo", "--json"], check=True, capture_output=True, text=True)
    machine = json.loads(run.stdout)
    for node in machine["nodes"]:
        domains = {domain["id"] for domain in machine["domains"] if domain["node"] == node["id"]}
        cores = [core["cpus"] for core in machine["cores"] if core["domain"] in domains]
        if cores and node["memory_bytes"]:
            return node["id"], [core.replace("-", ",").split(",")[0] for core in cores]
    raise SystemExit("no node has both cpus and memory")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--atoll", default="atoll-tools")
    arguments = parser.parse_args()
    node, cpus = first_node(arguments.atoll)
    ratios, pairs = {}, {}
    with tempfile.TemporaryDirectory() as directory:
        program = compiled(directory)
        for _ in range(arguments.pairs):
            ours = atoll(arguments.atoll, arguments.megabytes, node)
            theirs = independent(program, arguments.megabytes, cpus)
            for name in ours.keys() & theirs.keys():
                ratios.setdefault(name, []).append(ours[name] / theirs[name])
                pairs.setdefault(name, []).append((ours[name], theirs[name]))
    print(f"node {node}, {arguments.pairs} alternating pairs, {arguments.megabytes} MiB")
    for name in sorted(ratios):
        ours, theirs = (statistics.median(side) for side in zip(*pairs[name]))
        low, middle, high = min(ratios[name]), statistics.median(ratios[name]), max(ratios[name])
        print(f"{name:22} Atoll {ours:7.1f}  independent {theirs:7.1f}"
              f"  ratio {middle:.2f} ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
