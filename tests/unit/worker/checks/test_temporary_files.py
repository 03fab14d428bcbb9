"""A temporary file of a check that fails is an error of the check that names the remedy."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from shared.errors import CheckError
from shared.sitemap.shards import Shard
from worker.checks.consistency.join_spool import JoinSpool
from worker.checks.duplicates import DuplicatePages

ROW = bytes(16)


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can grow: what is written fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_rows_that_cannot_be_read_back_are_an_error_of_the_check() -> None:
    """What was added is still in the memory of the file, which is flushed before it is read."""
    with JoinSpool(len(ROW), flush=len(ROW)) as spool:
        spool.add(ROW)
        with full_disk(), pytest.raises(CheckError, match="TMPDIR"):
            next(spool.part(0))


def test_hashes_that_cannot_be_read_back_are_an_error_of_the_check() -> None:
    pages = DuplicatePages(flush=1)
    pages.note(Shard("pages", 1), ["https://a.example/"])
    with full_disk(), pytest.raises(CheckError, match="TMPDIR"):
        list(pages.found(None, lambda _: None))  # type: ignore[arg-type]  # it is not reached
    pages.close()


def test_a_spool_that_nobody_reads_ends_on_a_full_disk() -> None:
    with full_disk(), JoinSpool(len(ROW), flush=len(ROW)) as spool, suppress(CheckError):
        spool.add(ROW)


def test_no_place_for_a_temporary_file_is_an_error_of_the_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))

    with pytest.raises(CheckError, match="TMPDIR"):
        JoinSpool(16)
