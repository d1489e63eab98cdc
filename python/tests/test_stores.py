"""Stores: the same journal as the program's, whoever began it and however it was stopped."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import batchquad as bq
from problems import SETTINGS, gaussian, prior, reference

#: The same problem as `problems.prior` with `problems.gaussian`, for the program.
PROBLEM = """
[[parameter]]
name = "x"
prior = { normal = { mean = 0, sd = 1 } }

[[parameter]]
name = "y"
prior = { normal = { mean = 0, sd = 1 } }

[likelihood]
command = [%s, "likelihood.py"]

[run]
batch = 8
max_evaluations = 48
seed = 0
workers = 2
"""

LIKELIHOOD = """
import json, sys, time
p = json.load(sys.stdin)["parameters"]
time.sleep(%r)
print(json.dumps({"log_likelihood": -2.0 * ((p["x"] - 1.0) ** 2 + p["y"] ** 2)}))
"""

SCRIPT = """
import sys, time
import batchquad as bq
sys.path.insert(0, %r)
from problems import SETTINGS, gaussian, prior
def slow(theta):
    time.sleep(%r)
    return gaussian(theta)
if __name__ == "__main__":
    bq.integrate(slow, prior(), store=sys.argv[1], executor=%r, **SETTINGS)
"""


@pytest.fixture
def problem(tmp_path):
    """A problem file whose likelihood takes no time."""
    return write_problem(tmp_path, 0.0)


def write_problem(folder, seconds):
    (folder / "likelihood.py").write_text(LIKELIHOOD % seconds)
    path = folder / "problem.toml"
    path.write_text(PROBLEM % json.dumps(sys.executable))
    return path


def script(folder, seconds, executor=None):
    path = folder / "run.py"
    path.write_text(SCRIPT % (str(pathlib.Path(__file__).parent), seconds, executor))
    return path


def answers(store):
    journal = store / "journal.jsonl"
    return journal.read_text().count('"log_likelihood"') if journal.exists() else 0


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def kill_in_the_middle(command, store, after, how=signal.SIGKILL):
    run = subprocess.Popen([str(part) for part in command], start_new_session=True, stderr=subprocess.PIPE)
    try:
        wait_for(lambda: answers(store) >= after)
        run.send_signal(how)
        _, text = run.communicate(timeout=60)
    finally:
        run.kill()
    assert 0 < answers(store) < 48
    return run.returncode, text.decode()


@pytest.mark.parametrize("executor", [None, 2])
@pytest.mark.parametrize("after", [1, 13])
def test_killed_in_python_finished_by_the_program_to_the_same_bits(cli, problem, tmp_path, executor, after):
    store = tmp_path / "store"
    kill_in_the_middle([sys.executable, script(tmp_path, 0.02, executor), store], store, after)
    report = json.loads(cli("run", problem, "--store", store, "--json", "--quiet"))
    assert report["log_z"] == reference().log_z
    assert report["log_z_sd"] == reference().log_z_sd
    assert report["evaluations"] == 48 and report["status"] == "budget"


@pytest.mark.parametrize("after", [1, 13])
def test_killed_in_the_program_finished_in_python_to_the_same_bits(program, tmp_path, after):
    store, problem = tmp_path / "store", write_problem(tmp_path, 0.02)
    kill_in_the_middle([program, "run", problem, "--store", store, "--quiet"], store, after)
    result = bq.integrate(gaussian, prior(), store=store, **SETTINGS)
    assert result.log_z == reference().log_z and result.evaluations.rows == 48


def test_killed_again_and_again_in_python(tmp_path):
    store, path = tmp_path / "store", script(tmp_path, 0.01)
    for after in (3, 9, 17, 26, 35):
        kill_in_the_middle([sys.executable, path, store], store, after)
    assert bq.integrate(gaussian, prior(), store=store, **SETTINGS).log_z == reference().log_z


def test_ctrl_c_leaves_a_store_that_resumes_to_the_same_bits(tmp_path):
    for executor in (None, 2):
        store = tmp_path / f"store-{executor}"
        code, text = kill_in_the_middle([sys.executable, script(tmp_path, 0.05, executor), store], store, 5, signal.SIGINT)
        assert code != 0 and "interrupted and resumable" in text
        assert bq.integrate(gaussian, prior(), store=store, **SETTINGS).log_z == reference().log_z


def test_the_program_reads_what_python_wrote_and_the_other_way_round(cli, problem, tmp_path):
    store = tmp_path / "store"
    result = bq.integrate(gaussian, prior(), store=store, **SETTINGS)
    report = json.loads(cli("result", store, "--json"))
    assert (report["log_z"], report["log_z_sd"]) == (result.log_z, result.log_z_sd)
    assert json.loads(cli("status", store, "--json"))["evaluations"] == 48
    # Asking by the program, telling from Python, and the other way round.
    cli("new", problem, "--store", tmp_path / "mixed")
    jobs = [json.loads(line) for line in cli("ask", tmp_path / "mixed", "-n", "4").splitlines()]
    with bq.Study.open(tmp_path / "mixed") as study:
        assert [job.id for job in study.pending()] == [job["id"] for job in jobs]
        assert study.pending()[0].parameters == jobs[0]["parameters"] and study.pending()[0].seed == jobs[0]["seed"]
        for job in study.pending():
            study.tell(job, gaussian(job.theta))
        asked = study.ask(2)
    lines = "\n".join(json.dumps({"id": job.id, "log_likelihood": gaussian(job.theta)}) for job in asked)
    cli("tell", tmp_path / "mixed", input=lines)
    with bq.Study.open(tmp_path / "mixed") as study:
        assert study.pending() == [] and study.result().evaluations.rows == 6


def test_every_family_is_written_as_the_program_reads_it(cli, tmp_path):
    families = {
        "a": bq.Normal(0, 1),
        "b": bq.LogNormal(0, 1),
        "c": bq.Uniform(0, 1),
        "d": bq.LogUniform(1e-3, 1),
        "e": bq.Beta(2, 3),
        "f": bq.Gamma(2, 3),
        "g": bq.InverseGamma(2, 3),
        "h": bq.Exponential(2),
        "i": bq.HalfNormal(1),
        "j": bq.Cauchy(0, 1),
        "k": bq.HalfCauchy(1),
        "l": bq.StudentT(3, 0, 1),
        "m": bq.TruncatedNormal(0, 1, low=0),
        ("n", "o"): bq.MultivariateNormal([0, 1], [[1, 0.5], [0.5, 2]]),
    }
    with bq.Study(families, store=tmp_path / "store") as study:
        jobs = study.ask(3)
    lines = cli("ask", tmp_path / "store", "--pending").splitlines()
    assert [json.loads(line)["parameters"] for line in lines] == [job.parameters for job in jobs]
    assert bq.Study.open(tmp_path / "store").pending()[2].theta.tolist() == jobs[2].theta.tolist()


def test_a_prior_that_is_a_function_has_to_be_given_again(cli, tmp_path):
    store = tmp_path / "store"
    cube = bq.UnitCube(lambda v: 10 * v - 5, ["x"])
    first = bq.integrate(lambda t: -0.5 * t[0] ** 2, cube, store=store, max_evaluations=16)
    with pytest.raises(bq.InvalidInput, match="a function, which a store cannot hold"):
        bq.Study.open(store)
    cli("result", store, code=2)
    with pytest.raises(bq.StoreDiffers, match="probes"):
        bq.Study(bq.UnitCube(lambda v: 10 * v - 4, ["x"]), store=store, max_evaluations=16)
    again = bq.integrate(lambda t: -0.5 * t[0] ** 2, cube, store=store, max_evaluations=16)
    assert again.log_z == first.log_z


def test_another_problem_is_refused_with_the_difference(tmp_path):
    store = tmp_path / "store"
    bq.integrate(gaussian, prior(), store=store, **SETTINGS)
    x, y = prior().items()
    for other, options, named in [
        ({"x": bq.Normal(0, 2), "y": bq.Normal(0, 1)}, {}, r"problem.parameters\[0\].prior.normal.sd is 2.0, the store has 1.0"),
        ({"z": bq.Normal(0, 1), "y": bq.Normal(0, 1)}, {}, "names"),
        (dict([y, x]), {}, "names"),
        ({"x": bq.Normal(0, 1)}, {}, "names"),
        (prior(), {"seed": 1}, "seed is 1, the store has 0"),
    ]:
        with pytest.raises(bq.StoreDiffers, match=named) as caught:
            bq.integrate(gaussian, other, store=store, **options, **SETTINGS)
        assert caught.value.differences
    larger = bq.integrate(gaussian, prior(), store=store, batch=8, max_evaluations=56)
    assert larger.evaluations.rows == 56


def test_one_writer_and_the_second_is_told_who(tmp_path, cli):
    store = tmp_path / "store"
    with bq.Study(prior(), store=store) as study:
        study.ask(1)
        with pytest.raises(bq.StoreLocked) as caught:
            bq.Study(prior(), store=store)
        assert caught.value.pid == os.getpid() and caught.value.host == os.uname().nodename
        cli("ask", store, code=4)
    bq.Study(prior(), store=store).close()


def test_a_fork_neither_writes_nor_keeps_the_lock(tmp_path):
    """A forked child sees its parent's study closed, and the store is free once the parent has closed it, child or not."""
    store = tmp_path / "store"
    study = bq.Study(prior(), store=store)
    job = study.ask(1)[0]
    read, write = os.pipe()
    hold, release = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            study.tell(job, 0.0)
            os.write(write, b"told")
        except ValueError as error:
            os.write(write, str(error).encode())
        os.read(hold, 1)
        os._exit(0)
    assert b"study is closed" in os.read(read, 1000)
    study.close()
    bq.Study.open(store).close()
    os.write(release, b"x")
    os.waitpid(child, 0)


