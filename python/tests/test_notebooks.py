"""The notebooks run from top to bottom; each asserts its own results."""

import warnings

import pytest

from conftest import ROOT

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

NOTEBOOKS = sorted((ROOT / "python/notebooks").glob("*.ipynb"))


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["comparing-models", "dask", "first-evidence"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path, tmp_path):
    if path.stem == "dask":
        pytest.importorskip("distributed")
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert any("assert " in cell.source for cell in code)
    with warnings.catch_warnings():
        # Of the machinery: event loops and transports of Jupyter.
        warnings.simplefilter("ignore")
        # In a directory of its own: a notebook is something to download.
        nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in code for output in cell.outputs if "text/plain" in output.get("data", {})]
    assert outputs and all(output["data"]["text/plain"].strip() for output in outputs), "an output without anything in it"
    for cell in code:
        # Progress is one line of output that changes, and no block on standard error.
        assert not [output for output in cell.outputs if output.get("name") == "stderr"], cell.outputs
        pictures = [output for output in cell.outputs if "image/png" in output.get("data", {})]
        assert len(pictures) <= 1, f"a figure is shown twice: {cell.source}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_kept_without_outputs(path):
    for cell in nbformat.read(path, as_version=4).cells:
        assert not cell.get("outputs") and cell.get("execution_count") is None
