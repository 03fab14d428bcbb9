"""All files for a host, each with its place below a directory laid out like /etc, and the steps
that put them to use.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from deploy.host_files import redis_users
from deploy.host_files.nginx_servers import hosts, servers, snippet
from deploy.host_files.template import DEPLOY, put, shipped
from deploy.host_files.units import HOST_REDIS, units
from deploy.web.nginx_lines import lines
from deploy.wordpress.build import packed
from shared.config.settings import FILE, Settings
from shared.store.key_rights import ROLES, Role

KUBERNETES = "kubernetes"
_DIGEST = "@SHA256-OF-THE-PASSWORD@"
_STARTED = (
    "sitemapd.target", "sitemapd-web", "sitemapd-worker", "sitemapd-schedule",
    "sitemapd-backup.timer",
)  # fmt: skip
_PUBLIC, _PRIVATE, _SECRET = 0o644, 0o640, 0o600


class HostFile(NamedTuple):
    """One file: its path below the directory, its content, its mode."""

    path: str
    content: bytes
    mode: int = _PUBLIC


class Wanted(NamedTuple):
    """Values of this host that the files need beside the configuration."""

    home: Path
    program: Path
    sections: Mapping[str, Collection[str]]
    """The sections that are published, by site."""
    tls: bool = False
    existing: Collection[str] = ()
    upstream: str = ""
    port: int = 0
    passwords: Mapping[Role, str] = {}
    """Passwords of the roles, where each part is to have a user of Redis of its own."""


def collect(settings: Settings, wanted: Wanted) -> Iterator[HostFile]:
    """Yield the files for a host with this configuration."""
    texts = {
        "nginx/sites-available/sitemapd": servers(
            settings, tls=wanted.tls, existing=wanted.existing,
            upstream=wanted.upstream, port=wanted.port,
        ),
        "nginx/sites-available/sitemapd-metrics": shipped("prometheus", "nginx.conf"),
        "nginx/snippets/sitemapd-files.conf": shipped("nginx", "sitemapd-files.conf"),
        "redis/redis-sitemapd.conf": shipped("redis", "sitemapd.conf"),
        "prometheus/prometheus.yml": shipped("prometheus", "prometheus.yml"),
        "prometheus/sitemapd.rules.yml": shipped("prometheus", "sitemapd.rules.yml"),
        "grafana/sitemapd.json": shipped("grafana", "sitemapd.json"),
    }  # fmt: skip
    for name, site in settings.sites.items():
        made = lines(name, site, wanted.sections.get(name, ()))
        texts[f"nginx/snippets/{snippet(name)}"] = made
    for name, text in units(settings, wanted.home, wanted.program).items():
        texts[f"systemd/system/{name}"] = text
    for path, text in texts.items():
        yield HostFile(path, text.encode())
    users = _users(settings.redis_url)
    for role, password in wanted.passwords.items():
        address = redis_users.address_of(role, settings.redis_url, password)
        yield HostFile(redis_users.variables(role), address.encode(), _SECRET)
        users += redis_users.line(
            role, redis_users.digest_of(password), redis_users.database(settings.redis_url)
        )
    yield HostFile("redis/sitemapd.acl", users.encode(), _PRIVATE)
    yield HostFile("wordpress/sitemapd.zip", packed())
    for manifest in sorted((DEPLOY / KUBERNETES).rglob("*.*")):
        yield HostFile(str(manifest.relative_to(DEPLOY)), manifest.read_bytes())


def _users(redis_url: str) -> str:
    """Return the users of Redis, with the digest of the password in `redis_url` if it has one."""
    text = shipped("redis", "sitemapd.acl")
    password = urlsplit(redis_url).password
    if not password:
        return text
    return put(text, _DIGEST, redis_users.digest_of(unquote(password)))


def known_passwords(directory: Path) -> dict[Role, str]:
    """Return the password of each role: the one in its file in `directory`, else a new one."""
    return {
        role: redis_users.password_in(directory / redis_users.variables(role))
        or redis_users.new_password()
        for role in ROLES
    }


def differing(directory: Path, files: Collection[HostFile]) -> list[str]:
    """Return the paths of `files` that hold something else in `directory`."""
    return [
        file.path
        for file in files
        if os.path.lexists(directory / file.path)
        and (
            not (directory / file.path).is_file()
            or (directory / file.path).read_bytes() != file.content
        )
    ]


def write(directory: Path, files: Collection[HostFile]) -> None:
    """Write `files` below `directory`, over those that are there."""
    for file in files:
        path = directory / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(path, flags, file.mode), "wb") as written:
            written.write(file.content)


def steps(directory: Path, settings: Settings, wanted: Wanted) -> list[str]:
    """Return what is left to do on the host, as root, in order."""
    names = [host.name for host in hosts(settings)]
    new = [name for name in names if name not in wanted.existing]
    snippets = {
        host.name: [f"include snippets/{snippet(name)};" for name in host.sites]
        for host in hosts(settings)
        if host.name in wanted.existing
    }
    found = [f"cp -r {directory}/nginx/. /etc/nginx/"]
    if new:
        found += ["ln -sf ../sites-available/sitemapd /etc/nginx/sites-enabled/sitemapd"]
    found += [f"in the server of {name}: {' '.join(each)}" for name, each in snippets.items()]
    if HOST_REDIS in settings.redis_url:
        found += [
            f"install -m 0640 -o root -g redis {directory}/redis/* /etc/redis/",
            "install -d -m 0750 -o redis -g redis /var/lib/redis/sitemapd",
            "systemctl enable --now redis-server@sitemapd",
        ]
    elif not settings.redis_url:
        found += [f"name a Redis as redis_url in {wanted.home / FILE}: these parts start none"]
    elif wanted.passwords:
        found += [
            f"copy {directory}/redis/sitemapd.acl to each server of Redis, and name it as aclfile",
        ]
    if wanted.passwords:
        found += [f"install -D -m 0600 -t /etc/sitemapd {directory}/sitemapd/*.env"]
    found += [
        f"cp {directory}/systemd/system/* /etc/systemd/system/ && systemctl daemon-reload",
        f"systemctl enable --now {' '.join(_STARTED)}",
        "nginx -t && systemctl reload nginx",
    ]
    secure = [host.name for host in hosts(settings) if host.scheme == "https" and host.name in new]
    if secure and not wanted.tls:
        certbot = "certbot certonly --webroot -w /var/www/letsencrypt -d"
        found += ["mkdir -p /var/www/letsencrypt"]
        found += [f"{certbot} {name}" for name in secure]
        again = "".join(f" --existing {name}" for name in wanted.existing)
        found += [
            f"sitemapd deploy-files {directory} --home {wanted.home} --tls --force{again}",
            f"cp -r {directory}/nginx/. /etc/nginx/ && nginx -t && systemctl reload nginx",
        ]
    return found
