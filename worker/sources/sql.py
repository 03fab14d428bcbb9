"""Pages of a database, read by SQLAlchemy (the extra `sql`) and a query of the site.

Columns have the names of event fields, `loc`, `lastmod`, `section`, .., and are read as those of a
CSV file. Rows are streamed, with a server-side cursor where the driver has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from shared.errors import SourceError
from worker.sources.csv_pages import EXTRAS, FIELDS, record
from worker.sources.ndjson import unlisted
from worker.sources.records import Item, RecordRefusal, SourceCounts
from worker.sources.source_options import SourceOptions

if TYPE_CHECKING:
    from sqlalchemy import URL

ROWS = 500
_FLAGS = frozenset({"type", "noindex", "canonical"})
_MISSING = (
    "a database needs the extra sql and its driver: pip install 'sqlalchemy>=2' and, say, psycopg"
)


def read_sql(address: str, access: SourceOptions) -> Iterator[Item]:
    """Yield every row of `access.query` in the database at `address`, an SQLAlchemy URL.

    `access.key` is its password, if the URL has none. The order is that of the query, which should
    therefore have one. Raises SourceError, without passwords and row values (RELIABILITY T30).
    """
    if not access.query:
        raise SourceError("a database needs a query that names its pages")
    url = _url(address)
    if access.key and url.password is None:
        url = url.set(password=access.key)
    name = public_database(address)
    with _reported(url, name):
        yield from _rows(url, access.query, name)


def public_database(address: str) -> str:
    """Return a database for reports and logs: its kind, host and name only."""
    try:
        url = _url(address)
    except SourceError:
        return "(a database)"
    return f"{url.get_backend_name()}://{url.host or ''}/{url.database or ''}"


def _url(address: str) -> URL:
    try:
        from sqlalchemy import make_url
        from sqlalchemy.exc import ArgumentError
    except ImportError:
        raise SourceError(_MISSING) from None
    try:
        return make_url(address)
    except (ArgumentError, ValueError):
        raise SourceError("the source is no SQLAlchemy URL, as postgresql+psycopg://..") from None


@contextmanager
def _reported(url: URL, name: str) -> Iterator[None]:
    """Raise database errors as SourceError: the first line of the driver, with secrets masked."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except ImportError:
        raise SourceError(f"{name}: the driver is not installed: {url.drivername}") from None
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        said = (str(cause).strip().splitlines() or [""])[0]
        for secret in _secrets(url):
            said = said.replace(secret, "***")
        raise SourceError(f"{name}: {type(cause).__name__}: {said[:300]}") from None


def _secrets(url: URL) -> list[str]:
    """Return every possible password in the address, in each spelling, longest first."""
    values = [str(url.password or ""), *(str(value) for value in url.query.values())]
    spelt = {spell for value in values for spell in (value, quote(value, ""), quote_plus(value))}
    return sorted(filter(None, spelt), key=len, reverse=True)


def _rows(url: URL, query: str, name: str) -> Iterator[Item]:
    from sqlalchemy import create_engine, text
    from sqlalchemy.pool import NullPool

    engine = create_engine(url, poolclass=NullPool, hide_parameters=True)
    try:
        with engine.connect() as connection:
            found = connection.execution_options(yield_per=ROWS).execute(text(query))
            if not found.returns_rows:
                raise SourceError(f"{name}: the query gives no rows: it must be a SELECT")
            columns = [column.strip().lower() for column in found.keys()]  # noqa: SIM118
            tally = SourceCounts(name)
            _check(columns, name, tally)
            for number, row in enumerate(found, 1):
                yield _page(columns, row, f"{name}#{number}")
            yield from tally.notes()
    finally:
        engine.dispose()


def _check(columns: list[str], name: str, tally: SourceCounts) -> None:
    if "loc" not in columns:
        raise SourceError(f"{name}: the query has no column loc; there are: {', '.join(columns)}")
    for column in sorted(set(columns) - FIELDS - EXTRAS - _FLAGS):
        tally.add("sql", f"the column {column[:40]} is not read")


def _page(columns: list[str], row: Sequence[Any], where: str) -> Item:
    values: Mapping[str, Any] = dict(zip(columns, row, strict=True))
    texts = {name: _text(value) for name, value in values.items() if name not in _FLAGS}
    flags = {name: values[name] for name in _FLAGS & values.keys()}
    if "noindex" in flags:
        flags["noindex"] = bool(flags["noindex"])  # some databases return 0 and 1
    flags = {name: value for name, value in flags.items() if value is not None}
    why = unlisted({**flags, "loc": texts["loc"]})
    return RecordRefusal(where, "L8", why, texts["loc"]) if why else record(texts, where)


def _text(value: object) -> str:
    """Return a value as CSV states it; a datetime without a zone is in UTC."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat(timespec="seconds")
    return value.isoformat() if isinstance(value, date) else str(value).strip()
