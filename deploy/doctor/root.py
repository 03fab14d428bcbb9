"""Checks of a web root: the directory, the ownership of its files, their completeness."""

from __future__ import annotations

import gzip
import os
import pwd
import secrets
import stat
import time
import zlib
from contextlib import closing, suppress
from typing import Any, NamedTuple

from lxml import etree

from deploy.doctor.runner import Case, DoctorCheck, DoctorFinding, fail, ok, warn
from shared.config.filenames import MARKER, TEMP, index_name, is_index
from shared.domain.routing import family_of
from shared.errors import ForeignStateError, PublishError, StoreError
from shared.sitemap import blocks, fragments, shards
from shared.store.client import answering
from shared.store.keys import keys_of
from shared.store.publishing.file_shape import FileShapes
from shared.store.publishing.publish_state import PublishState
from shared.store.publishing.publish_work import PublishRun
from worker.checks.file_monitor import STALE_S
from worker.publishing.file_migration import shape_of
from worker.publishing.targets.ownership import belongs
from worker.publishing.targets.registry import open_own
from worker.publishing.targets.target import Target

BYTES_WARN, BYTES_FAIL = 500 * 2**20, 20 * 2**20
INODES_WARN, INODES_FAIL = 1_000, 50
MOST_NAMED = 5
MOST_LOOKED_INTO = 20

_TRIES = 2
_AGAIN_S = 0.2
_LOC = "{http://www.sitemaps.org/schemas/sitemap/0.9}loc"


def opened(case: Case) -> Target:
    """Open the web root without creating it. Raises PublishError if it is no directory."""
    if not case.site.web_root.is_dir():
        raise PublishError(f"{case.site.web_root} is no directory")
    return open_own(case.site)


def _web_root(case: Case) -> DoctorFinding:
    path = case.site.web_root
    try:
        found = path.stat()
    except OSError as error:
        return fail(f"{path}: {error.strerror}", "create it, owned by the user of the worker")
    detail = f"{path} of {_owner(found.st_uid)}, mode {stat.S_IMODE(found.st_mode):04o}"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
        return fail(f"{detail}: other users can replace files", f"run: chmod go-w {path}")
    name = f"{TEMP}doctor-{secrets.token_hex(8)}"
    with closing(opened(case)) as root:
        try:
            root.place(root.stage(name, [b"\n"]))
            root.sync()
        finally:
            with suppress(PublishError):
                root.remove(name)
    return ok(f"{detail}, writable by {_owner(os.geteuid())}")


