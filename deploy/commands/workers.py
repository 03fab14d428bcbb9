"""The commands `workers list|quiet|resume|stop`: list and control workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deploy.cli.examples import examples
from deploy.cli.output import (
    CommandTarget,
    HomeOption,
    JsonOption,
    answer,
    find_any,
    line,
    show,
    table,
)
from deploy.commands.admin import recorded
from shared.sitemap import w3c_dates
from shared.store.operations.worker_registry import (
    HEARTBEAT_S,
    HeartbeatRecord,
    RegisteredWorker,
    Wish,
    WorkerRegistry,
)

if TYPE_CHECKING:
    from deploy.cli.tables import Grid

WAIT_S = 2 * HEARTBEAT_S

_LOOK_S = 0.1
_MB = 1024 * 1024
_COMMANDS: Mapping[Wish, str] = {"quiet": "quiet", "work": "resume", "stop": "stop"}

NameArgument = Annotated[
    str, typer.Argument(help="name of the worker, as listed by `sitemapd workers list`")
]
WaitOption = Annotated[
    float,
    typer.Option("--wait", min=0, help="seconds to wait for the worker; exit code 1 after that"),
]

app = typer.Typer(help="List workers; make one quiet, resume or stop it.")


@app.callback(invoke_without_command=True)
def workers(context: typer.Context, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List workers that live, or did within a day: version, present work, memory, heartbeat."""
    if context.invoked_subcommand is None:
        list_(home, as_json=as_json)


@app.command("list")
@examples("sitemapd workers list", "sitemapd workers list --json")
def list_(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List workers that live, or did within a day: version, present work, memory, heartbeat."""
    place = find_any(home)
    found = WorkerRegistry(place.client()).list()
    if as_json:
        answer([described(worker) for worker in found], as_json=True)
    elif found:
        show(listed(found))
    else:
        line("no worker sent a heartbeat within the last day")


@app.command()
@examples("sitemapd workers quiet local", "sitemapd workers quiet local --wait 60")
def quiet(
    name: NameArgument,
    home: HomeOption = None,
    as_json: JsonOption = False,
    wait: WaitOption = WAIT_S,
) -> None:
    """Let a worker finish its work in progress and take no new work, for a week at most.

    A restart does not change that; `resume` does. Waiting work is left to the other workers, and
    waits if there is none.
    """
    _ask(find_any(home), name, "quiet", _is_quiet, wait, as_json=as_json)


@app.command()
@examples("sitemapd workers resume local", "sitemapd workers resume local --json")
def resume(
    name: NameArgument,
    home: HomeOption = None,
    as_json: JsonOption = False,
    wait: WaitOption = WAIT_S,
) -> None:
    """Let a quiet worker work again."""
    _ask(find_any(home), name, "work", _works, wait, as_json=as_json)


@app.command()
@examples("sitemapd workers stop local", "sitemapd workers stop local --wait 60")
def stop(
    name: NameArgument,
    home: HomeOption = None,
    as_json: JsonOption = False,
    wait: WaitOption = WAIT_S,
) -> None:
    """Let a worker finish its work in progress and end, as SIGTERM does.

    Its supervisor (`sitemapd up`, systemd, a container engine) starts it again: this restarts it.
    To stop it for good, stop it there; to make it idle, `quiet` it.
    """
    _ask(find_any(home), name, "stop", _is_another, wait, as_json=as_json)


def described(worker: RegisteredWorker) -> dict[str, Any]:
    """Return one worker in JSON form; times in seconds, memory in bytes."""
    said = worker.beat.model_dump(mode="json") if worker.beat else {}
    known = {"name": worker.name, "alive": worker.alive, "state": _state(worker)}
    return known | {"seen_s": round(worker.seen, 1), "wanted": worker.wanted} | said


def listed(found: list[RegisteredWorker]) -> Grid:
    """Return the table of the workers."""
    head = (
        "worker", "state", "version", "busy with", "memory", "heartbeat", "started", "events",
        "files", "clock",
    )  # fmt: skip
    return table(head, ((worker.name, _wished(worker), *_details(worker)) for worker in found))


def _details(worker: RegisteredWorker) -> list[str]:
    seen, beat = f"{worker.seen:.0f} s ago", worker.beat
    if beat is None:
        older = "older" if worker.alive else ""
        return [older, "", "", seen, "", "", "", ""]
    memory = "" if beat.memory is None else f"{beat.memory / _MB:.0f} MB"
    offset = "" if beat.clock_offset is None else f"{beat.clock_offset:+.1f} s"
    return [
        beat.version, _busy(beat), memory, seen, w3c_dates.from_epoch_s(int(beat.started)),
        str(beat.events), str(beat.files), offset,
    ]  # fmt: skip


def _busy(beat: HeartbeatRecord) -> str:
    now = time.time() + (beat.clock_offset or 0)
    each = (f"{busy.site} {max(0.0, now - busy.since):.0f} s" for busy in beat.busy)
    return f"{len(beat.busy)} of {beat.threads}" + "".join(f", {one}" for one in each)


def _state(worker: RegisteredWorker) -> str:
    if not worker.alive:
        return "gone"
    return worker.beat.state if worker.beat else "alive"


def _wished(worker: RegisteredWorker) -> str:
    state = _state(worker)
    if worker.wanted == "quiet" and state != "quiet":
        return f"{state}, to be quiet"
    return f"{state}, to stop" if worker.wanted == "stop" else state


def _ask(
    place: CommandTarget, name: str, wish: Wish,
    done: Callable[[RegisteredWorker, RegisteredWorker | None], bool], wait: float,
    *, as_json: bool,
) -> None:  # fmt: skip
    """Ask a worker for `wish`, and wait until it has complied, at most `wait` seconds."""
    client = place.client()
    workers = WorkerRegistry(client)
    with recorded(client, f"workers {_COMMANDS[wish]}", "", name) as said:
        before = workers.ask(name, wish)
        said(f"asked to {'be quiet' if wish == 'quiet' else wish}")
    deadline = time.monotonic() + wait
    while not (reached := done(before, after := _one(workers, name))):
        if time.monotonic() > deadline:
            break
        time.sleep(_LOOK_S)
    state = "gone" if after is None else _state(after)
    if as_json:
        answer({"worker": name, "wanted": wish, "reached": reached, "state": state}, as_json=True)
    else:
        ended = "ended; its supervisor starts it again" if wish == "stop" else state
        line(f"{name}: {ended}" if reached else f"{name}: requested, but still {state}")
    raise typer.Exit(0 if reached else 1)


def _one(workers: WorkerRegistry, name: str) -> RegisteredWorker | None:
    return next((each for each in workers.list() if each.name == name), None)


def _is_quiet(_before: RegisteredWorker, now: RegisteredWorker | None) -> bool:
    """Return True if the worker is quiet without work in progress, or gone: a restart keeps it
    quiet.
    """
    if now is None or not now.alive:
        return True
    return now.beat is not None and now.beat.state == "quiet" and not now.beat.busy


def _works(_before: RegisteredWorker, now: RegisteredWorker | None) -> bool:
    return now is None or not now.alive or (now.beat is not None and now.beat.state == "working")


def _is_another(before: RegisteredWorker, now: RegisteredWorker | None) -> bool:
    """Return True if the worker has ended, or was started again."""
    if now is None or now.beat is None or before.beat is None:
        return True
    return (now.beat.pid, now.beat.started) != (before.beat.pid, before.beat.started)
