"""What a result knows, shows and hands on."""

import os
import pickle
import stat

import matplotlib
import numpy as np
import pytest

import batchquad as bq
from batchquad._files import write_whole
from problems import SETTINGS, gaussian, prior, reference

matplotlib.use("agg")

#: The posterior is N((0.8, 0), 0.2 I).
MEAN, SD = np.array([0.8, 0.0]), np.sqrt(0.2)


@pytest.fixture(scope="module")
def result():
    return reference()


@pytest.fixture(scope="module")
def failing():
    def fails(theta):
        if theta[0] > 1.0:
            raise ValueError("<script>alert(1)</script>\x1b[2J")
        return -np.inf if theta[1] > 1.5 else gaussian(theta)

    return bq.integrate(fails, prior(), **SETTINGS)


def test_moments(result):
    # The belief errs by about log_z_sd, far below a hundredth.
    np.testing.assert_allclose(result.mean, MEAN, atol=0.01)
    np.testing.assert_allclose(result.sd, SD, atol=0.01)
    np.testing.assert_allclose(result.cov, 0.2 * np.eye(2), atol=0.01)


def test_samples(result):
    samples = result.samples(4000, seed=1)
    assert samples.shape == (4000, 2)
    # Four standard errors of independent draws; quasi-random ones err by less.
    np.testing.assert_allclose(samples.mean(axis=0), MEAN, atol=4 * SD / np.sqrt(4000))
    np.testing.assert_allclose(samples.std(axis=0), SD, atol=0.03)
    assert (result.samples(4000, seed=1) == samples).all() and (result.samples(4000, seed=2) != samples).any()
    with pytest.raises(ValueError, match="number of draws is 0"):
        result.samples(0)
    with pytest.raises(ValueError, match="n is -1, expected a whole number"):
        result.samples(-1)


@pytest.mark.parametrize(("surrogate", "method"), [("wsabi-l", "closed-form"), ("log", "draws")])
def test_marginals(surrogate, method):
    from scipy import stats

    result = reference(surrogate=surrogate)
    marginal, truth = result.marginal("x"), stats.norm(0.8, SD)
    x = np.linspace(-1, 2.5, 30)
    assert marginal.method == method and marginal.name == "x"
    np.testing.assert_allclose(marginal.density(x), truth.pdf(x), atol=0.01)
    np.testing.assert_allclose(marginal.cdf(x), truth.cdf(x), atol=0.01)
    np.testing.assert_allclose(marginal.quantile(np.array([0.1, 0.5, 0.9])), truth.ppf([0.1, 0.5, 0.9]), atol=0.01)
    np.testing.assert_allclose(marginal.interval(0.95), truth.interval(0.95), atol=0.02)
    np.testing.assert_allclose(marginal.highest_density(0.95), [truth.interval(0.95)], atol=0.05)
    grid, density, before = marginal.curve(50)
    np.testing.assert_allclose(before, stats.norm.pdf(grid), rtol=1e-9)
    assert len(density) == 50
    with pytest.raises(ValueError, match="parameter is 'z', expected one of x, y"):
        result.marginal("z")
    with pytest.raises(ValueError, match="expected"):
        marginal.quantile(np.array([1.5]))


def test_expectations(result):
    mean, sd = result.expect(lambda theta: theta[0] ** 2)
    # E[x²] = 0.8² + 0.2
    assert abs(mean - 0.84) < 4 * sd + 1e-3 and 0 < sd < 0.02
    several = result.expect(lambda p: [[p["x"], p["y"]], [1.0, p["x"] * p["y"]]], pass_dict=True)
    np.testing.assert_allclose(several.mean, [[0.8, 0.0], [1.0, 0.0]], atol=0.01)
    assert several.sd.shape == (2, 2)
    with pytest.raises(ZeroDivisionError):
        result.expect(lambda theta: 1 / 0)
    with pytest.raises(ValueError, match="expected a finite number"):
        result.expect(lambda theta: np.nan)


def test_tables(result, failing):
    frame = result.evaluations.to_pandas()
    assert list(frame.columns)[:5] == ["id", "x", "y", "log_likelihood", "status"] and len(frame) == 48
    np.testing.assert_allclose(frame["log_likelihood"], [gaussian(p) for p in frame[["x", "y"]].to_numpy()])
    assert frame["batch"].max() == frame["batch"].nunique() - 1
    assert (frame["seconds"] > 0).all()
    assert failing.evaluations.to_pandas().query("status == 'failed'")["log_likelihood"].isna().all()
    rounds = result.rounds.to_pandas()
    assert rounds["evaluations"].tolist()[-1] == 48 and rounds["log_z"].iloc[-1] == result.log_z
    assert rounds["log_z_sd"].iloc[-1] < rounds["log_z_sd"].iloc[0]
    assert result.evaluations["x"].shape == (48,) and "48" in repr(result.evaluations["id"][-1] + 1)


