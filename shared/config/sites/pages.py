"""The table `pages` of a site: how its listed pages are looked at, and what follows from it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

from pydantic import Field, field_validator

from shared.config.credentials import ConfigModel

FEWEST_RECORDS, MOST_RECORDS = 65_536, 2_000_000


class LookSettings(ConfigModel):
    """Looks at the pages of one site; without the table nothing is fetched."""

    daily: int = Field(2_000, ge=1, le=1_000_000, description="requests a day at most")
    interval: float = Field(
        1.0, ge=0, le=3_600, allow_inf_nan=False,
        description="seconds between two requests to the host, at least",
    )  # fmt: skip
    broken: Literal["warn", "unlist"] = Field(
        "warn", description="unlist: pages that are not 200 and indexable leave the sitemap"
    )
    confirm_minutes: float = Field(
        5.0, ge=0, le=1_440, allow_inf_nan=False,
        description="minutes after which a page that was found broken is looked at again",
    )  # fmt: skip
    again_hours: float = Field(
        24.0, gt=0, le=8_784, allow_inf_nan=False,
        description="hours until a round over the pages begins again, at least",
    )  # fmt: skip
    alarm_broken: float = Field(
        2.0, gt=0, le=100, allow_inf_nan=False,
        description="per cent of broken pages above which there is an alarm",
    )  # fmt: skip
    alarm_fewer: float = Field(
        10.0, gt=0, le=100, allow_inf_nan=False,
        description="per cent of pages fewer than in the rounds before, likewise",
    )  # fmt: skip
    gate: bool = Field(
        False, description="list a new page only once it was seen to be 200 and indexable"
    )
    prove_lastmod: bool = Field(
        False, description="take a new date only once the page was seen to have changed"
    )
    wait_hours: float = Field(
        24.0, gt=0, le=8_784, allow_inf_nan=False,
        description="hours for which a new page or a date waits for a look, at most",
    )  # fmt: skip
    records: int = Field(
        200_000, ge=FEWEST_RECORDS, le=MOST_RECORDS,
        description="pages whose last look is kept, about 40 bytes each",
    )  # fmt: skip

    @property
    def gate_ms(self) -> int:
        """Milliseconds for which a new page waits at most; 0: not at all."""
        return round(self.wait_hours * 3_600_000) if self.gate else 0

    @property
    def prove_ms(self) -> int:
        """Milliseconds for which a date waits at most; 0: not at all."""
        return round(self.wait_hours * 3_600_000) if self.prove_lastmod else 0

    @field_validator("prove_lastmod")
    @classmethod
    def _has_extractor(cls, wanted: bool) -> bool:
        if wanted and find_spec("resiliparse") is None:
            raise ValueError("needs the library resiliparse: pip install 'sitemapd[pages]'")
        return wanted


def as_table(given: object) -> object:
    """Return `given` unless it is a boolean, the meaning of `pages` before it was a table.

    Raises ValueError.
    """
    if isinstance(given, bool):
        raise ValueError(  # noqa: TRY004  # the only error that pydantic reports
            "is a table by now, [sites.NAME.pages], and looks at the pages; for sitemap.html and "
            f"sitemap.css: viewer = {str(given).lower()}"
        )
    return given
