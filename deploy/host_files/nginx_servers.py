"""The nginx configuration of all hosts: one server for each, made of the shipped one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from deploy.host_files.template import fill, put, shipped
from shared.config.settings import Settings
from shared.config.sites.site import Site

CERTIFICATES = Path("/etc/letsencrypt/live")
_NO_FILES = Path("/nonexistent")
"""Web root of a host with sites below directories only."""

_PORTS = {"http": 80, "https": 443}
_TLS_LINE = re.compile(r"(?m)^    # (listen .*|ssl_.*|add_header Strict-.*)$")
_REDIRECT = """\
server {{
    listen 80;
    listen [::]:80;
    server_name {host};
    server_tokens off;
    location ^~ /.well-known/acme-challenge/ {{
        root /var/www/letsencrypt;
    }}
    location / {{
        return 301 https://{host}$request_uri;
    }}
}}

"""


class Host(NamedTuple):
    """A host as browsers name it, with the sites on it by name."""

    name: str
    scheme: str
    port: int
    sites: Mapping[str, Site]


def hosts(settings: Settings) -> list[Host]:
    """Return the host of each site, and that of `public_url`, in the order of the configuration."""
    found: dict[str, dict[str, Site]] = {}
    for name, site in settings.sites.items():
        found.setdefault(site.base.origin, {})[name] = site
    if settings.public_url:
        found.setdefault(_origin(settings.public_url), {})
    return [_host(origin, sites) for origin, sites in found.items()]


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _host(origin: str, sites: Mapping[str, Site]) -> Host:
    parts = urlsplit(origin)
    name = parts.netloc.removesuffix(f":{parts.port}")
    return Host(name, parts.scheme, parts.port or _PORTS[parts.scheme], sites)


def snippet(name: str) -> str:
    """Return the name of the file with the locations of a site."""
    return f"sitemapd-site-{name}.conf"


def servers(
    settings: Settings, *, tls: bool = False, existing: Collection[str] = (),
    upstream: str = "", port: int = 0,
) -> str:  # fmt: skip
    """Return the configuration for `http`: upstream, limits, and a server for each host.

    `tls`: with certificates in CERTIFICATES, and a server that redirects to it. `existing`: hosts
    that have a server already, for which none is made, nor the server for unknown hosts.
    `upstream`: address of the webhook, by default its socket. `port`: that of every server, behind
    a proxy that knows those of the addresses.
    """
    head, default, server = re.split(r"(?m)^(?=server \{)", shipped("nginx", "sitemapd.conf"))
    if upstream:
        head = fill(head, {"upstream": f"server {upstream};"})
    if port:
        kinds = {"listen default": "", "listen6 default": "[::]:"}
        default = fill(
            default,
            {kind: f"listen {at}{port} default_server;" for kind, at in kinds.items()},
        )
    limit = f"client_max_body_size {settings.body_limit};"
    server = put(server, "client_max_body_size 1m;", limit)
    new = [
        host._replace(port=port or host.port)
        for host in hosts(settings)
        if host.name not in existing
    ]
    made = [_server(server, host, tls=tls) for host in new]
    return head + ("" if existing else default) + "\n".join(made)


def _server(text: str, host: Host, *, tls: bool) -> str:
    secure = tls and host.scheme == "https"
    values = {
        "host": f"server_name {host.name};",
        "web root": "\n    ".join(_roots(host)),
        "lookup": _lookup(host),
        "snippet": "include snippets/sitemapd-files.conf;",
    }
    port = host.port
    if secure:
        text = _TLS_LINE.sub(r"    \1", text)
        text = put(text, f"{CERTIFICATES}/www.example.com", f"{CERTIFICATES}/{host.name}")
        if port != _PORTS["https"]:
            text = text.replace("443 ssl", f"{port} ssl")
        values |= {"listen": "", "listen6": ""}
    elif port not in _PORTS.values():
        values |= {"listen": f"listen {port};", "listen6": f"listen [::]:{port};"}
    redirect = _REDIRECT.format(host=host.name) if secure and port == _PORTS["https"] else ""
    return redirect + fill(text, values)


def _at_root(host: Host) -> str:
    """Return the name of the site at the root of the host, empty if there is none."""
    return next((name for name, site in host.sites.items() if site.base.path == "/"), "")


def _lookup(host: Host) -> str:
    """Return the directive for the look-up of a page by sitemap.html."""
    name = _at_root(host)
    return f"proxy_pass http://sitemapd/v1/sites/{name}/listed;" if name else "return 404;"


def _roots(host: Host) -> Iterator[str]:
    """Yield the lines for the files: those of the site at the root of the host, then of others."""
    own = _at_root(host)
    yield f'root "{host.sites[own].web_root if own else _NO_FILES}";'
    for name in host.sites:
        if name != own:
            yield f"include snippets/{snippet(name)};"