def test_the_diagnosis(result):
    assert result.diagnosis.verdict in ("fine", "look", "do-not-trust")
    assert result.diagnosis.summary in repr(result)
    assert result.diagnosis.findings.rows > 3 and "level" in repr(result.diagnosis)


def test_text_and_html_hold_no_code(failing):
    for text in [repr(failing), repr(failing.evaluations), repr(failing.diagnosis)]:
        assert "\x1b" not in text
    assert "failed: exception" in repr(failing) and "of the prior is nearest to points that failed" in repr(failing)
    for html in [failing._repr_html_(), failing.evaluations._repr_html_(), failing.diagnosis._repr_html_()]:
        assert "<script>" not in html and "\x1b" not in html and html.startswith("<table>")
    assert "&lt;script&gt;" in failing.evaluations._repr_html_()


def test_to_arviz(result):
    arviz = pytest.importorskip("arviz")
    data = result.to_arviz(n=2000)
    assert data["posterior"]["x"].shape == (1, 2000)
    assert abs(float(data["posterior"]["x"].mean()) - 0.8) < 0.05
    assert set(arviz.summary(data).index) == {"x", "y"}


def test_pictures_are_drawn(result, failing, tmp_path):
    import matplotlib.pyplot as plt

    for i, of in enumerate([result, failing]):
        for name in ("plot_run", "plot_corner", "plot_evaluations"):
            figure = getattr(of, name)()
            figure.savefig(tmp_path / f"{name}-{i}.png")
            assert (tmp_path / f"{name}-{i}.png").stat().st_size > 5000
    # Only what was asked for, in a figure that is there.
    figure = plt.figure()
    assert result.plot_corner(["y"], figure) is figure and len(figure.axes) == 1
    assert len(result.plot_corner().axes) == 3
    with pytest.raises(ValueError, match="parameter is 'z'"):
        result.plot_evaluations(["z"])
    plt.close("all")


def test_pictures_of_a_run_without_evidence():
    nothing = bq.integrate(lambda theta: -np.inf, prior(), max_evaluations=16)
    nothing.plot_run()
    nothing.plot_evaluations()
    with pytest.raises(bq.NoEvidence):
        nothing.plot_corner()


def test_a_pickled_result_keeps_its_numbers_and_its_posterior(result):
    copy = pickle.loads(pickle.dumps(result))
    assert copy.log_z == result.log_z and copy.status == result.status
    assert (copy.evaluations["x"] == result.evaluations["x"]).all()
    assert "log Z" in repr(copy)
    assert (copy.samples(10) == result.samples(10)).all()


def test_other_surrogates_have_posteriors_too():
    for surrogate in ("plain", "wsabi-m"):
        result = reference(surrogate=surrogate)
        np.testing.assert_allclose(result.mean, MEAN, atol=0.1)
        assert result.marginal("x").method == "draws"


def test_files_are_replaced_and_nothing_else_is(result, tmp_path):
    page = tmp_path / "page.html"
    result.report(page)
    result.report(page)
    assert page.read_text().startswith("<!DOCTYPE html>") and page.stat().st_mode & 0o444
    # A device, and not one that anybody needs.
    reader, writer = os.openpty()
    write_whole(os.ttyname(writer), "text")
    assert os.read(reader, 4) == b"text" and stat.S_ISCHR(os.stat(os.ttyname(writer)).st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(bq.InvalidInput, match="a pipe needs a reader"):
        result.report(pipe)
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)
    precious, link = tmp_path / "precious", tmp_path / "link"
    precious.write_text("years of work")
    link.symlink_to(precious)
    for write in (result.report, result.save):
        with pytest.raises(bq.InvalidInput, match="link to a file that is not empty"):
            write(link)
        with pytest.raises(bq.InvalidInput, match="is a directory"):
            write(tmp_path)
    assert precious.read_text() == "years of work"
    link.unlink()
    link.symlink_to(tmp_path / "nothing")
    with pytest.raises(bq.InvalidInput, match="link to nothing"):
        result.save(link)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "page.html", "pipe", "precious"]
