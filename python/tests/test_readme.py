"""The examples of the README run as they are printed."""

import re

import pytest

from conftest import ROOT


def blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(), flags=re.S)


@pytest.mark.parametrize("name", ["python/README.md", "README.md"])
def test_the_examples_run_as_printed(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = blocks(ROOT / name)
    assert code
    together = {"__name__": "__main__"}
    for block in code:
        exec(compile(block, name, "exec"), together)
    assert "assert" in "".join(code)


def test_the_examples_of_the_executor_guide_compile():
    code = blocks(ROOT / "docs/executors.md")
    assert len(code) > 6
    for block in code:
        compile(block, "executors.md", "exec")
