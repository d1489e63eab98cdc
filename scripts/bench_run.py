#!/usr/bin/env python3
"""Times whole runs of the program, and writes the table in crates/batchquad-cli/benches/README.md.

    python3 scripts/bench_run.py             # about two minutes once the program is built
    python3 scripts/bench_run.py --dry-run   # print the table, leave the file alone

Needs nothing but Rust and Python. Wall-clock times: of three runs the fastest, because other work on the machine can only
add to it.
"""

import argparse
import json
import math
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
README = ROOT / "crates" / "batchquad-cli" / "benches" / "README.md"
MARKERS = ("<!-- begin: scripts/bench_run.py -->", "<!-- end: scripts/bench_run.py -->")
PROGRAM = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "batchquad"

# A Gaussian of sd ½ around (½, …, ½): the evidence is known, so the runs can be seen to work and not only to end.
# Each worker notes when it was busy.
SERVER = """\
import json, math, os, sys, time
log = open(f"busy-{os.getpid()}", "w", buffering=1)
for line in sys.stdin:
    begin = time.time()
    question = json.loads(line)
    theta = question["parameters"].values()
    time.sleep(SLEEP)
    value = sum(-2 * (t - 0.5) ** 2 - math.log(0.5 * math.sqrt(2 * math.pi)) for t in theta)
    log.write(f"{begin} {time.time()}\\n")
    print(json.dumps({"id": question["id"], "log_likelihood": value}), flush=True)
"""


def write_problem(place, dim, sleep, run):
    """A problem in a directory of its own; `sleep` is an expression for the seconds of one evaluation."""
    place.mkdir()
    (place / "server.py").write_text(SERVER.replace("SLEEP", sleep))
    lines = [f'[[parameter]]\nname = "p{i}"\nprior = {{ normal = {{ mean = 0, sd = 1 }} }}' for i in range(dim)]
    lines.append(f'[likelihood]\ncommand = [{json.dumps(sys.executable)}, "server.py"]\nmode = "server"\n[run]')
    lines += [f"{key} = {json.dumps(value)}" for key, value in run.items()]
    problem = place / "problem.toml"
    problem.write_text("\n".join(lines) + "\n")
    return problem


