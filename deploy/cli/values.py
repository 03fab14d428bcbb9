"""Values of options and arguments that need no conversion.

typer converts each with pydantic, even a missing one and a default: loading that takes as long as
all else that a small command does. What is plainly valid is taken here as it is; whatever has to be
converted or refused is left to typer, with its messages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from typer import core
from typer._coercion import RuntimeParam, TypeDescriptor, build_runtime_param
from typer._param_types import coerce_cli_path


class ValueReader:
    """Reads the value of one parameter, in the place of typer's converter of it."""

    def __init__(self, descriptor: TypeDescriptor) -> None:
        self._descriptor = descriptor
        self._converter: RuntimeParam | None = None

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return `value` as the parameter's type. Raises BadParameter."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        kind, info = self._descriptor.annotation, self._descriptor.parameter_info
        if info.parser is None:
            if _is_plain(value, kind):
                return value
            if self._descriptor.is_list and _are_plain(value, *get_args(kind)):
                return list(value)
            if kind is Path and isinstance(value, str):
                return coerce_cli_path(Path(value), info, path_type=Path, param=param, ctx=ctx)
        if self._converter is None:
            self._converter = build_runtime_param(self._descriptor)
        return self._converter.coerce(value, param=param, ctx=ctx)


def _is_plain(value: object, kind: Any) -> bool:
    """True if `value`, a text of the command line or a default, is of the `kind` as it stands."""
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    return type(value) is kind


def _are_plain(values: object, kind: Any) -> bool:
    return isinstance(values, (list, tuple)) and all(_is_plain(value, kind) for value in values)


def read_plainly() -> None:
    """Let typer read the values of every parameter by ValueReader."""
    core.build_runtime_param = ValueReader  # type: ignore[assignment, attr-defined]
