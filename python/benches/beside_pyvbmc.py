"""Errors, evaluations and seconds beside PyVBMC, and beside dynesty and emukit: adds to beside_pyvbmc.csv what it does not have yet.

    pip install "pyvbmc>=1.5" dynesty
    python python/benches/beside_pyvbmc.py [--seeds 3] [--only banana,sir] [--programs PyVBMC,batchquad]
    python python/benches/beside_pyvbmc.py --table          # prints the table, runs nothing

PyVBMC runs with its defaults, from a start in the middle 90 % of the prior, until it calls itself converged (peers/pyvbmc_zoo.py says
what it is given). batchquad runs twice: once with as many evaluations as PyVBMC took, in batches of five as PyVBMC's, and once until the standard
deviation of log Z is 0.05. dynesty runs with its defaults, 500 live points. The seconds are processor time on one thread without the likelihood.

emukit needs an old numpy (`pip install emukit==0.5.1 GPy==1.13.2 numpy==1.26.4 scipy==1.12.0`) and is asked for by `--programs emukit`. It runs its WSABI-L
loop from as many draws of the prior as batchquad begins with, on the two problems whose likelihood needs no scaling.
"""

import argparse
import csv
import math
import os
import pathlib
import statistics
import sys
import time

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[threads] = "1"

import numpy as np  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
EXPERIMENTS = HERE.parents[1] / "crates/experiments"
sys.path[:0] = [str(EXPERIMENTS / "data"), str(EXPERIMENTS / "peers")]

import pyvbmc_zoo  # noqa: E402
import world  # noqa: E402

RECORD = HERE / "beside_pyvbmc.csv"
COLUMNS = ["problem", "dimension", "seed", "program", "evaluations", "log_z", "sd", "error", "trusted", "seconds"]


def log_normal(x, mean, variance):
    return -0.5 * ((x - mean) ** 2 / variance + np.log(2 * np.pi * variance))


def banana():
    """The banana of src/problems/zoo.rs; given x, the integral over y is known."""

    def log_likelihood(theta):
        x, y = theta.T
        return log_normal(x, 0.5, 0.64) + log_normal(y, x**2 - 1, 0.04)

    x = np.linspace(-10, 10, 20001)
    joint = log_normal(x, 0.0, 1.0) + log_normal(x, 0.5, 0.64) + log_normal(x**2 - 1, 0.0, 1.04)
    truth = math.log(np.exp(joint).sum() * (x[1] - x[0]))
    return world.Problem("banana", [("normal", 0.0, 1.0)] * 2, log_likelihood, [0.5, -0.75]), truth


def gaussian_6():
    """N(θ; 0.4, 0.08 I + 0.08 11ᵀ) under N(0, I)."""

    def log_density(theta, covariance):
        gap = theta - 0.4
        solved = np.linalg.solve(covariance, gap.T).T
        return -0.5 * ((gap * solved).sum(1) + np.linalg.slogdet(2 * np.pi * covariance)[1])

    covariance = 0.08 * (np.eye(6) + 1)
    truth = float(log_density(np.zeros((1, 6)), covariance + np.eye(6))[0])
    return world.Problem("gaussian-6", [("normal", 0.0, 1.0)] * 6, lambda t: log_density(t, covariance), [0.4] * 6), truth


def of_world(name):
    return pyvbmc_zoo.problems()[name](), pyvbmc_zoo.truth(name)


PROBLEMS = {
    "banana": banana,
    "gaussian-6": gaussian_6,
    **{name: lambda name=name: of_world(name) for name in ("linear-4-30", "linear-6-30", "logistic-5", "sir", "four-modes")},
}


def prior_of(problem):
    import batchquad as bq

    made = {
        "normal": bq.Normal,
        "log-normal": lambda median, width: bq.LogNormal(mu=math.log(median), sigma=width),
        "uniform": bq.Uniform,
    }
    return {f"x{k}": made[kind](a, b) for k, (kind, a, b) in enumerate(problem.prior)}


class Timed:
    """A log-likelihood of one point, its calls and the seconds in it."""

    def __init__(self, function):
        self.function, self.calls, self.seconds = function, 0, 0.0

    def __call__(self, point):
        begin = time.process_time()
        value = float(self.function(np.asarray(point)[None, :])[0])
        self.calls += 1
        self.seconds += time.process_time() - begin
        return value


def quadrature(problem, seed, **settings):
    import batchquad as bq

    timed = Timed(problem.log_likelihood)
    begin = time.process_time()
    result = bq.integrate(timed, prior_of(problem), seed=seed, progress=False, **settings)
    seconds = time.process_time() - begin - timed.seconds
    trusted = result.diagnosis.verdict != "do-not-trust"
    return {"evaluations": timed.calls, "log_z": result.log_z, "sd": result.log_z_sd, "trusted": trusted, "seconds": seconds}


def variational(problem, seed):
    found = pyvbmc_zoo.run(problem, seed)
    return {
        "evaluations": found["evaluations"],
        "log_z": found["elbo"],
        "sd": found["elbo_sd"],
        "trusted": found["converged"],
        "seconds": found["seconds"],
    }