def test_a_torn_end_is_told_and_cut(tmp_path):
    store = tmp_path / "store"
    bq.integrate(gaussian, prior(), store=store, **SETTINGS)
    journal = store / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-7])
    with pytest.warns(UserWarning, match="ended in the middle of a record"):
        study = bq.Study.open(store)
    assert len(study.pending()) == 1
    study.close()
    assert bq.integrate(gaussian, prior(), store=store, **SETTINGS).log_z == reference().log_z


def test_damage_is_refused_with_its_record(tmp_path):
    store = tmp_path / "store"
    bq.integrate(gaussian, prior(), store=store, **SETTINGS)
    journal = store / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[4] = lines[4].replace(b"-", b"+", 1)
    journal.write_bytes(b"".join(lines))
    with pytest.raises(bq.StoreDamaged, match="damaged at record 5") as caught:
        bq.Study.open(store)
    assert caught.value.record == 5


def test_places_that_are_no_stores(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    for path in ("file", "full", "nowhere"):
        with pytest.raises(bq.StoreError):
            bq.Study.open(tmp_path / path)
    for path in ("file", "full"):
        with pytest.raises(bq.StoreError):
            bq.Study(prior(), store=tmp_path / path)


def test_stores_are_private(tmp_path):
    bq.Study(prior(), store=tmp_path / "store").close()
    assert (tmp_path / "store").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "store" / "journal.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_full_disk_ends_the_run_and_loses_nothing(tmp_path):
    """The limit on the size of files stands in for a full disk."""
    path = tmp_path / "run.py"
    path.write_text(
        textwrap.dedent(
            """
            import resource, signal, sys
            import batchquad as bq
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, resource.RLIM_INFINITY))
            try:
                bq.integrate(lambda t: -t[0] ** 2, {"x": bq.Normal(0, 1)}, store=sys.argv[1], max_evaluations=64)
            except bq.StoreError as error:
                print("said", error)
            """
        )
    )
    done = subprocess.run([sys.executable, path, tmp_path / "store"], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("said cannot append to"), done.stderr
    result = bq.integrate(lambda t: -(t[0] ** 2), {"x": bq.Normal(0, 1)}, store=tmp_path / "store", max_evaluations=64)
    whole = bq.integrate(lambda t: -(t[0] ** 2), {"x": bq.Normal(0, 1)}, max_evaluations=64)
    assert result.log_z == whole.log_z and not np.isnan(result.log_z)
