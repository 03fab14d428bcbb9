"""The systemd units, for the program, the configuration, the web roots and the Redis of a host."""

from __future__ import annotations

from pathlib import Path

from deploy.host_files.template import DEPLOY, put, shipped
from shared.config.settings import Settings

STATE = Path("/var/lib/sitemapd")
HOST_REDIS = "/run/redis-sitemapd/redis.sock"

_PROGRAM = "/opt/sitemapd/bin/sitemapd"
_HOME = "SITEMAPD_HOME=/etc/sitemapd"
_STATE_MODE = "StateDirectoryMode=0755\n"
_LOCAL = "RestrictAddressFamilies=AF_UNIX\n"
_OF_HOST_REDIS = (
    "Wants=redis-server@sitemapd.service\n",
    " redis-server@sitemapd.service",
    "# Of the socket of Redis.\nSupplementaryGroups=redis\n",
)


def units(settings: Settings, home: Path, program: Path) -> dict[str, str]:
    """Return each unit by its name."""
    made = {
        path.name: shipped("systemd", path.name) for path in sorted((DEPLOY / "systemd").iterdir())
    }
    for name, text in made.items():
        if name.endswith(".service"):
            made[name] = _service(text, settings, home, program)
    worker = "sitemapd-worker.service"
    made[worker] = put(made[worker], _STATE_MODE, _STATE_MODE + _writable(settings))
    return made


def _service(text: str, settings: Settings, home: Path, program: Path) -> str:
    text = put(text, _PROGRAM, _word(str(program)))
    text = put(text, _HOME, _word(f"SITEMAPD_HOME={home}"))
    if HOST_REDIS not in (settings.redis_url or HOST_REDIS):
        for line in _OF_HOST_REDIS:
            text = put(text, line, "")
        if not settings.redis_url.startswith("unix:"):
            text = text.replace(_LOCAL, "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6\n")
    return text


def _writable(settings: Settings) -> str:
    roots = (site.web_root.resolve() for site in settings.sites.values())
    return "".join(
        f"ReadWritePaths={_word(str(root))}\n" for root in roots if STATE not in root.parents
    )


def _word(text: str) -> str:
    """Return `text` as one word of a unit."""
    text = text.replace("%", "%%")
    if not any(character in text for character in " \t'\"\\"):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
