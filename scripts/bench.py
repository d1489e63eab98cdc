#!/usr/bin/env python3
"""Times the numerical core beside the same work in numpy and scipy, and writes the table in benches/README.md.

    python3 scripts/bench.py             # about two minutes once everything is built
    python3 scripts/bench.py --dry-run   # print the table, leave the file alone
    python3 scripts/bench.py --smoke     # one short round, print only: does it all still run?

One thread each. The two take turns, `--rounds` times, so that both see the same machine; each figure is the processor time
of the fastest sample of all rounds, because other work on the machine can only add to it.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCHES = ROOT / "crates" / "batchquad" / "benches"
VENV = ROOT / "target" / "bench-venv"
MARKERS = ("<!-- begin: scripts/bench.py -->", "<!-- end: scripts/bench.py -->")
SIZES = (100, 400, 1600)
SIDE = 1024
DIM, QUERIES, APPENDED = 4, 64, 16
ONE_THREAD = {
    **os.environ,
    **{f"{name}_NUM_THREADS": "1" for name in ("RAYON", "OMP", "OPENBLAS", "MKL", "BLIS")},
}

# What one exponential costs in our own loop: 16 fused multiply-adds, two subtractions, one product.
EXP = 35
# Flops that the leading terms of each item need, whoever does them: the model behind "share of peak".
FLOPS = {
    # Cholesky n³/3, inverse 2n³/3, the kernel and its slopes on one triangle
    "fit": lambda n: n**3 + n**2 / 2 * (2 * (3 * DIM + EXP) + 3 + 4 * DIM),
    # two triangular solves per point, the kernel column, its slopes
    "predict": lambda n: QUERIES * (2 * n**2 + n * (3 * DIM + EXP + 4 + 7 * DIM)),
    # P (differences and sums) and D (differences and twice as many sums) on one triangle, and one triangular solve
    "integrate": lambda n: n**2 / 2 * ((3 * 2 * DIM + EXP) + (3 * 3 * DIM + EXP) + 8) + n**2,
    # one triangular solve a row
    "append": lambda n: APPENDED * n**2 + APPENDED**2 * n,
}


def python():
    """The interpreter of a virtual environment that has the requirements."""
    interpreter = VENV / "bin" / "python"
    requirements = BENCHES / "requirements.txt"
    done = VENV / "installed"
    if not done.exists() or done.read_text() != requirements.read_text():
        venv.create(VENV, with_pip=True, clear=True)
        subprocess.run([interpreter, "-m", "pip", "install", "--quiet", "-r", requirements], check=True)
        done.write_text(requirements.read_text())
    return interpreter


def numpy_round(interpreter):
    run = subprocess.run([interpreter, BENCHES / "numpy_bench.py"], env=ONE_THREAD, check=True, stdout=subprocess.PIPE)
    return json.loads(run.stdout)


def cargo_bench(*arguments):
    command = ["cargo", "bench", "-p", "batchquad", "--bench", "core", *arguments]
    subprocess.run(command, cwd=ROOT, env=ONE_THREAD, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def fastest_sample(item, n):
    """Seconds, from the samples that criterion keeps."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    sample = json.loads((target / "criterion" / item / str(n) / "new" / "sample.json").read_text())
    return min(time / count for time, count in zip(sample["times"], sample["iters"])) * 1e-9


def measure(rounds, smoke):
    """{(item, n): seconds} for ours and for numpy, and the versions of the latter."""
    interpreter = python()
    cargo_bench("--no-run")
    keys = [(item, n) for item in FLOPS for n in SIZES] + [("gemm", SIDE)]
    ours, theirs = {}, {}
    for turn in range(rounds):
        print(f"round {turn + 1} of {rounds}", file=sys.stderr)
        cargo_bench("--", *(["--measurement-time", "0.1", "--warm-up-time", "0.05"] if smoke else []))
        numpy = numpy_round(interpreter)
        for item, n in keys:
            ours[item, n] = min(ours.get((item, n), float("inf")), fastest_sample(item, n))
            theirs[item, n] = min(theirs.get((item, n), float("inf")), numpy[item][str(n)])
    return ours, theirs, numpy["versions"]


def table(ours, theirs, versions):
    gflops = [2e-9 * SIDE**3 / seconds["gemm", SIDE] for seconds in (ours, theirs)]
    peak = max(gflops)
    lines = [
        f"numpy {versions['numpy']}, scipy {versions['scipy']}, one thread each. Matrix product of side {SIDE}: ours "
        f"{gflops[0]:.1f} GFlop/s, numpy {gflops[1]:.1f}; the greater is the peak below.",
        "",
        "| item | N | ours, µs | numpy, µs | numpy / ours | share of peak |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for item, flops in FLOPS.items():
        for n in SIZES:
            a, b = ours[item, n], theirs[item, n]
            share = flops(n) / a / (peak * 1e9)
            lines.append(f"| {item} | {n} | {a * 1e6:.0f} | {b * 1e6:.0f} | {b / a:.1f} | {share:.0%} |")
    return "\n".join(lines)


def write(text):
    readme = BENCHES / "README.md"
    begin, end = MARKERS
    before, rest = readme.read_text().split(begin)
    _, after = rest.split(end)
    readme.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=4, help="how often the two take turns (default 4)")
    parser.add_argument("--dry-run", action="store_true", help="print only")
    parser.add_argument("--smoke", action="store_true", help="one short round, print only")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds}: expected at least 1")
    text = table(*measure(1 if options.smoke else options.rounds, options.smoke))
    print(text)
    if not (options.dry_run or options.smoke):
        write(text)


if __name__ == "__main__":
    main()