def timed(*args):
    """Seconds, peak memory in MiB and what was printed."""
    with tempfile.TemporaryFile() as out:
        begin = time.perf_counter()
        child = subprocess.Popen([PROGRAM, *map(str, args)], stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode()
    if child.returncode != 0:
        sys.exit(f"{args} ended with {child.returncode}\n{text}")
    return seconds, usage.ru_maxrss / 1024, text


def fastest(directory, problem, *args, rounds=3):
    """The fastest of some runs from the beginning, each with a store of its own."""
    runs = [
        timed("run", problem, "--json", "-q", "--store", directory / f"{problem.parent.name}-{i}", *args)
        for i in range(rounds)
    ]
    seconds, _, text = min(runs)
    return seconds, json.loads(text)


def overhead(directory):
    """No time for evaluations: all that is left is ours, and the start of two interpreters."""
    run = {"batch": 8, "max_evaluations": 200, "workers": 2}
    seconds, result = fastest(directory, write_problem(directory / "overhead", 4, "0", run))
    truth = 4 * (-0.1 - 0.5 * math.log(2 * math.pi * 1.25))  # N(½; 0, 1 + ¼) in each dimension
    note = f"log Z {result['log_z']:.3f} ± {result['log_z_sd']:.3f}, truly {truth:.3f}; choosing {result['seconds_choosing']:.2f} s"
    yield "200 evaluations of 0 ms, 4-D, batch 8, 2 servers", f"{seconds:.2f} s ({note})", "< 5 s", seconds < 5


def efficiency(directory):
    """Evaluations of 100 ms against what two workers that never wait would take."""
    run = {"batch": 8, "max_evaluations": 96, "workers": 2}
    seconds, _ = fastest(directory, write_problem(directory / "efficiency", 4, "0.1", run), rounds=2)
    ratio = seconds / (96 * 0.1 / 2)
    yield "96 evaluations of 100 ms on 2 workers", f"{seconds:.2f} s, {ratio:.3f} × the ideal", "≤ 1.10 ×", ratio <= 1.10


def busy(place):
    """For each worker of the last run, when it was busy."""
    return [[tuple(map(float, line.split())) for line in log.open()] for log in place.glob("busy-*")]


def busy_share(place):
    """The share of the workers' time in which they were busy, and how long that was."""
    workers = busy(place)
    # From when all have started until nothing is left to hand out: what comes after is nobody's to fill.
    first, last = max(worker[0][0] for worker in workers), max(worker[-1][0] for worker in workers)
    worked = sum(max(0, min(end, last) - max(begin, first)) for worker in workers for begin, end in worker)
    return worked / (len(workers) * (last - first)), last - first


def schedules(directory):
    """Times spread 1:10, by the seed of the point, so that both schedules see the same law; four workers."""
    sleep = "0.05 * 10 ** ((question['seed'] % 9973) / 9973)"
    for schedule, bar in (("async", 0.95), ("batch", None)):
        run = {"batch": 4, "max_evaluations": 160, "workers": 4, "schedule": schedule}
        problem = write_problem(directory / schedule, 4, sleep, run)
        seconds, result = fastest(directory, problem, rounds=1)
        share, _ = busy_share(problem.parent)
        whole = result["seconds_evaluating"] / (4 * seconds)
        figure = f"{100 * share:.1f} % busy ({100 * whole:.1f} % of the whole run), {seconds:.1f} s"
        limit = f"≥ {100 * bar:.0f} %" if bar else "–"
        yield f"160 evaluations of 50–500 ms on 4 workers, {schedule}", figure, limit, bar is None or share >= bar


def scale(directory):
    """Many workers on one driver: what it chooses must keep up with what they finish."""
    for workers, seconds, evaluations in ((64, 0.1, 2000), (64, 0.5, 2000), (256, 0.5, 5000)):
        run = {"max_evaluations": evaluations, "workers": workers, "schedule": "async"}
        problem = write_problem(directory / f"scale-{workers}-{seconds}", 4, str(seconds), run)
        whole, result = fastest(directory, problem, rounds=1)
        share, span = busy_share(problem.parent)
        mine = 1000 * result["seconds_choosing"] / evaluations
        figure = f"{100 * share:.1f} % busy for {span:.1f} s; choosing {mine:.1f} ms per evaluation, {result['batches']} batches, {whole:.1f} s to the end"
        what = f"{evaluations} evaluations of {seconds} s on {workers} workers, async"
        yield what, figure, "≥ 95 %" if workers == 256 else "–", workers < 256 or share >= 0.95


def large_store(directory):
    """A store of 2 000 evaluations that were asked and told, made by a run with large batches."""
    run = {"batch": 500, "max_evaluations": 2000, "workers": 2, "batch_rule": "random", "initial_size": 500}
    problem = write_problem(directory / "large", 4, "0", run)
    store = directory / "large-store"
    made, memory, _ = timed("run", problem, "-q", "--store", store)
    yield "making a store of 2 000 evaluations, batches of 500 draws", f"{made:.1f} s, {memory:.0f} MiB", "–", True
    bar = "< 10 s, < 1 GiB"
    # The last is resumed with nothing left to do: what passes is reading, replaying, fitting once and reporting.
    for what, args in (
        ("`status` of it", ["status", store]),
        ("`result` of it", ["result", store]),
        ("`run` of it, nothing left to do", ["run", problem, "-q", "--store", store]),
    ):
        seconds, memory, _ = min(timed(*args) for _ in range(2))
        yield what, f"{seconds:.2f} s, {memory:.0f} MiB", bar, seconds < 10 and memory < 1024
    page = directory / "page.html"
    seconds, memory, _ = min(timed("report", store, "-o", page) for _ in range(2))
    size = page.stat().st_size / 1e6
    figure = f"{seconds:.2f} s, {memory:.0f} MiB, a page of {size:.1f} MB"
    yield "`report` of it", figure, "< 5 s, < 5 MB", seconds < 5 and size < 5
    for log in problem.parent.glob("busy-*"):
        log.unlink()
    text = problem.read_text().replace('"random"', '"kriging-believer"')
    problem.write_text(text.replace("batch = 500", "batch = 8").replace("2000", "2008"))
    begin = time.time()
    seconds, memory, _ = timed("run", problem, "-q", "--store", store)
    first = min(worker[0][0] for worker in busy(problem.parent) if worker) - begin
    figure = f"{first:.2f} s ({seconds:.2f} s to the end), {memory:.0f} MiB"
    yield "`run` of it with a batch of 8 more, until the first evaluation", figure, bar, first < 10 and memory < 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="print the table, leave the file alone")
    parser.add_argument("--only", help="one of overhead, efficiency, schedules, scale, large_store; implies --dry-run")
    args = parser.parse_args()
    subprocess.run(["cargo", "build", "--release", "-p", "batchquad-cli"], cwd=ROOT, check=True)
    parts = [overhead, efficiency, schedules, scale, large_store]
    if args.only:
        parts = [part for part in parts if part.__name__ == args.only]
    rows, failed = ["| what | measured | bar | |", "|---|---|---|---|"], 0
    with tempfile.TemporaryDirectory() as directory:
        for part in parts:
            for what, measured, bar, good in part(pathlib.Path(directory)):
                failed += not good
                verdict = "" if bar == "–" else "met" if good else "**missed**"
                rows.append(f"| {what} | {measured} | {bar} | {verdict} |")
                print(rows[-1], flush=True)
    load = os.getloadavg()[0]
    rows += ["", f"{os.cpu_count()} cores, {platform.system()} on {platform.machine()}, load average at the end {load:.1f}."]
    if not args.dry_run and not args.only:
        before, rest = README.read_text().split(MARKERS[0])
        _, after = rest.split(MARKERS[1])
        README.write_text(before + MARKERS[0] + "\n" + "\n".join(rows) + "\n" + MARKERS[1] + after)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
