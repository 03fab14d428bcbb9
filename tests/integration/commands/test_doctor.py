"""`sitemapd doctor`: each check finds what it is there for, in a set-up that is really broken."""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from typer.testing import CliRunner

from deploy.cli.program import app
from deploy.doctor import public as doctor_reach
from deploy.doctor import robots as doctor_robots
from deploy.doctor import root as doctor_root
from deploy.doctor import store as doctor_store
from deploy.doctor import work as doctor_work
from deploy.doctor.runner import Case, DoctorCheck, DoctorResult, examine
from deploy.host_files.redis_users import rules, user_of
from shared.config.filenames import TEMP
from shared.sitemap import shards
from shared.store.connection import connect
from shared.store.key_rights import ROLES, Role
from shared.store.operations.queues import Queues
from shared.store.operations.worker_registry import HEARTBEAT, WorkerRegistry
from tests.file_systems import small_file_system
from tests.integration.checks.examined import examine as check_state
from tests.integration.conftest import RedisServer, wait_until
from tests.integration.rig import BASE, Rig
from tests.integration.worked import beat
from tests.unit.worker.sources.cms import Asked, Reply, served
from worker.runtime import Runtime

CONFIG = """
redis_url = "{url}"
[sites.demo]
base_url = "{base}"
web_root = "public"
tokens = ["0123456789abcdef"]
robots = "create"
{more}
"""
TYPES = {".xml": "application/xml", ".gz": "application/gzip", ".txt": "text/plain; charset=utf-8"}

Found = dict[str, DoctorResult]
CHECKS = (
    *doctor_root.CHECKS, *doctor_robots.CHECKS, *doctor_work.CHECKS, *doctor_reach.CHECKS,
)  # fmt: skip


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    rig = Rig(store, tmp_path / "public", robots="create", shard_urls=2)
    rig.do(*(page(n) for n in range(5)))
    return rig


def page(name: object, base: str = BASE) -> dict[str, Any]:
    return {"type": "upsert", "loc": f"{base}{name}"}


def look(
    rig: Rig, *names: str, client: redis.Redis | None = None, config: Path | None = None,
    to: str = "", **changes: Any,
) -> Found:  # fmt: skip
    """The checks of these names, on the site of `rig` with other settings."""
    now: Callable[[], float] = changes.pop("now", time.time)
    ours = [name for name in ("allow_loss", "redis_url") if name in changes]
    settings = rig.settings.model_copy(update={name: changes.pop(name) for name in ours})
    site = rig.site.model_copy(update=changes)
    settings = settings.model_copy(update={"sites": {rig.name: site}})
    case = Case(settings, rig.name, site, client or rig.client, to, now)
    chosen = (*doctor_store.checks(config or rig.root), *CHECKS)
    found = examine([case], [check for check in chosen if not names or check.name in names])
    return {result.check: result for result in found}


def status(found: Found, name: str) -> tuple[str, str]:
    """What came of the check, and what is to be done; that is said of everything that is wrong."""
    result = found[name]
    assert bool(result.todo) == (result.status in {"warn", "fail"}), result
    return result.status, f"{result.detail} | {result.todo}"


