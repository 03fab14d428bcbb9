"""The command `deploy-files`: nginx, systemd, Redis, Kubernetes and monitoring files."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from deploy.cli.examples import examples
from deploy.cli.output import CommandTarget, HomeOption, JsonOption, answer, find_any, line
from deploy.host_files.collection import (
    Wanted,
    collect,
    differing,
    known_passwords,
    steps,
    write,
)
from deploy.local.listen_address import parse_listen
from shared.errors import Fault, InvalidError, StoreError


@examples("sitemapd deploy-files out", "sitemapd deploy-files out --tls --force")
def deploy_files(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="directory to write to, laid out like /etc")
    ],
    tls: Annotated[
        bool, typer.Option("--tls", help="serve https with certificates in /etc/letsencrypt/live")
    ] = False,
    existing: Annotated[
        list[str] | None,
        typer.Option("--existing", help="host that nginx serves already; can be repeated"),
    ] = None,
    upstream: Annotated[
        str,
        typer.Option(
            "--upstream", metavar="HOST:PORT", help="address of the webhook, by default its socket"
        ),
    ] = "",
    port: Annotated[
        int,
        typer.Option(
            "--port", min=0, max=65535, help="port of nginx behind a proxy; 0: those of the sites"
        ),
    ] = 0,
    roles: Annotated[
        bool,
        typer.Option("--roles", help="users of Redis of their own for web and worker"),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="replace files that differ")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write nginx, systemd, Redis, Kubernetes and monitoring files, and the WordPress plugin.

    For all sites. Nothing outside DIR is touched; the steps that are left are printed.
    """
    if upstream:
        parse_listen(upstream, behind_proxy=True)
    place = find_any(home)
    if roles and not place.settings.redis_url:
        raise InvalidError(Fault("--roles", "redis_url", "needs a Redis: name it in sitemapd.toml"))
    wanted = Wanted(
        place.home.resolve(), _program(), _sections(place), tls=tls, existing=existing or (),
        upstream=upstream, port=port, passwords=known_passwords(directory) if roles else {},
    )  # fmt: skip
    files = sorted(collect(place.settings, wanted))
    if not force and (faults := differing(directory, files)):
        detail = "is there and differs: replace it with --force, or choose another directory"
        raise InvalidError(*(Fault(str(directory / path), "--force", detail) for path in faults))
    write(directory, files)
    paths = [str(directory / file.path) for file in files]
    left = steps(directory, place.settings, wanted)
    if as_json:
        answer({"written": paths, "next": left}, as_json=True)
        return
    for path in paths:
        line(path)
    line("next, as root:")
    for step in left:
        line(f"  {step}")


def _program() -> Path:
    """Return the program `sitemapd` of this environment."""
    return Path(sys.executable).with_name("sitemapd")


def _sections(place: CommandTarget) -> dict[str, list[str]]:
    """Return the sections that each site has published; none where the store does not answer."""
    from shared.store.publishing.publish_state import PublishState

    client = place.client(needed=False)
    with suppress(StoreError):
        return {name: PublishState(client, name).sections() for name in place.settings.sites}
    return {}
