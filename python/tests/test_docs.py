"""The documentation builds without a warning, which runs every example on it, and its pages load nothing from the network."""

import html.parser
import os
import re
import subprocess
import sys

import pytest

from batchquad._settings import FurtherSettings, Settings
from conftest import ROOT

pytest.importorskip("sphinx")
pytest.importorskip("furo")
pytest.importorskip("myst_parser")
pytest.importorskip("latex2mathml")

DOCS = ROOT / "python/docs"
GALLERY = [f"gallery/{name}" for name in ("o-rings", "nile", "influenza", "hubble", "returns")]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [DOCS / "build", out], env={**os.environ, "PYTHON": sys.executable}, capture_output=True, text=True, timeout=3000
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return out


class Loaded(html.parser.HTMLParser):
    """What a browser fetches by itself to show a page: not links, which somebody has to follow."""

    def __init__(self, text):
        super().__init__()
        self.addresses = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        names = {"link": ["href"], "script": ["src"], "img": ["src", "srcset"], "iframe": ["src"], "source": ["src", "srcset"]}
        self.addresses += [value for name, value in attributes if value and name in names.get(tag, [])]


def test_every_page_is_there(site):
    pages = ["index", "tutorial", "when", "how-to/executors", "how-to/bilby", "api", "problem-file", "mathematics"]
    pages += ["how-good", "from-others", "how-it-works", "gallery/index", *GALLERY]
    for page in pages:
        assert (site / f"{page}.html").stat().st_size > 5000
    assert "batchquad.integrate" in (site / "api.html").read_text()


def test_every_problem_of_the_gallery_has_its_figure_and_is_checked(site):
    for page in GALLERY:
        text = (site / f"{page}.html").read_text()
        assert "<img" in text and "Is it right?" in text, page


def test_formulas_are_typeset_without_a_script(site):
    text = (site / "how-it-works.html").read_text()
    assert text.count("<math ") > 20 and not re.search(r"<script[^>]*(mathjax|katex)", text, re.IGNORECASE)
    # A command that the converter does not know would be left as it stands.
    assert not re.search(r"<m[io]>\\", text)


def test_signatures_have_types(site):
    text = re.sub(r"<[^>]+>", "", (site / "api.html").read_text())
    assert "max_evaluations: int = 128" in text and "PriorLike" in text
    assert re.search(r"interval\(mass: float", text), "native classes too"


def test_every_setting_has_a_reason():
    text = (ROOT / "docs/problem-file.md").read_text().split("### Why these defaults")[1].split("\n\n")[2]
    explained = set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in text.splitlines()[2:])))
    settings = set(Settings.__annotations__) | set(FurtherSettings.__annotations__)
    assert settings - {"on_failure"} <= explained, settings - explained


def test_code_for_other_programs_is_python():
    for file in sorted((DOCS / "_peers").glob("*.py")):
        compile(file.read_text(), file.name, "exec")


def test_what_is_drawn_and_printed_is_on_the_pages(site):
    text = (site / "tutorial.html").read_text()
    assert text.count("<img") >= 3 and "verdict" in text
    for address in Loaded(text).addresses:
        assert (site / address.partition("?")[0]).exists(), address


def test_nothing_is_loaded_from_the_network(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        for address in Loaded(page.read_text()).addresses:
            assert not re.match(r"(https?:)?//", address), (page.name, address)
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", sheet.read_text()), sheet.name
