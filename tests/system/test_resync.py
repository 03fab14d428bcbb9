"""A resync over HTTP: the source is read by the worker, and what it says is published."""

from __future__ import annotations

import json

from tests.system.driver import System, wait_until


def test_a_resync_brings_what_the_source_says(system: System) -> None:
    pages = [f"{system.base}/blog/{n}" for n in range(20)]
    source = system.home / "pages.ndjson"
    source.write_text("".join(json.dumps({"loc": page}) + "\n" for page in pages))
    assert system.stop() == 0
    config, line = system.home / "sitemapd.toml", "[sites.demo]\n"
    config.write_text(config.read_text().replace(line, f'{line}source = "ndjson:{source}"\n'))
    system.start()
    system.send(*({"type": "upsert", "loc": page} for page in [*pages[:15], pages[0] + "/old"]))
    wait_until(lambda: len(system.published()) == 16, "what was sent is published")

    system.send({"type": "resync", "prefix": f"{system.base}/blog/"})

    wait_until(lambda: set(system.published()) == set(pages), "what the source says is published")
    system.quiet()
    assert system.run("verify", "--against", "configured").returncode == 0
    assert not json.loads(system.run("status", "--json").stdout)[0]["resync"]
