"""What is found wrong with a value while it is taken."""

from __future__ import annotations

from shared.errors import SitemapdError

Finding = tuple[str, str, str]
"""Field, rule and detail, as in shared.errors.Fault."""


class ValueRefusedError(SitemapdError):
    """The value cannot be published; the message says what to send instead.

    `rule` is the id of the rule it breaks where the value itself shows which (`PROTOCOL L1`),
    else empty: then the rule is that of the field.
    """

    def __init__(self, detail: str, rule: str = "") -> None:
        super().__init__(detail)
        self.detail, self.rule = detail, rule


class ValueReport:
    """Gathers faults, which refuse an event, and warnings, which do not."""

    def __init__(self) -> None:
        self.faults: list[Finding] = []
        self.warnings: list[Finding] = []

    def fault(self, field: str, rule: str, detail: str) -> None:
        """`field` breaks `rule`."""
        self.faults.append((field, rule, detail))

    def warn(self, field: str, rule: str, detail: str) -> None:
        """`field` was taken, but; a second warning that says the same is left out."""
        if all((rule, detail) != said[1:] for said in self.warnings):
            self.warnings.append((field, rule, detail))