def command(home: Path, *arguments: str) -> tuple[int, Found]:
    done = CliRunner().invoke(app, ["doctor", "--json", *arguments, "--home", str(home)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    said = json.loads(done.stdout)
    assert said["healthy"] == (done.exit_code == 0)
    return done.exit_code, {each["check"]: DoctorResult(**each) for each in said["checks"]}


@pytest.fixture
def home(redis_server: RedisServer, rig: Rig) -> Path:
    home = rig.root.parent
    text = CONFIG.format(url=redis_server.url, base=BASE, more="")
    (home / "sitemapd.toml").write_text(text)
    (home / "sitemapd.toml").chmod(0o600)
    return home


@pytest.fixture
def worker(rig: Rig, redis_server: RedisServer) -> Runtime:
    """One that has spoken just now."""
    plant = Runtime(rig.settings.model_copy(update={"redis_url": redis_server.url}), "w1")
    plant._heart.beat()
    return plant


@pytest.mark.usefixtures("worker")
def test_a_sound_system_passes_every_check_and_is_left_as_it_was(home: Path, rig: Rig) -> None:
    check_state(rig)
    before = {path.name: path.stat().st_mtime_ns for path in rig.root.iterdir()}
    keys = set(rig.client.keys())

    code, found = command(home, "--offline")

    assert {
        r.status
        for r in found.values()
        if not r.check.startswith(("public", "webhook", "consistency"))
    } == {"ok"}, found
    assert (code, found["webhook"].status) == (0, "skip")
    assert {path.name: path.stat().st_mtime_ns for path in rig.root.iterdir()} == before
    assert set(rig.client.keys()) == keys


def test_every_fault_of_the_configuration_is_named(tmp_path: Path) -> None:
    (tmp_path / "sitemapd.toml").write_text('colour = 1\n[sites.demo]\nbase_url = "ftp://x"\n')

    done = CliRunner().invoke(app, ["doctor", "--home", str(tmp_path)])

    assert done.exit_code == 1
    for field in ("colour", "sites.demo.base_url", "sites.demo.web_root"):
        assert f"fail  configuration: {field}" in done.stdout
    assert f"-> correct it in {tmp_path}/sitemapd.toml" in done.stdout


def test_a_configuration_that_all_can_read_shows_its_secrets(home: Path, rig: Rig) -> None:
    config = home / "sitemapd.toml"
    config.chmod(0o644)
    assert status(look(rig, "secrets", config=config), "secrets")[0] == "warn"

    config.chmod(0o602)

    assert status(look(rig, "secrets", config=config), "secrets")[0] == "fail"


def test_a_redis_that_may_lose_events_fails_or_is_warned_about_where_that_is_allowed(
    rig: Rig, fragile_redis: RedisServer
) -> None:
    """RELIABILITY 5."""
    with fragile_redis.client() as client:
        client.config_set("appendfsync", "everysec")

        refused = status(look(rig, "redis settings", client=client), "redis settings")
        allowed = look(rig, "redis settings", client=client, allow_loss=True)

    assert refused[0] == "fail"
    assert "appendfsync is 'everysec': set it to 'always'" in refused[1]
    assert status(allowed, "redis settings")[0] == "warn"


def test_a_redis_that_is_nearly_full_is_warned_about(rig: Rig, fragile_redis: RedisServer) -> None:
    """RELIABILITY F7."""
    with fragile_redis.client() as client:
        used: Any = client.info("memory")["used_memory"]  # type: ignore[index]
        client.config_set("maxmemory", used)

        assert status(look(rig, "redis", client=client), "redis")[0] == "warn"


def test_a_log_that_could_not_be_rewritten_fails(rig: Rig, fragile_redis: RedisServer) -> None:
    """RELIABILITY F8."""
    with fragile_redis.client() as client:
        home = Path(client.config_get("dir")["dir"])  # type: ignore[index]
        (home / "appendonlydir").rename(home / "gone")
        (home / "appendonlydir").write_bytes(b"no directory")
        with contextlib.suppress(redis.RedisError):
            client.bgrewriteaof()

        def failed() -> bool:
            return status(look(rig, "redis log", client=client), "redis log")[0] == "fail"

        wait_until(failed, "the rewrite to fail")
        (home / "appendonlydir").unlink()
        (home / "gone").rename(home / "appendonlydir")


def test_a_slow_way_to_redis_is_warned_about(rig: Rig, redis_server: RedisServer) -> None:
    """RELIABILITY F19."""
    with slow_way(redis_server.url.removeprefix("unix://"), 0.03) as port:
        client = connect(f"redis://127.0.0.1:{port}", 10)
        found = status(look(rig, "redis latency", client=client), "redis latency")
        client.close()

    assert found[0] == "warn"


@contextlib.contextmanager
def slow_way(path: str, seconds: float) -> Iterator[int]:
    """A port behind which is the server on the socket `path`, later by so much."""

    def serve(near: socket.socket) -> None:
        with near, socket.socket(socket.AF_UNIX) as far:
            far.connect(path)
            while asked := near.recv(65536):
                time.sleep(seconds)
                far.sendall(asked)
                near.sendall(far.recv(65536))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=lambda: serve(server.accept()[0]))
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def test_rights_that_are_missing_are_named(rig: Rig, redis_server: RedisServer) -> None:
    rig.client.execute_command(  # type: ignore[no-untyped-call]
        "ACL", "SETUSER", "poor", "on", ">pw", "~*", "&*", "+@all", "-xadd", "-config|get", "-xinfo"
    )
    url = redis_server.url.replace("unix://", "unix://poor:pw@")
    try:
        with connect(url, 10) as client:
            found = look(rig, "redis rights", "redis settings", "redis", client=client)
    finally:
        rig.client.acl_deluser("poor")

    assert status(found, "redis rights")[0] == "fail"
    assert (
        "may not: XADD, XINFO STREAM, XINFO CONSUMERS, CONFIG GET" in found["redis rights"].detail
    )
    assert status(found, "redis settings")[0] == "warn"
    assert found["redis"].status == "ok"


@pytest.mark.parametrize("role", ROLES)
def test_the_user_of_a_role_may_do_what_its_role_may_and_no_more(
    rig: Rig, redis_server: RedisServer, role: Role
) -> None:
    def found(*given: str) -> tuple[str, str]:
        rig.client.execute_command("ACL", "SETUSER", user_of(role), *given)  # type: ignore[no-untyped-call]
        with connect(redis_server.url_of(role), 10) as client:
            found = look(rig, "redis rights", client=client, redis_url=redis_server.url_of(role))
            return status(found, "redis rights")

    try:
        assert found()[0] == "ok"
        kind, detail = found("%W~{*}:index:*", "~{*}:rate", "%R~{_sitemapd}:session:*", "+acl")
        assert kind == "warn"
        assert f"the user {user_of(role)} may do more than its role: " in detail
        assert ("{SITE}:index:any" if role == "web" else "{_sitemapd}:session:any") in detail
        assert "commands of the administrator" in detail
        kind, detail = found("resetkeys", "~{*}:inbox", "~{*}:stats")
        assert kind == "fail"
        assert f"the user {user_of(role)} may not use: " in detail
        assert "{SITE}:paused" in detail
        assert "{SITE}:inbox" not in detail
    finally:
        found("resetkeys", "-@all", *rules(role).split())
        rig.client.acl_log_reset()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://db.example.com:6379", "warn"), ("redis+sentinel://127.0.0.1,10.1.1.1/m", "warn"),
        ("redis://:a@db.example.com", "ok"), ("redis://127.0.0.1", "ok"), ("redis://[::1]", "ok"),
        ("redis://localhost", "ok"), ("unix:///run/redis/redis.sock", "ok"),
        ("rediss://db.example.com?ssl_certfile=/etc/own.pem", "ok"),
    ],
)  # fmt: skip
def test_a_server_that_others_reach_without_a_password_is_named(
    rig: Rig, url: str, expected: str
) -> None:
    found = status(look(rig, "redis rights", redis_url=url), "redis rights")

    assert found[0] == expected
    assert ("asks for no password" in found[1]) == (expected == "warn")


