"""mpi4py.futures: a master and two workers under mpiexec."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("mpi4py")

HERE = pathlib.Path(__file__).parent


def test_two_ranks_give_the_same_bits():
    # The MPI of the environment's own wheel comes first.
    mpiexec = shutil.which("mpiexec", path=f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if mpiexec is None:
        pytest.skip("mpiexec was not found")
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True).stdout
    options = ["--allow-run-as-root", "--oversubscribe"] if "Open MPI" in version or "OpenRTE" in version else []
    command = [mpiexec, *options, "-n", "3", sys.executable, "-m", "mpi4py.futures", str(HERE / "mpi_run.py")]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    _, log_z, ranks, expected = next(line for line in done.stdout.splitlines() if line.startswith("result")).split()
    assert log_z == expected and ranks == "2"
