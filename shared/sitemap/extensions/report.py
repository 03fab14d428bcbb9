"""Report of the faults and warnings found while a value is checked."""

from __future__ import annotations

from shared.errors import SitemapdError

Finding = tuple[str, str, str]
"""Field, rule and detail, as in shared.errors.Fault."""


class ValueRefusedError(SitemapdError):
    """A value that cannot be published; the message states the remedy.

    `rule` is the id of the broken rule if the value itself shows it (`PROTOCOL L1`), else empty:
    then the rule is that of the field.
    """

    def __init__(self, detail: str, rule: str = "") -> None:
        super().__init__(detail)
        self.detail, self.rule = detail, rule


class ValueReport:
    """Collection of faults, which refuse an event, and warnings, which do not."""

    def __init__(self) -> None:
        self.faults: list[Finding] = []
        self.warnings: list[Finding] = []

    def fault(self, field: str, rule: str, detail: str) -> None:
        """Add the fault that `field` breaks `rule`."""
        self.faults.append((field, rule, detail))

    def warn(self, field: str, rule: str, detail: str) -> None:
        """Add a warning about the accepted `field`, unless one has the same rule and detail."""
        if all((rule, detail) != warning[1:] for warning in self.warnings):
            self.warnings.append((field, rule, detail))