@pytest.mark.parametrize(
    ("offset", "expected"), [(0, "ok"), (5, "warn"), (-5, "warn"), (3600, "fail"), (-3600, "fail")]
)
def test_clocks_that_differ_are_found(rig: Rig, offset: int, expected: str) -> None:
    """RELIABILITY F12."""
    found = look(rig, "clock", now=lambda: time.time() + offset)

    assert status(found, "clock")[0] == expected


def test_a_dead_redis_fails_once_and_all_that_needs_none_is_looked_at(
    home: Path, rig: Rig, fragile_redis: RedisServer
) -> None:
    """RELIABILITY F20."""
    text = CONFIG.format(url=fragile_redis.url, base=BASE, more="")
    (home / "sitemapd.toml").write_text(text)
    (rig.root / "pages-2.xml").unlink()
    fragile_redis.kill()
    try:
        code, found = command(home, "--offline")
    finally:
        fragile_redis.start()

    assert code == 1
    assert status(found, "redis")[0] == "fail"
    assert "start Redis" in found["redis"].todo
    assert {found[name].status for name in ("redis settings", "state", "inbox", "workers")} == {
        "skip"
    }
    assert found["web root"].status == "ok"
    assert status(found, "files")[1].startswith("1 files are missing: pages-2.xml")


