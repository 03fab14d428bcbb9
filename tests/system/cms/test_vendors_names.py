"""Guides and adapters whose vendors verify or name fields: Shopify, Webflow, Prismic, DatoCMS.

Data of a package is read in place; whatever a vendor signs is sent to a running sitemapd.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
import time

import pytest

from tests.system.cms.vendors import BASIC, SECRET, declared

pytestmark = [pytest.mark.cms_vendors, pytest.mark.timeout(1_800)]


class TestShopify:
    VALIDATE = """
import '@shopify/shopify-api/adapters/node'
import { ApiVersion, LogSeverity, ShopifyHeader, shopifyApi } from '@shopify/shopify-api'
const shop = shopifyApi({ apiKey: 'key', apiSecretKey: given.secret, hostName: 'hooks.example.com',
  apiVersion: ApiVersion.July26, isEmbeddedApp: false, logger: { level: LogSeverity.Error } })
const rawRequest = { method: 'POST', url: '/', headers: given.headers }
const said = await shop.webhooks.validate({ rawBody: given.body, rawRequest, rawResponse: {} })
say({ ...said, names: Object.values(ShopifyHeader) })
"""

    def test_its_library_finds_valid_what_is_taken_and_names_the_headers_that_are_read(
        self, service
    ):
        body = json.dumps({"id": 1, "handle": "lamp", "status": "active", "published_at": "2026"})
        mac = hmac.digest(SECRET.encode(), body.encode(), "sha256")
        headers = {
            "x-shopify-hmac-sha256": base64.b64encode(mac).decode(),
            "x-shopify-topic": "products/create", "x-shopify-webhook-id": "w1",
            "x-shopify-shop-domain": "shop.myshopify.com", "x-shopify-api-version": "2026-07",
            "x-shopify-triggered-at": "2026-11-20T10:00:00Z",
        }  # fmt: skip
        said = service.packages.said(
            self.VALIDATE, {"secret": SECRET, "headers": headers, "body": body}
        )

        assert said["valid"] is True
        assert headers.keys() <= {name.lower() for name in said["names"]}
        assert service.take("shopify", body, headers)["accepted"] == 1
        service.lists("/products/lamp")


class TestWebflow:
    VERIFY = """
import { Webflow, WebflowClient } from 'webflow-api'
const { webhooks } = new WebflowClient({ accessToken: 'none' })
say({ valid: await webhooks.verifySignature(given), types: Object.values(Webflow.TriggerType) })
"""
    ITEM = {
        "id": "i1", "collectionId": "c1", "cmsLocaleId": "l1", "isArchived": False,
        "lastPublished": "2026-11-20T10:00:00Z", "fieldData": {"name": "A", "slug": "a"},
    }  # fmt: skip

    def test_its_library_verifies_what_is_taken_and_knows_every_trigger_of_the_guide(self, service):
        body = json.dumps({"triggerType": "collection_item_published", "payload": self.ITEM})
        now = str(int(time.time() * 1000))
        mac = hmac.digest(SECRET.encode(), f"{now}:{body}".encode(), "sha256").hex()
        headers = {"x-webflow-timestamp": now, "x-webflow-signature": mac}
        given = {"headers": headers, "body": body, "secret": SECRET}
        said = service.packages.said(self.VERIFY, given)
        named = set(re.findall(r"\b(?:collection_item|site)_\w+", service.guide("webflow")))

        assert said["valid"] is True
        assert len(named) == 4
        assert named <= {*said["types"]}
        assert service.take("webflow", body, headers)["accepted"] == 1
        service.lists("/webflow/a")

    @pytest.mark.parametrize(
        "name",
        ["Payload", "CollectionItemUnpublishedPayload", "CollectionItemRemovedPayload"],
    )
    def test_its_payloads_have_the_fields_that_are_read(self, service, name):
        types = service.packages.text("webflow-api", f"api/types/{name}.d.ts")

        assert self.ITEM.keys() <= declared(types, name)


class TestPrismic:
    TYPES = "import { WebhookType } from '@prismicio/client'; say(WebhookType)"

    def test_its_client_knows_both_types_and_where_the_secret_is(self, service):
        types = service.packages.said(self.TYPES)
        base = service.packages.text("@prismicio/client", "dist/types/webhook/types.d.ts")
        update, test = (
            service.take("prismic", json.dumps({"type": types[name], "secret": SECRET}), {})
            for name in ("APIUpdate", "TestTrigger")
        )

        assert {"type", "secret"} <= declared(base, "WebhookBodyBase")
        assert "resync" in update
        assert "not about documents" in test["ignored"]


class TestDatoCms:
    def test_its_client_knows_the_triggers_settings_and_fields_that_are_named(self, service):
        types = service.packages.text("@datocms/cma-client", "dist/types/generated/ApiTypes.d.ts")
        events = re.search(r"event_types: \(([^)]+)\)", types)
        status = re.search(r"status: null \| \(([^)]+)\)", types)
        named = re.search(
            r"Record: ([\w, ]+); for models without drafts also create,\s+update",
            service.guide("datocms"),
        )
        assert events is not None
        assert status is not None
        assert named is not None

        known = set(re.findall(r"'(\w+)'", events[1]))
        assert {*named[1].split(", "), "create", "update"} <= known
        assert "'published'" in status[1]
        assert {"status", "updated_at", "first_published_at"} <= declared(types, "ItemMeta")
        assert {"http_basic_user", "http_basic_password", "auto_retry", "custom_payload"} <= (
            declared(types, "Webhook")
        )
        assert "'item'" in types

    def test_a_record_with_the_password_is_taken(self, service):
        entity = {
            "id": "r1", "type": "item", "attributes": {"slug": "a"},
            "meta": {"status": "published", "updated_at": "2026-11-20T10:00:00Z"},
            "relationships": {"item_type": {"data": {"id": "m1", "type": "item_type"}}},
        }  # fmt: skip
        model = {"id": "m1", "type": "item_type", "attributes": {"api_key": "blog_post"}}
        body = {
            "entity_type": "item", "event_type": "publish", "entity": entity,
            "related_entities": [model], "webhook_call_id": "1",
        }  # fmt: skip
        basic = {"authorization": "Basic " + base64.b64encode(BASIC.encode()).decode()}

        assert service.take("datocms", json.dumps(body), basic)["accepted"] == 1
        service.lists("/datocms/a")