def _owner(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _space(case: Case) -> DoctorFinding:
    found = os.statvfs(case.site.web_root)
    free, inodes = found.f_bavail * found.f_frsize, found.f_favail
    detail = f"{free / 2**20:.0f} MB free"
    if found.f_files:  # some file systems create inodes on demand, and report none
        detail += f", {inodes} inodes"
    todo = "free some space: on a full disk the old files stay, and events wait"
    few = found.f_files > 0 and inodes < INODES_WARN
    if free < BYTES_FAIL or (few and inodes < INODES_FAIL):
        return fail(detail, todo)
    return warn(detail, todo) if free < BYTES_WARN or few else ok(detail)


def _leftovers(case: Case) -> DoctorFinding:
    with closing(opened(case)) as root:
        found = [
            name
            for name in root.names()
            if name.startswith(TEMP)
            and (look := root.look(name)) is not None
            and case.now() - look.ctime_ns / 1e9 > STALE_S
        ]
    if found:
        named = ", ".join(sorted(found)[:MOST_NAMED])
        todo = "start a worker: its next check of the files removes them"
        return warn(f"{len(found)} temporary files of a dead publisher: {named}", todo)
    return ok("no temporary files left over")


def _state(case: Case) -> DoctorFinding:
    keys = keys_of(case.name)
    with answering():
        found: Any = case.client.hmget(keys.counters, "run", "publishes")
    run = PublishRun((found[0] or b"").decode(), int(found[1] or 0))
    state = PublishState(case.client, case.name)
    with closing(opened(case)) as root:
        try:
            ours = belongs(root, state, case.name, case.site, run)
        except ForeignStateError as error:
            return fail(f"{error.reason}: nothing is published", error.todo)
    if not ours and not run.publishes:
        return ok("nothing has been published yet")
    if not ours:
        todo = "none: the worker restores it; to restore it now: sitemapd rebuild"
        return warn(f"the ownership marker {MARKER} is missing", todo)
    return ok(f"the files belong to this state, after {run.publishes} publishes")


def _settings(case: Case) -> DoctorFinding:
    recorded = FileShapes(case.client, case.name).read()
    if not recorded:
        return ok("nothing has been published yet")
    differs = [name for name, value in shape_of(case.site).items() if recorded.get(name) != value]
    if differs:
        detail = f"the files were written with other settings: {', '.join(differs)}"
        todo = (
            f"restart the worker, which rewrites them; or run: sitemapd rebuild --site {case.name}"
        )
        return fail(detail, todo)
    state, prefix = PublishState(case.client, case.name), case.site.base.prefix
    files = state.files(state.sections())
    sections, limits = {shard.section for shard in files}, case.site.limits
    gone = sorted(name for name in sections if family_of(name, limits) not in limits)
    if gone:
        return warn(
            f"sections that are not configured any more still list pages: {', '.join(gone)}",
            f"send their pages again (sitemapd reconcile --site {case.name}), or configure them",
        )
    for shard in list(files)[:MOST_LOOKED_INTO]:
        for block in list(state.content(shard).values())[:1]:
            locs = [fragments.loc_of(each) for each in blocks.split(block.raw())[:1]]
            if locs and not locs[0].startswith(prefix):
                return warn(
                    f"pages outside base_url are still listed, e.g. {locs[0]}",
                    "send the pages with their new address, and delete the old ones by "
                    "id; or start again: empty Redis, sitemapd import, sitemapd rebuild "
                    "--adopt",
                )
    return ok("the files match the current settings")


def index_names(case: Case, root: Target) -> list[str]:
    """Return the index files that should exist; if Redis does not answer, those that exist."""
    try:
        pages = PublishState(case.client, case.name).pages(case.site.index_shards)
        return [index_name(case.site, page) for page in pages]
    except StoreError:
        return [name for name in sorted(root.names()) if is_index(name)]


def listed(root: Target, index: str) -> list[str]:
    """Return the addresses of the files that `index` names, none if it does not exist. Raises
    PublishError if it is no well-formed XML.
    """
    content = root.read(index)
    if content is None:
        return []
    if index.endswith(".gz"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise PublishError(f"{index} is no gzip file: {error}") from None
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    try:
        return [loc.text or "" for loc in etree.fromstring(content, parser).iter(_LOC)]
    except etree.XMLSyntaxError as error:
        raise PublishError(f"{index} is not well-formed XML: {error}") from None


class _Seen(NamedTuple):
    indexes: int
    files: int
    missing: list[str]


def _files(case: Case) -> DoctorFinding:
    rebuild = f"run: sitemapd rebuild --site {case.name}"
    with closing(opened(case)) as root:
        seen = _look(case, root)
        for _ in range(_TRIES):
            if seen.missing:  # a publish may have removed files since the index was read
                time.sleep(_AGAIN_S)
                seen = _look(case, root)
    if seen.missing:
        named = ", ".join(seen.missing[:MOST_NAMED])
        return fail(f"{len(seen.missing)} files are missing: {named}", rebuild)
    if not seen.files:
        return ok("nothing is published yet")
    return ok(f"{seen.indexes} index files, and all {seen.files} published files")


def _look(case: Case, root: Target) -> _Seen:
    site, missing = case.site, []
    if site.index:
        indexes, names = index_names(case, root), []
        for index in indexes:
            if root.look(index) is None:
                missing.append(index)
            names += [url.removeprefix(site.base.prefix) for url in listed(root, index)]
    else:
        state = PublishState(case.client, case.name)
        indexes = []
        names = [shards.file_name(each, site.form) for each in state.files(state.sections())]
    missing += [name for name in names if root.look(shards.on_disk(name, site.form)) is None]
    return _Seen(len(indexes), len(names), missing)


CHECKS = (
    DoctorCheck(
        "web root", "its owner and mode, and whether files in it can be replaced", _web_root,
        "make it writable for the user of the worker; a mount must not be read-only",
        needs="web root",
    ),
    DoctorCheck(
        "web root space", "free bytes and inodes", _space, "create the web root",
        needs="web root",
    ),
    DoctorCheck(
        "web root leftovers", "half-written files", _leftovers, "create the web root",
        needs="web root",
    ),
    DoctorCheck(
        "state", "whether Redis and the files belong together", _state, "create the web root",
        store=True, needs="web root",
    ),
    DoctorCheck(
        "settings", "whether files, sections and pages match the current settings",
        _settings, "run: sitemapd rebuild", store=True,
    ),
    DoctorCheck(
        "files", "the index, and every file that it lists", _files, "run: sitemapd rebuild",
        needs="web root",
    ),
)  # fmt: skip