def test_a_web_root_that_is_not_there_fails_and_is_not_made(rig: Rig) -> None:
    found = look(rig, web_root=rig.root / "none")

    for name in ("web root", "web root space", "web root leftovers", "state", "files"):
        assert status(found, name)[0] == "fail", name
    assert not (rig.root / "none").exists()


def test_a_web_root_that_others_can_write_to_fails(rig: Rig) -> None:
    """RELIABILITY T20."""
    rig.root.chmod(0o777)
    found = look(rig, "web root")
    rig.root.chmod(0o755)

    assert status(found, "web root") == (
        "fail", f"{found['web root'].detail} | run: chmod go-w {rig.root}",
    )  # fmt: skip


def test_a_web_root_that_takes_no_file_fails(rig: Rig) -> None:
    """RELIABILITY F10: a mode does not stop root, an attribute does."""
    set_ = ["chattr", "+i", str(rig.root)]
    if (
        not shutil.which("chattr")
        or subprocess.run(set_, capture_output=True, check=False).returncode
    ):
        pytest.skip("this file system knows no immutable directories, or only root may make one")
    try:
        found = look(rig, "web root")
    finally:
        subprocess.run(["chattr", "-i", str(rig.root)], check=True)

    assert status(found, "web root")[0] == "fail"
    assert "cannot write" in found["web root"].detail


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("size=1m", "fail"),
        ("size=100m", "warn"),
        ("size=900m,nr_inodes=20", "fail"),
        ("size=900m,nr_inodes=500", "warn"),
    ],
)
def test_a_disk_without_room_is_found(
    rig: Rig, tmp_path: Path, options: str, expected: str
) -> None:
    """RELIABILITY F9."""
    with small_file_system(tmp_path / "disk", options) as place:
        found = look(rig, "web root space", web_root=place)

    assert status(found, "web root space")[0] == expected


def test_half_written_files_are_left_over_once_nobody_can_be_at_them(rig: Rig) -> None:
    (rig.root / f"{TEMP}dead").write_bytes(b"<urlset>")
    assert look(rig, "web root leftovers")["web root leftovers"].status == "ok"

    found = look(rig, "web root leftovers", now=lambda: time.time() + 60)

    assert status(found, "web root leftovers")[0] == "warn"


def test_files_of_another_state_are_told_from_those_of_this_one(rig: Rig) -> None:
    """RELIABILITY F22: an emptied Redis must not overwrite them, and says how to go on."""
    marker = rig.root / ".sitemapd"
    kept = marker.read_bytes()
    marker.unlink()
    assert status(look(rig, "state"), "state")[0] == "warn"
    marker.write_bytes(kept)
    rig.client.flushall()

    said = status(look(rig, "state"), "state")

    assert said[0] == "fail"
    assert "sitemapd rebuild --site demo --adopt" in said[1]
    assert not rig.client.keys(), "nothing was begun"


@pytest.mark.parametrize("name", ["pages-1.xml", "sitemap.xml"])
def test_a_file_that_is_missing_fails(rig: Rig, name: str) -> None:
    """RELIABILITY F23."""
    (rig.root / name).unlink()

    said = status(look(rig, "files"), "files")

    assert said == ("fail", f"1 files are missing: {name} | run: sitemapd rebuild --site demo")