def nested(problem, seed):
    import dynesty
    from scipy.special import ndtri

    def prior_transform(cube):
        return problem.to_theta(ndtri(cube)[None, :])[0]

    # dynesty takes finite values only.
    timed = Timed(lambda theta: np.maximum(problem.log_likelihood(theta), pyvbmc_zoo.FLOOR))
    begin = time.process_time()
    sampler = dynesty.NestedSampler(timed, prior_transform, len(problem.prior), rstate=np.random.default_rng(seed))
    sampler.run_nested(print_progress=False)
    seconds = time.process_time() - begin - timed.seconds
    found = sampler.results
    return {"evaluations": timed.calls, "log_z": found.logz[-1], "sd": found.logzerr[-1], "trusted": True, "seconds": seconds}


def square_root(problem, seed, evaluations):
    import GPy
    from emukit.model_wrappers.gpy_quadrature_wrappers import create_emukit_model_from_gpy_model
    from emukit.quadrature.loop import WSABILLoop
    from emukit.quadrature.measures import GaussianMeasure
    from emukit.quadrature.methods import WSABIL

    d = len(problem.prior)
    timed = Timed(lambda u: problem.log_likelihood(problem.to_theta(u)))

    def likelihood(points):
        return np.exp([[timed(point)] for point in points])

    np.random.seed(seed)  # emukit draws from numpy's global state
    begin = time.process_time()
    x = np.random.standard_normal((2 * d + 4, d))
    y = likelihood(x)
    base = create_emukit_model_from_gpy_model(
        GPy.models.GPRegression(x, y, GPy.kern.RBF(d)), measure=GaussianMeasure(np.zeros(d), 1.0)
    )
    loop = WSABILLoop(WSABIL(base, x, y))
    loop.run_loop(likelihood, evaluations - len(x))
    log_z = float(np.log(loop.model.integrate()[0]))
    seconds = time.process_time() - begin - timed.seconds
    # Its WSABI-L has no variance of the integral.
    return {"evaluations": timed.calls, "log_z": log_z, "sd": math.nan, "trusted": True, "seconds": seconds}


def recorded():
    if not RECORD.exists():
        return []
    with open(RECORD) as file:
        return list(csv.DictReader(file))


def add(row):
    new = not RECORD.exists()
    with open(RECORD, "a") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()})


def measure(name, seed, programs=("PyVBMC", "batchquad", "dynesty")):
    """Whatever of the runs is not recorded."""
    done = {row["program"]: row for row in recorded() if row["problem"] == name and row["seed"] == str(seed)}
    problem, truth = PROBLEMS[name]()

    def run(program, method, *arguments, **settings):
        if program in done:
            return
        found = method(problem, seed, *arguments, **settings)
        row = {"problem": name, "dimension": len(problem.prior), "seed": seed, "program": program, **found}
        row["error"] = found["log_z"] - truth
        add(row)
        done[program] = row
        print(row, flush=True)

    if "PyVBMC" in programs:
        run("PyVBMC", variational)
    peer = done.get("PyVBMC")
    same = int(peer["evaluations"]) if peer else None
    if "batchquad" in programs:
        if same:
            run("batchquad", quadrature, batch=5, max_evaluations=same)
        run("batchquad to 0.05", quadrature, batch=5, max_evaluations=512, target_sd=0.05)
    if "dynesty" in programs:
        run("dynesty", nested)
    if "emukit" in programs and same and name in ("banana", "gaussian-6"):
        run("emukit", square_root, same)


def table():
    print("| problem | d | program | runs | evaluations | error, median | worst | stated sd | within 2 sd | trusted | ms per evaluation |")
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    rows = recorded()
    for name in PROBLEMS:
        for program in ("batchquad", "PyVBMC", "emukit", "batchquad to 0.05", "dynesty"):
            these = [row for row in rows if row["problem"] == name and row["program"] == program]
            if not these:
                continue
            errors = [abs(float(row["error"])) for row in these]
            sds = [float(row["sd"]) for row in these]
            median = statistics.median
            cells = [
                name,
                these[0]["dimension"],
                program,
                str(len(these)),
                f"{median(int(row['evaluations']) for row in these):.0f}",
                f"{median(errors):.2g}",
                f"{max(errors):.2g}",
                "–" if math.isnan(sds[0]) else f"{median(sds):.2g}",
                # Truths are known to half a thousandth.
                "–" if math.isnan(sds[0]) else str(sum(e <= max(2 * sd, 5e-4) for e, sd in zip(errors, sds, strict=True))),
                str(sum(row["trusted"] == "True" for row in these)),
                f"{median(1e3 * float(row['seconds']) / int(row['evaluations']) for row in these):.3g}",
            ]
            print(f"| {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default=",".join(PROBLEMS), help="problems, separated by commas")
    parser.add_argument("--programs", default="PyVBMC,batchquad,dynesty", help="of these and emukit, separated by commas")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if not options.table:
        for seed in range(1, options.seeds + 1):
            for name in options.only.split(","):
                measure(name, seed, options.programs.split(","))
    table()


if __name__ == "__main__":
    main()
