"""Fields of forms: the site, and the number of events that the form showed."""

from __future__ import annotations

from collections.abc import Mapping

from shared.errors import Fault, InvalidError
from webhook.console.presentation import template_filters
from webhook.console.services import Services

_FEW = 10
_SHARE = 0.1


def site_of(services: Services, form: Mapping[str, str]) -> str:
    """Return the site of this form. Raises InvalidError if it is not configured."""
    name = form.get("site", "")
    if name not in services.sites:
        raise InvalidError(Fault("site", "config", f"{name[:80]!r} is not configured"))
    return name


def expect(form: Mapping[str, str], events: int, *, exactly: bool = False) -> None:
    """Raise InvalidError if `events` differs too much from the number that the form showed: by a
    tenth and by more than 10, or at all if `exactly`.
    """
    given = form.get("events", "")
    seen = int(given) if given.isascii() and given.isdigit() and len(given) < 12 else -1
    most = 0 if exactly else max(_FEW, seen * _SHARE)
    if seen < 0 or abs(events - seen) > most:
        now = template_filters.plural(events, "event")
        detail = f"there are now {now}, not {given[:12]}: reload the page"
        raise InvalidError(Fault("events", "count", detail))