def test_an_index_that_is_cut_short_fails(rig: Rig) -> None:
    index = rig.root / "sitemap.xml"
    index.write_bytes(index.read_bytes()[:-20])

    assert status(look(rig, "files"), "files")[0] == "fail"


@pytest.mark.parametrize("form", shards.FORMS)
def test_a_site_of_any_form_is_sound(store: redis.Redis, tmp_path: Path, form: str) -> None:
    rig = Rig(
        store, tmp_path / form, form=form, robots="create", index=form not in shards.TEXT_FORMS
    )
    rig.do(*(page(n) for n in range(3)))

    found = look(rig, "files", "robots.txt", "state")

    assert [found[name].status for name in ("files", "robots.txt", "state")] == ["ok"] * 3, found


@pytest.mark.parametrize(
    ("before", "after", "options", "expected"),
    [
        ("", "User-agent: *\nDisallow: /sitemap\n", {}, "fail"),
        ("", "User-agent: Googlebot\nDisallow: /4\n", {}, "warn"),
        ("", "User-agent: Bingbot\nDisallow: /4\n", {}, "warn"),
        ("", "User-agent: Bingbot\nDisallow: /sitemap\n", {}, "warn"),
        ("", "User-agent: Otherbot\nDisallow: /\n", {}, "ok"),
        ("Sitemap: ", "Sitemap: https://other.example/", {}, "fail"),
        ("Sitemap: ", "Sitemap: https://other.example/", {"robots": "off"}, "warn"),
        ("# BEGIN", "# BEGUN", {}, "fail"),
        ("User", "\xff", {"robots": "edit"}, "fail"),
    ],
)  # fmt: skip
def test_a_robots_txt_that_says_the_wrong_thing_is_found(
    rig: Rig, before: str, after: str, options: dict[str, str], expected: str
) -> None:
    """RELIABILITY T18; PROTOCOL R1-R11."""
    file = rig.root / "robots.txt"
    if before == "User":
        file.write_bytes(b"\xff\xfe")
    elif before:
        file.write_text(file.read_text().replace(before, after))
    else:
        file.write_text(after + file.read_text())

    assert status(look(rig, "robots.txt", **options), "robots.txt")[0] == expected


@pytest.mark.parametrize(
    ("robots", "expected"), [("create", "fail"), ("edit", "warn"), ("off", "skip")]
)
def test_a_robots_txt_that_is_missing_is_missed_where_there_should_be_one(
    rig: Rig, robots: str, expected: str
) -> None:
    (rig.root / "robots.txt").unlink()

    assert status(look(rig, "robots.txt", robots=robots), "robots.txt")[0] == expected


def test_work_without_a_worker_fails(rig: Rig) -> None:
    assert status(look(rig, "workers"), "workers")[0] == "fail"


def test_workers_that_are_quiet_older_or_know_other_sites_are_warned_about(
    rig: Rig, worker: Runtime
) -> None:
    """RELIABILITY F21."""
    assert look(rig, "workers")["workers"].status == "ok"
    WorkerRegistry(rig.client).want("w1", "quiet")
    worker._heart.beat()
    assert status(look(rig, "workers"), "workers")[1].endswith("sitemapd workers resume w1")

    WorkerRegistry(rig.client).want("w1", "work")
    worker._heart.beat()
    stored: Any = rig.client.get(f"{HEARTBEAT}w1")
    for change, said in (
        ({"version": "0.0.1"}, "not of version"),
        ({"sites": []}, "without all configured sites"),
    ):
        rig.client.set(f"{HEARTBEAT}w1", json.dumps(json.loads(stored) | change), ex=60)
        assert said in status(look(rig, "workers"), "workers")[1]
    rig.client.set(f"{HEARTBEAT}w1", "1", ex=60)
    assert "w1 (older)" in status(look(rig, "workers"), "workers")[1]


