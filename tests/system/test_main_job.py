"""The main job over HTTP: an event comes in, the one right file changes."""

from __future__ import annotations

import gzip
import hashlib
import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.system.driver import System, wait_until


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A running system for the tests that need no other: each has pages of its own."""
    system = System(tmp_path_factory.mktemp("site") / "home")
    system.start()
    yield system
    system.end()


def sums(root: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.iterdir()
        if not path.name.startswith(".")
    }


def test_one_event_changes_one_shard_and_the_index_and_nothing_else(site: System) -> None:
    pages = {
        f"{site.base}/{section}/{n}": section
        for section in ("posts", "products", "pages")
        for n in range(20)
    }
    for part in ("posts", "products", "pages"):
        given = [loc for loc, section in pages.items() if section == part]
        site.send(*({"type": "upsert", "loc": loc, "section": part} for loc in given))
    wait_until(lambda: pages.keys() <= site.published().keys(), "60 pages are published")
    site.quiet()
    before = sums(site.root)

    changed = f"{site.base}/products/7"
    site.send({"type": "upsert", "loc": changed, "lastmod": "2026-11-20T10:00:00+01:00"})
    wait_until(lambda: site.published()[changed] is not None, "the page has its lastmod")

    site.quiet()
    after = sums(site.root)
    assert {"products-1.xml", "sitemap.xml"} == {n for n in after if after[n] != before.get(n)}
    assert site.published()[changed] == "2026-11-20T09:00:00Z"
    assert site.run("verify").returncode == 0


def test_an_event_that_changes_nothing_touches_no_file(site: System) -> None:
    page = {"type": "upsert", "loc": f"{site.base}/a", "lastmod": "2026-11-20"}
    site.send(page)
    wait_until(lambda: page["loc"] in site.published(), "the page is published")
    site.quiet()
    before = {path: path.stat().st_mtime_ns for path in site.root.iterdir()}

    said = site.run("event", "send", page["loc"], "--lastmod", "2026-11-20", "--watch", "--json")

    assert said.returncode == 0, said.stderr
    steps = json.loads(said.stdout)["steps"]
    assert [step["step"] for step in steps] == ["accepted", "decided"]
    assert "same content" in steps[1]["what"]
    assert {path: path.stat().st_mtime_ns for path in site.root.iterdir()} == before


def test_a_restart_goes_on_exactly_where_it_was(system: System) -> None:
    system.send({"type": "upsert", "loc": f"{system.base}/a", "id": "7"})
    wait_until(system.published, "the page is published")
    system.quiet()
    before = sums(system.root)
    assert system.stop() == 0

    system.start()

    assert sums(system.root) == before
    system.send({"type": "upsert", "loc": f"{system.base}/moved", "id": "7"})
    wait_until(
        lambda: set(system.published()) == {f"{system.base}/moved"},
        "the page moved by its id alone",
    )
    system.quiet()
    assert system.run("verify").returncode == 0

    (before,) = json.loads(system.run("workers", "--json").stdout)
    assert (before["name"], before["state"], before["pid"]) == (
        "local", "working", system.pid("worker"),
    )  # fmt: skip
    assert system.run("workers", "stop", "local").returncode == 0
    wait_until(lambda: system.pid("worker") != before["pid"], "the worker is started again")
    system.send({"type": "upsert", "loc": f"{system.base}/b"})
    wait_until(lambda: len(system.published()) == 2, "it works")


@pytest.mark.parametrize(
    ("form", "path", "kind"),
    [
        ("xml", "/pages-1.xml", "application/xml"),
        ("xml.gz", "/pages-1.xml.gz", "application/gzip"),
        ("encoded", "/pages-1.xml", "application/xml"),
    ],
)
def test_each_form_is_served_as_what_it_is(
    tmp_path: Path, request: pytest.FixtureRequest, form: str, path: str, kind: str
) -> None:
    system = System(tmp_path / "home", {"SITEMAPD_SITES__DEMO__FORM": form})
    system.start()
    request.addfinalizer(system.end)
    system.send({"type": "upsert", "loc": f"{system.base}/a"})
    wait_until(lambda: system.get("/sitemap.xml")[0] == 200, "the index is served")
    system.quiet()

    status, headers, body = system.get(path, Accept_Encoding="gzip")

    assert status == 200
    assert headers["Content-Type"].startswith(kind)
    assert (headers["Content-Encoding"] == "gzip") == (form == "encoded")
    text = (gzip.decompress(body) if form != "xml" else body).decode()
    assert f"<loc>{system.base}/a</loc>" in text
    again, _, _ = system.get(path, Accept_Encoding="gzip", If_None_Match=headers["ETag"])
    assert again == 304
    assert system.run("verify").returncode == 0


def test_verify_finds_a_file_that_was_touched_and_rebuild_heals_it(site: System) -> None:
    pages = {f"{site.base}/touched/{n}" for n in range(50)}
    site.send(*({"type": "upsert", "loc": loc} for loc in pages))
    wait_until(lambda: pages <= site.published().keys(), "50 pages are published")
    site.quiet()
    shard, index = site.root / "pages-1.xml", site.root / "sitemap.xml"
    whole = shard.read_bytes()
    shard.write_bytes(whole.replace(b"/7<", b"/8<"))
    index.unlink()
    (site.root / "pages-9.xml").write_bytes(whole)

    found = site.run("verify", "--json")

    assert found.returncode == 1
    assert {each["name"]: each["what"] for each in json.loads(found.stdout)["differences"]} == {
        "pages-1.xml": "differs",
        "sitemap.xml": "missing",
        "pages-9.xml": "unexpected",
    }
    assert site.run("rebuild").returncode == 0
    assert site.run("verify").returncode == 0
    assert shard.read_bytes() == whole

    seen = site.run("status", "--watch", "--count", "2", "--interval", "0.1")
    assert (seen.returncode, seen.stdout.count("last publish")) == (0, 2)
    found = site.run("doctor", "--json")
    checks = json.loads(found.stdout)["checks"]
    said = {check["check"]: check["status"] for check in checks}
    assert said.pop("consistency") == "skip", "nobody has looked yet"
    assert set(said.values()) == {"ok"}, checks
    assert {"clock", "public file", "webhook"} <= set(said)
    assert found.returncode == 0


def test_a_bad_configuration_names_every_fault_and_exits_78(tmp_path: Path) -> None:
    (tmp_path / "sitemapd.toml").write_text(
        '[sites.demo]\nbase_url = "ftp://x"\nweb_root = "public"\ntokens = ["short"]\ncolour = 1\n'
    )
    system = System(tmp_path)

    said = system.run("config", "check")

    assert said.returncode == 78
    for field in ("sites.demo.base_url", "sites.demo.tokens", "sites.demo.colour"):
        assert field in said.stderr


def test_a_name_in_outputs_hosts_that_no_site_has_is_warned_of_and_no_fault(tmp_path: Path) -> None:
    site = '[sites.{0}]\nbase_url = "https://{0}.example/"\nweb_root = "{0}"\ntokens = ["{1}"]\n'
    text = "".join(site.format(name, "0123456789abcdef") for name in ("shop", "www"))
    file = tmp_path / "sitemapd.toml"
    file.write_text(f'{text}[sites.www.outputs]\nhosts = ["shop", "blog"]\n')
    system = System(tmp_path)

    said = system.run("config", "check")
    warning = (
        "outputs.hosts names blog, and no site has that name: sitemap-hosts.xml is written without "
        "it. Add [sites.blog], or take the name out"
    )
    assert (said.returncode, said.stderr) == (0, "")
    lines = said.stdout.splitlines()
    assert [each for each in lines if each.startswith("warn")] == [f"warnings  {warning}"]
    shop, www = json.loads(system.run("config", "check", "--json").stdout)
    assert ("warnings" in shop, www["warnings"]) == (False, [warning])

    (tmp_path / "sites.d").mkdir()
    (tmp_path / "sites.d" / "blog.toml").write_text(site.format("blog", "0123456789abcdef"))
    assert "warnings" not in system.run("config", "check").stdout


def test_a_page_with_everything_is_sent_from_the_shell_and_its_versions_follow(
    system: System,
) -> None:
    """PROTOCOL C0, H2, W1: images, videos, news and translations through all of the parts."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    german = {
        "type": "upsert", "loc": f"{system.base}/de/neu", "section": "posts", "title": "Neu",
        "images": [{"loc": "https://cdn.example.com/a.jpg", "caption": "alt"}],
        "videos": [{
            "thumbnail_loc": "https://cdn.example.com/t.jpg", "title": "Film & Ton",
            "description": "...", "content_loc": "https://cdn.example.com/a.mp4",
        }],
        "news": {
            "publication": {"name": "Beispiel", "language": "de"}, "publication_date": now,
            "title": "Neu",
        },
        "group": "new", "lang": ["de", "x-default"],
    }  # fmt: skip
    (system.home / "event.json").write_text(json.dumps(german))
    said = system.run(
        "event", "send", "--file", str(system.home / "event.json"), "--watch", "--json"
    )
    steps = {step["step"]: step["what"] for step in json.loads(said.stdout)["steps"]}
    assert "caption is deprecated" in steps["warning"]
    system.send({"type": "upsert", "loc": f"{system.base}/en/new", "group": "new", "lang": "en"})
    system.quiet()

    assert set(written(system, "posts-1.xml", "image", "loc")) == {"https://cdn.example.com/a.jpg"}
    assert written(system, "posts-1.xml", "video", "title") == ["Film & Ton"]
    assert written(system, "news-1.xml", "news", "title") == ["Neu"]
    for name in ("posts-1.xml", "pages-1.xml"):
        assert (system.root / name).read_text().count('rel="alternate"') == 3
    assert system.run("verify").returncode == 0


def written(system: System, name: str, extension: str, tag: str) -> list[str | None]:
    """The texts of an extension's tag in one file."""
    root = ET.parse(system.root / name).getroot()
    found = root.iter()
    return [each.text for each in found if each.tag.endswith(f"{tag}") and extension in each.tag]
