"""Packages that vendors publish on npm, in the cache of the CMSes: read and run in place."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from tests.system.cms.installing import Node, installed
from tests.system.driver import System, wait_until

LEAST = (22, 12)
"""What groq-js and the packages of Shopify ask for."""
PINS = {
    "@contentful/node-apps-toolkit": "3.16.1",
    "@datocms/cma-client": "5.8.1",
    "@octokit/webhooks-examples": "7.6.1",
    "@octokit/webhooks-methods": "6.0.0",
    "@prismicio/client": "7.22.0",
    "@sanity/webhook": "4.0.4",
    "@shopify/shopify-api": "15.0.0",
    "groq-js": "2.0.1",
    "webflow-api": "3.3.4",
}
SITE = "https://www.example.com"
SECRET = "only-for-these-tests-only-for-these-tests-only-for-these-tests-0"  # Contentful wants 64
BASIC = f"sitemapd:{SECRET}"
CONFIG = f"""\
[sites.demo]
base_url = "{SITE}"
web_root = "public"
secrets = ["whsec_b25seS1mb3ItdGhlc2UtdGVzdHMtb25seQ=="]
shrink_share = 1

[sites.demo.sources.contentful]
secret = "{SECRET}"
locales = ["en-US", "de"]
permalinks = {{ blogPost = "/contentful/{{locale}}/{{slug}}" }}

[sites.demo.sources.datocms]
secret = "{BASIC}"
permalinks = {{ blog_post = "/datocms/{{slug}}" }}

[sites.demo.sources.github]
secret = "{SECRET}"
permalinks = {{ "{{name}}.md" = "/github/{{name}}" }}

[sites.demo.sources.prismic]
secret = "{SECRET}"

[sites.demo.sources.sanity]
secret = "{SECRET}"
permalinks = {{ post = "/sanity/{{locale}}/{{slug}}" }}

[sites.demo.sources.shopify]
secret = "{SECRET}"

[sites.demo.sources.webflow]
secret = "{SECRET}"
permalinks = {{ c1 = "/webflow/{{fieldData.slug}}" }}
"""
_READ = "import { readFileSync } from 'node:fs'; const given = JSON.parse(readFileSync(0, 'utf8'));"


class Packages:
    """Packages of pinned versions in one directory, and the Node.js that runs scripts with them."""

    def __init__(self, name: str, pins: Mapping[str, str]) -> None:
        self.node = Node(LEAST)
        self.pins = pins
        self.place = installed(name, pins, self._install)

    def _install(self, place: Path) -> None:
        package = {"private": True, "type": "module", "dependencies": dict(self.pins)}
        (place / "package.json").write_text(json.dumps(package))
        self.node.install(place, "--ignore-scripts")

    def text(self, package: str, path: str) -> str:
        """The text of one file of a package."""
        return (self.place / "node_modules" / package / path).read_text()

    def said(self, script: str, given: object = None) -> Any:
        """The value that `script`, an ES module, gives to `say`; its input is `given`."""
        said = "const say = (value) => process.stdout.write(JSON.stringify(value) + '\\n');"
        done = subprocess.run(
            [self.node.program, "--no-warnings", "--input-type=module", "--eval",
             f"{_READ}{said}\n{script}"],
            cwd=self.place, input=json.dumps(given), capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])


class Service:
    """A running sitemapd, connected to every vendor here, and the packages of these."""

    def __init__(self, packages: Packages, system: System) -> None:
        self.packages, self.system = packages, system

    def guide(self, cms: str) -> str:
        """The words that `sitemapd connect` prints."""
        done = self.system.run("connect", cms, "--to", "https://hooks.example.com")
        assert done.returncode == 0, done.stderr
        return done.stdout

    def take(self, cms: str, body: str, headers: Mapping[str, str], status: int = 200) -> Any:
        """The answer to one delivery."""
        known = {"content-type": "application/json", **headers}
        url = f"{self.system.address}/v1/sites/demo/hooks/{cms}"
        answer = httpx.post(url, content=body.encode(), headers=known, timeout=30)
        assert answer.status_code == status, answer.text
        return answer.json()

    def lists(self, path: str) -> None:
        """Wait until the published sitemap has a page."""
        wait_until(lambda: SITE + path in self.system.published(), f"{path} is listed")


def declared(text: str, name: str) -> set[str]:
    """The members of the type `name` in a declaration file."""
    found = re.search(rf"(?:interface|type) {name}\b[^{{]*{{(.*?)\n}}", text, re.DOTALL)
    assert found is not None, name
    return set(re.findall(r"^\s*(\w+)\??:", found[1], re.MULTILINE))
