"""The program against real UM-Bridge servers, those of the `umbridge` package."""

import json
import math
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

pytest.importorskip("umbridge")

SERVER = """
import os, sys, time, umbridge

class Posterior(umbridge.Model):
    def __init__(self):
        super().__init__("posterior")
    def get_input_sizes(self, config):
        return [2]
    def get_output_sizes(self, config):
        return [1]
    def __call__(self, parameters, config):
        x, y = parameters[0]
        time.sleep(config.get("seconds", 0))
        if x < -2.5:
            return [[-float("inf")]]
        if config.get("picky") and y > 1.5:
            raise ValueError("y is too large")
        with open(sys.argv[2], "a") as log:
            log.write("evaluated\\n")
        return [[-2 * ((x - 1) ** 2 + y ** 2)]]
    def supports_evaluate(self):
        return True

umbridge.serve_models([Posterior()], int(sys.argv[1]), max_workers=2)
"""

PROBLEM = """
[[parameter]]
name = "x"
prior = {{ normal = {{ mean = 0, sd = 1 }} }}
[[parameter]]
name = "y"
prior = {{ normal = {{ mean = 0, sd = 1 }} }}
[likelihood]
umbridge = {{ url = {urls}, model = "{model}", config = {config} }}
timeout = 30
[run]
workers = 4
max_evaluations = 40
"""

TRUTH = math.log(0.2) - 0.4


class Server:
    """A server of theirs in a process of its own."""

    def __init__(self, place, port=0):
        if port == 0:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
        self.port, self.log = port, place / f"server-{port}.log"
        script = place / "server.py"
        script.write_text(SERVER)
        arguments = [sys.executable, script, str(port), self.log]
        self.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{self.url}/Info", timeout=1).read()
                return
            except OSError:
                assert self.process.poll() is None, "the server has ended"
                time.sleep(0.1)
        raise AssertionError("the server does not answer")

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def evaluations(self):
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def server(tmp_path):
    servers = []

    def start(port=0):
        servers.append(Server(tmp_path, port))
        return servers[-1]

    yield start
    for one in servers:
        one.kill()


@pytest.fixture
def run(tmp_path, program):
    def command(*arguments, code=0):
        done = subprocess.run([program, *map(str, arguments)], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return command


def write(place, servers, model="posterior", config="{}"):
    urls = json.dumps([one.url for one in servers])
    (place / "problem.toml").write_text(PROBLEM.format(urls=urls, model=model, config=config))


def test_a_run_against_two_servers(tmp_path, server, run):
    first, second = server(), server()
    write(tmp_path, [first, second], config="{ seconds = 0.05 }")
    checked = run("check", "problem.toml").stdout
    assert "posterior at http://127.0.0.1" in checked
    assert "log-likelihood -2.0 at the prior median" in checked
    result = json.loads(run("run", "problem.toml", "-q", "--json").stdout)
    assert abs(result["log_z"] - TRUTH) < 0.01
    assert result["failures"] == 0
    assert first.evaluations > 5
    assert second.evaluations > 5
    assert "posterior at http://127.0.0.1" in run("status", "problem.batchquad").stdout
    # The report's problem file makes the same run.
    page = run("report", "problem.batchquad", "-o", "-").stdout
    assert "umbridge = {" in page


def test_what_a_model_raises_is_a_failure(tmp_path, server, run):
    write(tmp_path, [server()], config="{ picky = true }")
    result = json.loads(run("run", "problem.toml", "-q", "--json").stdout)
    assert set(result["failures_by_kind"]) == {"exception"}
    csv = run("export", "problem.batchquad").stdout
    assert ",failed," in csv
    assert "127.0.0.1" in csv


def test_a_server_that_dies_is_replaced_by_the_other(tmp_path, server, program):
    first, second = server(), server()
    write(tmp_path, [first, second], config="{ seconds = 0.1 }")
    running = subprocess.Popen([program, "run", "problem.toml", "-q", "--json"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    while first.evaluations < 3:
        assert running.poll() is None
        time.sleep(0.02)
    first.kill()
    out, _ = running.communicate(timeout=120)
    result = json.loads(out)
    assert running.returncode == 0
    assert (result["evaluations"], result["failures"]) == (40, 0)
    assert abs(result["log_z"] - TRUTH) < 0.01


def test_a_run_whose_only_server_dies_goes_on_when_it_is_back(tmp_path, server, run, program):
    alone = server()
    write(tmp_path, [alone], config="{ seconds = 0.1 }")
    running = subprocess.Popen([program, "run", "problem.toml", "-q"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while alone.evaluations < 6:
        assert running.poll() is None
        time.sleep(0.02)
    alone.kill()
    _, said = running.communicate(timeout=120)
    assert running.returncode == 2
    assert "a server that can be reached" in said
    status = json.loads(run("status", "problem.batchquad", "--json").stdout)
    assert status["failures"] == 0
    assert "a server that can be reached" in run("run", "problem.toml", "-q", code=2).stderr
    server(alone.port)
    result = json.loads(run("run", "problem.toml", "-q", "--json").stdout)
    assert (result["evaluations"], result["failures"]) == (40, 0)
    assert abs(result["log_z"] - TRUTH) < 0.01


def test_another_model_is_refused(tmp_path, server, run):
    write(tmp_path, [server()], model="likelihood")
    refused = run("run", "problem.toml", "-q", code=2).stderr
    assert 'likelihood.umbridge.model is "likelihood", expected one of the models of' in refused
    assert "posterior" in refused
    assert not (tmp_path / "problem.batchquad").exists()
