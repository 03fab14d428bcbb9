"""Guides and adapters whose vendors sign and show deliveries: Contentful, Sanity, GitHub.

Data of a package is read in place; whatever a vendor signs is sent to a running sitemapd.
"""

from __future__ import annotations

import json
import re
import time

import pytest

from tests.system.cms.vendors import SECRET, SITE, Service
from tests.unit.worker.sources.cms import Asked, Reply, served

pytestmark = [pytest.mark.cms_vendors, pytest.mark.timeout(1_800)]


class TestContentful:
    SIGN = "import { signRequest } from '@contentful/node-apps-toolkit'; say(signRequest(...given))"
    ENTRY = {
        "sys": {"id": "e1", "contentType": {"sys": {"id": "blogPost"}}},
        "fields": {"slug": {"en-US": "a"}},
    }

    def test_what_its_toolkit_signs_is_taken_and_what_was_changed_is_not(self, service):
        body = json.dumps(self.ENTRY)
        given = {
            "content-type": "application/vnd.contentful.management.v1+json",
            "x-contentful-topic": "ContentManagement.Entry.publish",
        }
        path = "/v1/sites/demo/hooks/contentful"
        request = {"method": "POST", "path": path, "headers": given, "body": body}
        signed = service.packages.said(self.SIGN, [SECRET, request])

        assert service.take("contentful", body, given | signed)["accepted"] == 2
        service.lists("/contentful/en-US/a")
        service.take("contentful", body + " ", given | signed, 401)

    def test_its_typings_know_every_event_of_the_guide(self, service):
        types = service.packages.text(
            "@contentful/node-apps-toolkit", "lib/requests/typings/index.d.ts"
        )
        entry = re.search(r"\bEntry: {(.*?)}", types, re.DOTALL)
        named = re.search(r"Events: Entry ([\w, ]+)\.", service.guide("contentful"))

        assert entry is not None
        assert named is not None
        assert set(named[1].split(", ")) <= set(re.findall(r"(\w+):", entry[1]))


class TestSanity:
    QUERY = """
import { evaluate, parse } from 'groq-js'
import { encodeSignatureHeader, SIGNATURE_HEADER_NAME } from '@sanity/webhook'
const tree = parse(`*[${given.filter}] ${given.projection}`)
const found = await (await evaluate(tree, { dataset: given.dataset })).get()
const body = JSON.stringify(found[0])
say({ found, body, name: SIGNATURE_HEADER_NAME,
      signature: await encodeSignatureHeader(body, given.now, given.secret) })
"""

    def test_the_printed_projection_runs_in_groq_and_what_its_toolkit_signs_is_taken(self, service):
        guide = service.guide("sanity")
        filtered = re.search(r"Filter +(.+)", guide)
        projected = re.search(r"Projection +({.*?})\n", guide, re.DOTALL)
        assert filtered is not None
        assert projected is not None
        document = {
            "_id": "d1", "_type": "post", "_updatedAt": "2026-11-20T10:00:00Z", "title": "A",
            "slug": {"current": "a"}, "language": "en", "publishedAt": "2026-11-19T10:00:00Z",
            "seo": {"noindex": False, "canonical": f"{SITE}/sanity/en/a"}, "body": [{}],
        }  # fmt: skip
        found = service.packages.said(self.QUERY, {
            "filter": filtered[1], "projection": projected[1], "secret": SECRET,
            "dataset": [{"_id": "x", "_type": "author"}, document], "now": int(time.time() * 1000),
        })  # fmt: skip

        assert found["found"] == [{
            "_id": "d1", "_type": "post", "_updatedAt": "2026-11-20T10:00:00Z", "slug": "a",
            "publishedAt": "2026-11-19T10:00:00Z", "title": "A", "locale": "en", "noindex": False,
            "canonical": f"{SITE}/sanity/en/a",
        }]  # fmt: skip
        headers = {found["name"]: found["signature"], "sanity-operation": "create"}
        assert service.take("sanity", found["body"], headers)["accepted"] == 1
        service.lists("/sanity/en/a")
        service.take("sanity", found["body"] + " ", headers, 401)

    READ = """
import { evaluate, parse } from 'groq-js'
const tree = parse(given.query, { params: given.params })
say(await (await evaluate(tree, { dataset: given.dataset, params: given.params })).get())
"""

    def test_the_query_of_the_reader_runs_in_groq(self, service):
        """Published documents of the type, by their ids, in the form that the webhook sends."""
        dataset = [
            {"_id": f"{number}", "_type": kind, "_updatedAt": "2026-11-20T10:00:00Z",
             "slug": {"current": f"read-{number}"}, "language": "en"}
            for number, kind in ((1, "post"), (2, "author"), (3, "post"))
        ]  # fmt: skip

        def answer(asked: Asked) -> Reply:
            said = json.loads(asked.body)
            given = {"query": said["query"], "params": said["params"], "dataset": dataset}
            return Reply({"result": service.packages.said(self.READ, given)})

        with served(answer) as url:
            done = service.system.run("import", "--from", f"sanity:{url}/production#post", "--json")
        assert json.loads(done.stdout)["sent"] == 2, done.stdout + done.stderr
        service.lists("/sanity/en/read-1")
        service.lists("/sanity/en/read-3")


class TestGitHub:
    SIGN = """
import { sign } from '@octokit/webhooks-methods'
say(await Promise.all(given.bodies.map((body) => sign(given.secret, body))))
"""

    def examples(self, service: Service) -> list[tuple[str, str, str]]:
        """Name, body and signature of each example of its payloads."""
        text = service.packages.text("@octokit/webhooks-examples", "api.github.com/index.json")
        found = [(kind["name"], json.dumps(one)) for kind in json.loads(text)
                 for one in kind["examples"][: None if kind["name"] == "push" else 1]]  # fmt: skip
        bodies = [body for _, body in found]
        signed = service.packages.said(self.SIGN, {"secret": SECRET, "bodies": bodies})
        return [(*one, signature) for one, signature in zip(found, signed, strict=True)]

    def test_its_examples_signed_by_its_package_are_taken_where_they_push_pages(self, service):
        taken = 0
        for event, body, signature in self.examples(service):
            headers = {"x-github-event": event, "x-hub-signature-256": signature}
            answer = service.take("github", body, headers)
            pushed = event == "push" and json.loads(body)["ref"].startswith("refs/heads/")
            taken += pushed
            assert bool(answer["accepted"]) == pushed, (event, answer)

        assert taken
        service.lists("/github/README")
