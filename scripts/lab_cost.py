#!/usr/bin/env python3
"""What counting costs in the lab: the same loads with and without it.

Compiles scripts/lab_cost.c and runs it by `atoll-tools lab run`, counting nothing, all of user space
and regions in turn, round by round. Prints nanoseconds of each (median, least, most) and how many
times the uncounted run of the same round it takes (median, least, most); each round goes to stderr as
it ends. The plugin lies beside the command that is named. Run it on an idle machine; the load is
printed with the figures:

    scripts/lab_cost.py [--rounds 5] [--megabytes 64] [--machine westmere-ex-4] [--tools atoll-tools]
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

SCRIPTS = pathlib.Path(__file__).resolve().parent
COUNTS = ["off", "user", "region"]


def compiled(directory):
    program = pathlib.Path(directory) / "lab_cost"
    include = SCRIPTS.parent / "crates/marker/include"
    command = ["cc", "-O2", "-I", include, "-o", program, SCRIPTS / "lab_cost.c"]
    subprocess.run(command, check=True)
    return program


def run(arguments, count, program):
    """Nanoseconds of a load by pattern."""
    command = [arguments.tools, "lab", "run", "--machine", arguments.machine, "--cpus", "1"]
    command += ["--count", count, "--", program, str(arguments.megabytes)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"lab run --count {count} failed:\n{done.stderr}")
    lines = [line.split() for line in done.stdout.splitlines()]
    return {words[0]: float(words[1]) for words in lines if len(words) == 2}


def spread(values, unit):
    median, least, most = statistics.median(values), min(values), max(values)
    return f"{median:9.2f}{unit} ({least:.2f} to {most:.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--machine", default="westmere-ex-4")
    parser.add_argument("--tools", default="atoll-tools")
    arguments = parser.parse_args()
    rounds = []
    with tempfile.TemporaryDirectory() as directory:
        program = compiled(directory)
        for _ in range(arguments.rounds):
            rounds.append({count: run(arguments, count, program) for count in COUNTS})
            print(f"round {len(rounds)}: {rounds[-1]}", file=sys.stderr, flush=True)
    load = os.getloadavg()[0]
    print(f"{arguments.machine}, {arguments.megabytes} MiB, {len(rounds)} rounds, load {load:.1f}")
    for pattern in rounds[0]["off"]:
        for count in COUNTS:
            line = spread([each[count][pattern] for each in rounds], " ns")
            if count != "off":
                times = [each[count][pattern] / each["off"][pattern] for each in rounds]
                line += spread(times, "x")
            print(f"{pattern:12}{count:8}{line}")


if __name__ == "__main__":
    main()
