"""What the tests share."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def program():
    """The program `batchquad`, as the test command built it."""
    path = pathlib.Path(os.environ.get("BATCHQUAD_PROGRAM", ROOT / "target/debug/batchquad"))
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


@pytest.fixture
def cli(program):
    """Runs the program; gives its standard output."""

    def run(*arguments, code=0, **options):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done.stdout

    return run
