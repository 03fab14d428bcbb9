"""Adapter for GitHub: pushes to the repository whose files are the pages (WEBHOOKS 2)."""

from __future__ import annotations

from collections.abc import Iterable

from shared.cms.fields import Fields, date, items, text, texts
from shared.cms.pages import SentPage
from shared.events.permalinks import pattern
from webhook.sources import signatures
from webhook.sources.adapter import (
    JSON,
    AdapterContext,
    Delivery,
    IgnoredDelivery,
    Outcome,
    Proof,
    ResyncAsked,
    SenderSecrets,
)
from webhook.sources.guides import Guide, checked, documented
from webhook.sources.payload_fields import document

NAME = "github"
MEDIA_TYPES = JSON
MOST_COMMITS = 2_048
"""Largest number of commits that a push lists."""

GUIDE = Guide(
    title="GitHub (a site made of files)",
    credential="you choose it: 16 characters or more",
    place="the Secret of the webhook",
    steps="""\
1. Repository > Settings > Webhooks > Add webhook.
   Payload URL   {address}
   Content type  application/json
   Secret        {secret}
   Events        Just the push event
2. In sitemapd.toml, which files are pages, and where; {{name}} is one folder or file name,
   {{name:path}} any number of folders:
   permalinks = {{ "content/posts/{{slug}}.md" = "/blog/{{slug}}/" }}""",
    sends="the files that were added, changed and removed on the published branch",
    caveats="a push comes before the site is built; a file that is a draft by its front matter is"
    " taken for a page; GitHub repeats nothing by itself, but Redeliver works for three days; a"
    " forced push asks for a reconcile",
    evidence={
        "signature, form of a push": checked(
            "@octokit/webhooks-methods 6.0.0", "@octokit/webhooks-examples 7.6.1"
        ),
        "clicks, limits, Redeliver": documented(
            "https://docs.github.com/en/webhooks/webhook-events-and-payloads#push",
            "https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries",
            "https://docs.github.com/en/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks",
        ),
    },
    config='permalinks = { "content/{slug:path}.md" = "/{slug}/" }',
    chosen=True,
)


def verify(hook: Delivery, keys: SenderSecrets, _now: float) -> Proof:
    """Verify `X-Hub-Signature-256: sha256=hex` over the body. Raises UnauthorizedError."""
    how, _, digest = signatures.header(hook.headers, "x-hub-signature-256").partition("=")
    given = signatures.hexed(digest) if how == "sha256" else None
    signatures.signed(given, hook.body, keys.secrets, "sha256")
    return Proof(hook.headers.get("x-github-delivery"))


def translate(hook: Delivery, config: AdapterContext) -> Iterable[Outcome]:
    """Yield the change of each file in a push; committers are not read."""
    event = hook.headers.get("x-github-event", "")
    if event != "push":
        yield IgnoredDelivery(f"{event[:64] or 'no event'}: not a push")
        return
    said = document(hook.body)
    branch = config.connection.branch or text(said, "repository.default_branch")
    if text(said, "ref") != f"refs/heads/{branch}":
        yield IgnoredDelivery("a push to another branch than the published one")
        return
    commits = items(said.get("commits"))
    if said.get("forced") is True or said.get("deleted") is True or len(commits) >= MOST_COMMITS:
        yield ResyncAsked("", "a push that does not list all of its changes")
        return
    found = 0
    for path, commit in _last(commits).items():
        for outcome in _file(path, commit, config):
            found += 1
            yield outcome
    if not found:
        yield IgnoredDelivery("no file that is a page: see the patterns in permalinks")


def _last(commits: list[Fields]) -> dict[str, Fields | None]:
    """Return the last commit that changed each file, None if that commit removed it."""
    found: dict[str, Fields | None] = {}
    for commit in commits:
        for path in [*texts(commit.get("added")), *texts(commit.get("modified"))]:
            found[path] = commit
        for path in texts(commit.get("removed")):
            found[path] = None
    return found


def _file(path: str, commit: Fields | None, config: AdapterContext) -> Iterable[Outcome]:
    for kind in config.connection.permalinks:
        match = pattern(kind).fullmatch(path)
        if match is None:
            continue
        if commit is None:
            yield config.gone(kind, path, ("file", ""))
        else:
            members = {"lastmod": date(commit, "timestamp")}
            fields = match.groupdict()
            yield from config.page(
                SentPage(kind, path, fields, members=members, owner=("file", ""))
            )
        return
