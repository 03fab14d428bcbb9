"""Every error sitemapd raises on purpose: one tree, each class one sentence for its reader."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """One thing wrong with one input.

    `field` names the member (`lastmod`, `sites.demo.base_url`, `headers`), `rule` is the id of the
    rule it breaks (`PROTOCOL L2`) or a short code, `detail` says what is wrong and what to do.
    `item` is the zero-based position in a batch, None outside one.
    """

    field: str
    rule: str
    detail: str
    item: int | None = None

    def __str__(self) -> str:
        where = self.field if self.item is None else f"[{self.item}].{self.field}"
        return f"{where}: {self.detail} ({self.rule})"


class SitemapdError(Exception):
    """Something sitemapd could not do; the message says what to do about it."""


class InvalidError(SitemapdError):
    """The input breaks rules; `faults` names each of them."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults


class ConfigError(InvalidError):
    """The configuration is wrong; nothing was started."""


class DateError(SitemapdError):
    """The text is no date or time in the W3C profile (PROTOCOL M1)."""


class UrlError(SitemapdError):
    """The URL cannot be listed by this site; `rule` is the id of the rule it breaks."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(detail)
        self.rule = rule
        self.detail = detail


class RobotsError(SitemapdError):
    """robots.txt was left alone because editing it would not be safe."""


class SourceError(SitemapdError):
    """A source to import from cannot be read at all."""


class UnusableSourceError(SourceError):
    """The source was read and lists no pages; `rule` is the id of the rule it breaks."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(detail)
        self.rule = rule


class ReconcileError(SitemapdError):
    """A source was not, or not completely, made the truth; what was done is right, and stays."""


class CheckError(SitemapdError):
    """A check of what is listed did not come to its end; nothing was changed by it."""


class StoreError(SitemapdError):
    """The state store refused or is in a state that must not be published from."""


class StoreDownError(StoreError):
    """Redis did not answer in time; nothing is known about the last write."""


class LostLineError(StoreError):
    """A page is listed by its record and by no line: the state is damaged."""

    def __init__(self, loc: str) -> None:
        super().__init__(f"{loc} is listed, and its line is nowhere: run sitemapd rebuild")


class ContendedError(StoreError):
    """Other workers have changed the same records again and again: nothing was written."""


class UnsafeStoreError(StoreError):
    """Redis is configured so that it may lose acknowledged events."""


class PublishError(SitemapdError):
    """Files could not be written; the old ones are untouched and the work stays queued."""


class ForeignStateError(PublishError):
    """The files are of another or a newer state than this Redis holds; `todo` is the remedy."""

    def __init__(self, reason: str, todo: str) -> None:
        super().__init__(f"{reason}: nothing is published. {todo[:1].upper()}{todo[1:]}")
        self.reason, self.todo = reason, todo


class OvertakenError(PublishError):
    """Another publisher has replaced a file meanwhile; the next pass looks again."""


class ShardError(PublishError):
    """One shard cannot be written as it is stored: it is held back, the others are published."""


class UnwritableError(ShardError):
    """One file cannot be written where it belongs, others can: it is held back alone."""


class CredentialError(SitemapdError):
    """What proves to a search engine who we are is missing or cannot be read."""


class OutboundError(SitemapdError):
    """A request to a search engine got no whole answer; it may later."""


class BarredError(OutboundError):
    """A request that is not allowed to leave: nothing was sent (RELIABILITY T22)."""


class BackupError(SitemapdError):
    """A backup could not be written, or a file is none that can be restored."""


class ServerStartError(SitemapdError):
    """The embedded Redis-compatible server could not be started."""
