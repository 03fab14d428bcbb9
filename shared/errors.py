"""Every error that sitemapd raises on purpose, in one tree."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """One fault in one input.

    `field` names the member (`lastmod`, `sites.demo.base_url`, `headers`), `rule` is the id of the
    rule it breaks (`PROTOCOL L2`) or a short code, `detail` states the fault and the remedy.
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
    """Base class of the errors of sitemapd; the message states the remedy."""


class InvalidError(SitemapdError):
    """An input that breaks rules; `faults` names each violation."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults


class ConfigError(InvalidError):
    """An invalid configuration; nothing was started."""


class DateError(SitemapdError):
    """A text that is no date or time in the W3C profile (PROTOCOL M1)."""


class UrlError(SitemapdError):
    """A URL that the site cannot list; `rule` is the id of the rule it breaks."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(detail)
        self.rule = rule
        self.detail = detail


class RobotsError(SitemapdError):
    """An edit of robots.txt that would not be safe; the file is unchanged."""


class SourceError(SitemapdError):
    """A source that cannot be read at all."""


class UnusableSourceError(SourceError):
    """A source that was read and lists no pages; `rule` is the id of the rule it breaks."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(detail)
        self.rule = rule


class ReconcileError(SitemapdError):
    """A reconcile that did not start or complete; the changes made so far are correct and stay."""


class ConsentError(SitemapdError):
    """A site that an index of several hosts may not list (PROTOCOL R11); the others are listed."""


class CheckError(SitemapdError):
    """A check of the listed pages that did not complete; it changed nothing."""


class StoreError(SitemapdError):
    """A refusal by the state store, or a stored state that must not be published."""


class NotNowError(StoreError):
    """A refusal that no event caused: the same work is done later, and counts as no attempt."""


class StoreDownError(NotNowError):
    """No reply from Redis in time; the result of the last write is unknown."""


class NoWritesError(StoreDownError):
    """A Redis that answers and takes no writes: full, a replica, or starting."""


class LayoutError(NotNowError):
    """A state in a layout that this version does not work on; nothing was read of it or written."""


class LostLineError(StoreError):
    """A page that its record lists and no fragment does: the state is damaged."""

    def __init__(self, loc: str) -> None:
        super().__init__(f"{loc} is listed, but its entry is not stored: run sitemapd rebuild")


class ContendedError(StoreError):
    """Repeated concurrent changes of the same records by other workers; nothing was written."""


class UnsafeStoreError(StoreError):
    """A Redis configuration that may lose acknowledged events; `risk` says by which settings."""

    def __init__(self, *settings: str) -> None:
        self.risk = f"Redis may lose acknowledged events: {'; '.join(settings)}"
        super().__init__(
            f"{self.risk}. Correct the configuration of the server, or accept the loss with "
            "allow_loss = true."
        )


class PublishError(SitemapdError):
    """Files that could not be written; the old files are unchanged and the work stays queued."""


class ForeignStateError(PublishError):
    """Files of another or a newer state than this Redis holds; `todo` is the remedy."""

    def __init__(self, reason: str, todo: str) -> None:
        super().__init__(f"{reason}: nothing is published. {todo[:1].upper()}{todo[1:]}")
        self.reason, self.todo = reason, todo


class OvertakenError(PublishError):
    """A file that another publisher replaced meanwhile; the next publish pass checks again."""


class ShardError(PublishError):
    """A shard that cannot be written as it is stored: it is quarantined, others are published."""


class UnwritableError(ShardError):
    """A file that cannot be written where it belongs, while others can: only it is quarantined."""


class CredentialError(SitemapdError):
    """Credentials for a search engine that are missing or cannot be read."""


class OutboundError(SitemapdError):
    """A request that went out without a complete response; a later attempt may succeed."""


class BarredError(OutboundError):
    """A request to an address that is not allowed; nothing was sent (RELIABILITY T22)."""


class BackupError(SitemapdError):
    """A backup that could not be written, or a file that cannot be restored."""


class ServerStartError(SitemapdError):
    """A failed start of the embedded Redis-compatible server."""