def test_what_waits_for_too_long_fails_where_somebody_should_be_at_it(
    rig: Rig, redis_server: RedisServer
) -> None:
    seconds, _ = rig.client.time()  # type: ignore[misc]
    rig.client.delete(rig.keys.inbox)
    rig.client.xadd(rig.keys.inbox, {"e": b""}, id=f"{(seconds - 100) * 1000}-0")
    rig.client.zadd(rig.keys.dirty, {"pages/1": (seconds - 100) * 1000})
    for name in ("inbox", "publishing"):
        assert status(look(rig, name), name)[0] == "warn", "nobody is there"

    Runtime(rig.settings.model_copy(update={"redis_url": redis_server.url}), "w1")._heart.beat()

    for name in ("inbox", "publishing"):
        assert status(look(rig, name), name)[0] == "fail"


def test_what_failed_is_held_or_paused_is_warned_about(rig: Rig) -> None:
    rig.client.xadd(rig.keys.dead, {"e": b""})
    rig.client.hset(rig.keys.held, "pages/1", "1700000000 1 100")
    for queue in ("events", "intake"):
        Queues(rig.client, rig.name).pause(queue, "ann")

    found = look(rig, "dead letters", "held", "paused")

    assert [status(found, name)[0] for name in found] == ["warn"] * 3
    assert "sitemapd confirm --site demo" in found["held"].todo
    assert "sitemapd dead list --site demo" in found["dead letters"].todo
    assert "sitemapd dead retry --all --site demo" in found["dead letters"].todo
    assert found["paused"].detail == "paused: events by ann, intake by ann"
    for queue in ("events", "intake"):
        assert f"sitemapd queue resume {queue} --site demo" in found["paused"].todo


class Public:
    """A web server for the web root, and what is wrong with it."""

    def __init__(self, root: Path) -> None:
        self.root, self.replies = root, dict[str, Reply]()

    def __call__(self, asked: Asked) -> Reply:
        if asked.path in self.replies:
            return self.replies[asked.path]
        file = self.root / asked.path[1:]
        headers = {"Content-Type": TYPES.get(file.suffix, "")}
        if not file.exists() and file.with_name(f"{file.name}.gz").exists():
            file, headers["Content-Encoding"] = file.with_name(f"{file.name}.gz"), "gzip"
        return Reply(file.read_bytes(), 200, headers) if file.exists() else Reply(b"", 404)


PUBLIC = ("public sitemap", "public file", "public robots.txt", "webhook")


@pytest.fixture
def public(tmp_path: Path) -> Iterator[tuple[Public, str]]:
    public = Public(tmp_path / "public")
    with served(public) as address:
        yield public, address + "/"


@pytest.mark.parametrize("form", ["xml", "xml.gz", "encoded"])
def test_what_is_served_is_held_against_the_files(
    store: redis.Redis, public: tuple[Public, str], form: str
) -> None:
    server, base = public
    rig = Rig(store, server.root, base_url=base, form=form, robots="create")
    rig.do(page("a", base))
    server.replies["/readyz"] = Reply(b"{}")

    found = look(rig, *PUBLIC)

    assert [found[name].status for name in PUBLIC] == ["ok"] * 4, found


def test_what_is_served_wrong_or_not_at_all_is_found(
    store: redis.Redis, public: tuple[Public, str]
) -> None:
    server, base = public
    rig = Rig(store, server.root, base_url=base, robots="create")
    rig.do(page("a", base))
    index = (server.root / "sitemap.xml").read_bytes()
    server.replies = {
        "/sitemap.xml": Reply(index.replace(b"2", b"3"), 200, {"Content-Type": "text/xml"}),
        "/pages-1.xml": Reply(b"", 301, {"Location": "/elsewhere.xml"}),
        "/robots.txt": Reply((server.root / "robots.txt").read_bytes()),
        "/readyz": Reply(b"{}", 503),
    }

    found = look(rig, *PUBLIC)

    assert {name: status(found, name)[0] for name in PUBLIC} == {
        "public sitemap": "fail", "public file": "fail", "public robots.txt": "warn",
        "webhook": "fail",
    }  # fmt: skip
    assert "differs from" in found["public sitemap"].detail
    assert "301" in found["public file"].detail


