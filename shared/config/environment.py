"""`SITEMAPD_*` variables as values of the configuration, in the place of those of the file."""

from __future__ import annotations

import json
import types
from collections.abc import Container, Iterable, Mapping
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from shared.errors import ConfigError, Fault

PREFIX = "SITEMAPD_"
NESTED = "__"
"""SITEMAPD_CONSOLE__SESSION_HOURS is session_hours in the table console."""


def overlaid(given: dict[str, Any], environment: Mapping[str, str], model: Any) -> dict[str, Any]:
    """Return the tables `given` with the values of those variables that name a field of `model`.

    Tables and lists are given as JSON. Raises ConfigError with every variable that is none.
    """
    faults = []
    for path, name in sorted(_named(environment, model)):
        try:
            value = _value(environment[name], _kind(path, model))
        except ValueError:
            faults.append(Fault("environment", "config", f"{name} is not valid JSON"))
        else:
            _put(given, path, value)
    if faults:
        raise ConfigError(*faults)
    return given


def of_tables(environment: Mapping[str, str], table: str) -> dict[str, str]:
    """Return the variables for fields of the tables in `table`: SITEMAPD_SITES__SHOP__RATE."""
    begin = f"{PREFIX}{table}{NESTED}".lower()
    return {name: environment[name] for name in environment if name.lower().startswith(begin)}


def of_names(variables: Mapping[str, str], names: Container[str]) -> dict[str, str]:
    """Return those of the variables `of_tables` whose table is one of `names`."""
    return {
        variable: value
        for variable, value in variables.items()
        if variable.lower().split(NESTED)[1] in names
    }


def _named(environment: Mapping[str, str], model: Any) -> Iterable[tuple[list[str], str]]:
    """Yield path and name of each variable for a field of `model`; others have the prefix, too."""
    for name in environment:
        path = name.lower().removeprefix(PREFIX.lower()).split(NESTED)
        if name.upper().startswith(PREFIX) and path[0] in model.model_fields:
            yield path, name


def _value(text: str, kind: Any) -> Any:
    """Return the value that `text` is for a field of the type `kind`. Raises ValueError."""
    return json.loads(text) if _is_nested(kind) else text


def _put(table: Any, path: list[str], value: Any) -> None:
    """Set the value at `path`. Where the file has no table above it, that is a fault of its own."""
    *above, last = path
    for name in above:
        table = table.setdefault(name, {}) if isinstance(table, dict) else None
    if isinstance(table, dict):
        table[last] = value


def _kind(path: list[str], kind: Any) -> Any:
    """Return the type at `path` of the type `kind`, None if it has no such field."""
    for name in path:
        kind = next((found for each in _choices(kind) if (found := _member(each, name))), None)
    return kind


def _member(kind: Any, name: str) -> Any:
    if get_origin(kind) is dict:
        return get_args(kind)[1]
    if _is_model(kind) and name in kind.model_fields:
        return kind.model_fields[name].annotation
    return None


def _is_nested(kind: Any) -> bool:
    return any(get_origin(each) in {dict, tuple} or _is_model(each) for each in _choices(kind))


def _choices(kind: Any) -> Iterable[Any]:
    """Yield the types that `kind` may be."""
    origin = get_origin(kind)
    if origin is Annotated:
        yield from _choices(get_args(kind)[0])
    elif origin in {Union, types.UnionType}:
        for each in get_args(kind):
            yield from _choices(each)
    else:
        yield kind


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
