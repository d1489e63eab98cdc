"""The documentation builds without a warning, which runs every example on it, and its pages load nothing from the network."""

import html.parser
import os
import re
import subprocess
import sys

import pytest

from conftest import ROOT

pytest.importorskip("sphinx")
pytest.importorskip("furo")
pytest.importorskip("myst_parser")

DOCS = ROOT / "python/docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [DOCS / "build", out], env={**os.environ, "PYTHON": sys.executable}, capture_output=True, text=True, timeout=600
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
    for page in ["index", "tutorial", "when", "how-to/executors", "how-to/bilby", "api", "problem-file", "mathematics"]:
        assert (site / f"{page}.html").stat().st_size > 5000
    assert "batchquad.integrate" in (site / "api.html").read_text()


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