def test_nobody_at_the_public_address_fails(rig: Rig) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]

    found = look(rig, "webhook", to=f"http://127.0.0.1:{port}")

    assert status(found, "webhook")[0] == "fail"
    assert "--to" in found["webhook"].todo


def test_an_answer_without_end_is_cut_off(rig: Rig) -> None:
    big = gzip.compress(bytes(doctor_reach.MOST + 1))
    with served(lambda _: Reply(big, 200, {"Content-Encoding": "gzip"})) as address:
        found = look(rig, "webhook", to=address)

    assert "no end after" in found["webhook"].detail


def test_a_check_that_breaks_is_one_failed_check(rig: Rig) -> None:
    def breaks(_case: Case) -> Any:
        raise ZeroDivisionError("of nobody's making")

    case = Case(rig.settings, rig.name, rig.site, rig.client, "")
    checks = [DoctorCheck("bad", "", breaks, "mend it"), doctor_root.CHECKS[0]]

    bad, good = examine([case], checks)

    assert bad[3:] == ("fail", "the check failed: ZeroDivisionError: of nobody's making", "mend it")
    assert good.status == "ok"


@pytest.fixture
def new(redis_server: RedisServer, store: redis.Redis, tmp_path: Path) -> Path:
    """A site that was configured a moment ago: nothing was started, sent or published."""
    assert not store.keys("{*")
    text = CONFIG.format(url=redis_server.url, base="http://127.0.0.1:9/", more="")
    (tmp_path / "sitemapd.toml").write_text(text)
    (tmp_path / "sitemapd.toml").chmod(0o600)
    return tmp_path


def test_a_new_site_waits_for_its_start_and_nothing_of_it_fails(new: Path) -> None:
    code, found = command(new)

    assert code == 0
    assert {name for name, each in found.items() if each.status == "wait"} == {
        "web root", "web root space", "web root leftovers", "state", "files", "robots.txt",
        "workers", "public sitemap", "public file", "public robots.txt", "webhook",
    }  # fmt: skip
    assert not {name for name, each in found.items() if each.status in {"fail", "warn"}}
    assert "sitemapd up" in found["workers"].todo
    assert "first event" in found["web root"].todo
    assert not (new / "public").exists()


def test_a_new_site_with_the_embedded_server_waits_for_it(new: Path) -> None:
    config = new / "sitemapd.toml"
    config.write_text("\n".join(config.read_text().splitlines()[2:]))
    code, found = command(new)

    assert code == 0
    assert found["redis"].status == "wait"
    assert {each.status for each in found.values()} == {"ok", "wait", "skip"}


def _open_to_all(new: Path, _store: redis.Redis) -> None:
    (new / "public").mkdir()
    (new / "public").chmod(0o777)


def _worked(_new: Path, store: redis.Redis) -> None:
    WorkerRegistry(store).beat("w1", beat())


def _published(_new: Path, store: redis.Redis) -> None:
    store.hset("{demo}:counters", "publishes", 1)


def _accepted(_new: Path, store: redis.Redis) -> None:
    store.xadd("{demo}:inbox", {"e": "x"})


@pytest.mark.parametrize(
    ("begin", "failing"),
    [
        (_open_to_all, {"web root"}), (_worked, {"webhook"}),
        (_accepted, {"web root", "workers", "webhook"}),
        (_published, {"web root", "web root space", "files", "workers", "public sitemap"}),
    ],
)  # fmt: skip
def test_what_is_missing_after_the_beginning_fails(
    new: Path,
    store: redis.Redis,
    begin: Callable[[Path, redis.Redis], None],
    failing: set[str],
) -> None:
    begin(new, store)
    code, found = command(new)

    assert code == 1
    assert failing <= {name for name, each in found.items() if each.status == "fail"}
