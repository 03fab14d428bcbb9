"""The commands `config check` and `config nginx`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from deploy.cli.examples import examples
from deploy.cli.output import HomeOption, JsonOption, SiteOption, answer, find, find_any, raw
from deploy.web.nginx_lines import lines
from shared.errors import StoreError

if TYPE_CHECKING:
    from shared.config.sites.site import Site

app = typer.Typer(
    help="Check the configuration, or print nginx lines for it.", no_args_is_help=True
)


@app.command()
@examples("sitemapd config check", "sitemapd config check --json")
def check(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Read the configuration, name every fault in it, and warn of what may be one."""
    place = find_any(home)
    sites = [
        {
            "site": name,
            "base_url": site.base_url,
            "web_root": str(site.web_root),
            "form": site.form,
            "sections": ", ".join(sorted(site.limits)),
        }
        | _of_the_host(site)
        | _warnings(site, place.settings.sites)
        for name, site in place.settings.sites.items()
    ]
    answer(sites, as_json=as_json)


def _of_the_host(site: Site) -> dict[str, str]:
    """Return the robots.txt line that only an administrator can add for a site below a directory:
    crawlers read the host's robots.txt and no other (PROTOCOL L6, R1).
    """
    if site.base.path == "/":
        return {}
    from shared.config.filenames import index_name

    line = f"Sitemap: {site.base.url(index_name(site, 0))}"
    return {"to_do": f"add to {site.base.origin}/robots.txt the line: {line}"}


def _warnings(site: Site, every: Mapping[str, Site]) -> dict[str, list[str]]:
    """Return a warning for each of `outputs.hosts` that no site is called. That is no fault: sites
    of `sites.d` are added and removed while the others run.
    """
    said = [
        f"outputs.hosts names {name}, and no site has that name: sitemap-hosts.xml is written "
        f"without it. Add [sites.{name}], or take the name out"
        for name in site.outputs.hosts
        if name not in every
    ]
    return {"warnings": said} if said else {}


@app.command()
@examples("sitemapd config nginx", "sitemapd config nginx --site shop")
def nginx(home: HomeOption = None, site: SiteOption = None, as_json: JsonOption = False) -> None:
    """Print the nginx lines that serve a site's files beside another web site on its host.

    They name the files that the present settings and sections can produce: print them again after a
    change of either.
    """
    from shared.store.publishing.publish_state import PublishState

    place = find(home, site)
    sections: list[str] = []
    with suppress(StoreError):
        sections = PublishState(place.client(needed=False), place.name).sections()
    said = lines(place.name, place.site, sections)
    if as_json:
        answer({"site": place.name, "nginx": said}, as_json=True)
    else:
        raw(said, end="")
