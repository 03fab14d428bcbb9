"""Pages out of a database: SQLite, and PostgreSQL where it is installed, both for real."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import traceback
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from shared.errors import SourceError
from worker.sources import Item, RecordRefusal, SourceOptions, SourceRecord, public, read

SECRET = "ca/na@ry geheim"


def rows_of(url: str, query: str, key: str = "") -> list[Item]:
    return list(read(f"sql:{url}", SourceOptions(key, query)))


def records(items: list[Item]) -> list[SourceRecord]:
    return [item for item in items if isinstance(item, SourceRecord)]


@pytest.fixture
def database(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/cms.db"
    with create_engine(url).begin() as base:
        base.execute(
            text("CREATE TABLE page (n INTEGER, url TEXT, changed TIMESTAMP, hidden BOOL)")
        )
        for n in range(1, 4):
            values = {"n": n, "u": f"https://a.example/{n}", "c": "2026-05-01", "h": n == 3}
            base.execute(text("INSERT INTO page VALUES (:n, :u, :c, :h)"), values)
    return url


def test_columns_are_named_like_the_members_of_an_event(database: str) -> None:
    query = (
        "SELECT url AS LOC, changed AS lastmod, 'posts' AS section, n AS id, 0.5 AS priority,"
        " NULL AS changefreq, 1 AS author FROM page WHERE n < 2"
    )

    record, note = rows_of(database, query)

    assert isinstance(record, SourceRecord)
    assert record.loc == "https://a.example/1"
    assert (record.lastmod, record.priority) == ("2026-05-01", "0.5")
    assert record.extra == {"id": "1", "section": "posts"}
    assert record.silent == {"images", "videos", "news", "alternates"}
    assert "author" in str(note)


def test_rows_that_are_not_to_be_listed_are_refused(database: str) -> None:
    query = "SELECT url AS loc, hidden AS noindex, NULL AS canonical FROM page ORDER BY n"

    items = rows_of(database, query)

    assert [item.loc[-1] for item in records(items)] == ["1", "2"]
    assert [item.rule for item in items if isinstance(item, RecordRefusal)] == ["L8"]


def test_a_row_without_an_address_is_refused_and_the_next_one_read(database: str) -> None:
    query = "SELECT CASE n WHEN 2 THEN NULL ELSE url END AS loc FROM page ORDER BY n"

    items = rows_of(database, query)

    assert [item.where[-2:] for item in items] == ["#1", "#2", "#3"]
    assert len(records(items)) == 2


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT url FROM page", "no column loc"),
        ("SELECT url AS loc FROM nowhere", "nowhere"),
        ("DELETE FROM page", "must be a SELECT"),
        ("", "needs a query"),
    ],
)
def test_a_query_that_names_no_pages_is_an_error(database: str, query: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        rows_of(database, query)

    assert len(records(rows_of(database, "SELECT url AS loc FROM page"))) == 3


def test_an_address_that_is_none_or_of_an_unknown_database_is_an_error() -> None:
    for url in ("nonsense", "gopher://x/y", "oracle+nothing://x/y"):
        with pytest.raises(SourceError):
            rows_of(url, "SELECT 1 AS loc")


def test_memory_does_not_grow_with_the_rows(database: str) -> None:
    query = (
        "WITH RECURSIVE up(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up LIMIT {})"
        " SELECT 'https://a.example/' || n AS loc FROM up"
    )
    peaks = []
    for count in (2_000, 2_000, 20_000):  # the first one loads the library
        tracemalloc.start()
        assert (
            sum(1 for _ in read(f"sql:{database}", SourceOptions("", query.format(count)))) == count
        )
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    assert peaks[2] < 2 * peaks[1]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Path]:
    """A PostgreSQL on a socket in the directory it gives, which asks for a password."""
    server = shutil.which("postgres")
    root = os.geteuid() == 0  # it never runs as such
    if server is None or (root and "postgres" not in {who.pw_name for who in pwd.getpwall()}):
        pytest.skip("no PostgreSQL here")
    programs, user = Path(server).resolve().parent, "postgres" if root else None
    with tempfile.TemporaryDirectory() as place:  # short enough for a socket, open to `user`
        home = Path(place)
        (home / "password").write_text(SECRET)
        if user:
            for path in (home, home / "password"):
                shutil.chown(path, user)
        subprocess.run(
            [programs / "initdb", "-D", home / "data", "-U", "me", "--auth=scram-sha-256",
             "--no-sync", f"--pwfile={home}/password", "--locale=C", "--encoding=UTF8"],
            check=True, capture_output=True, user=user, cwd=home,
        )  # fmt: skip
        options = f"-c listen_addresses='' -c unix_socket_directories={home} -c fsync=off"
        base = [programs / "pg_ctl", "-D", home / "data", "-w", "-l", home / "log"]
        quiet = {"stdout": subprocess.DEVNULL, "user": user, "cwd": home}
        subprocess.run([*base, "-o", options, "start"], check=True, **quiet)
        try:
            yield home
        finally:
            subprocess.run([*base, "-m", "immediate", "stop"], check=True, **quiet)


def test_postgresql_streams_rows_with_its_own_types(postgres: Path) -> None:
    url = f"postgresql+psycopg://me@/postgres?host={postgres}"
    query = (
        "SELECT 'https://a.example/' || n AS loc, n AS id,"
        " timestamptz '2026-05-01 12:00:00+02' AS lastmod FROM generate_series(1, 1200) AS n"
    )

    found = records(rows_of(url, query, SECRET))

    assert len(found) == 1200
    assert found[0].lastmod in {"2026-05-01T10:00:00+00:00", "2026-05-01T12:00:00+02:00"}
    assert found[-1].extra == {"id": "1200"}


def told(url: str, query: str, key: str = "") -> str:
    with pytest.raises(SourceError) as caught:
        rows_of(url, query, key)
    return "".join(traceback.format_exception(caught.value)) + public(f"sql:{url}")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://me:ca%2Fna%40ry+geheim@127.0.0.1:1/cms",
        "postgresql+psycopg://127.0.0.1:1/cms?user=me&password=ca%2Fna%40ry+geheim",
        "postgresql+psycopg://127.0.0.1:1/cms?connect_timeout=ca%2Fna%40ry+geheim",
        "nonsense://me:ca%2Fna%40ry+geheim@127.0.0.1:1/cms",
        "ca%2Fna%40ry+geheim",
    ],
)
def test_no_error_shows_a_password(url: str) -> None:
    """RELIABILITY T30."""
    said = told(url, "SELECT 1 AS loc") + told(url.replace("geheim", ""), "SELECT 1", SECRET)

    assert "geheim" not in said


def test_no_error_shows_a_password_that_was_wrong_or_a_value_of_a_row(postgres: Path) -> None:
    url = f"postgresql+psycopg://me@/postgres?host={postgres}"

    said = told(url, "SELECT 1 AS loc", "wrong geheim")
    assert "password" in said
    assert "geheim" not in said
    assert "geheim" not in told(url, "SELECT 1/(n - 1) AS loc FROM generate_series(1, 2) n", SECRET)
