"""nginx lines with which the server block of an existing web site serves a site's files, too."""

from __future__ import annotations

import re
from collections.abc import Iterable

from shared.config import filenames
from shared.config.sites.site import Site
from shared.sitemap import shards

_LINES = """\
# {base}: the files of {root}, and no other; from `sitemapd config nginx`.
location ~ "^{directory}({names})$" {{
    root "{root}";
    include snippets/sitemapd-files.conf;{rewrite}
    try_files $uri @sitemapd_packed_{name};
}}
"""

_FRAMED = """\
# Asks the webhook whether a page is listed; without it, {page} reads all files in the browser.
location = "{directory}{lookup}" {{
    proxy_pass http://unix:/run/sitemapd/web.sock:/v1/sites/{name}/listed;
    proxy_read_timeout 4s;
}}
location = "{directory}{page}" {{
    root "{root}";
    include snippets/sitemapd-files.conf;
    add_header Content-Security-Policy "frame-ancestors 'none'" always;{rewrite}
}}
"""

_WELL_KNOWN = """\
# Where clients of ResourceSync look for the way to changelist.xml.
location = /{well_known} {{
    root "{root}";
    include snippets/sitemapd-files.conf;
    try_files /{source} =404;
}}
"""

_PACKED = """\
location @sitemapd_packed_{name} {{
    root "{root}";
    include snippets/sitemapd-files.conf;
    gzip_static always;
    gunzip on;
    gzip_vary on;
}}
"""


def lines(name: str, site: Site, sections: Iterable[str] = ()) -> str:
    """Return the `location` blocks for the files of the site `name`, those of `sections`
    included.

    They fit into one server with those of other sites. Made of the one list of file names
    (shared/config/filenames.py). The web root of a site below a directory corresponds to that
    directory.
    """
    path = site.base.path
    names = filenames.served(site, sections)
    directory = re.escape(path)
    rewrite = "" if path == "/" else f'\n    rewrite "^{directory}(.*)$" /$1 break;'
    values = {
        "base": site.base.prefix, "root": str(site.web_root), "directory": directory,
        "names": "|".join(names), "rewrite": rewrite, "name": name,
    }  # fmt: skip
    framed = ""
    if site.viewer:
        further = {"page": filenames.PAGE, "lookup": filenames.LOOKUP}
        framed = _FRAMED.format(**values | {"directory": path} | further)
    if site.outputs.change_list and path == "/":
        framed += _WELL_KNOWN.format(
            root=site.web_root, source=shards.CHANGE_LIST_FILES[-1], well_known=shards.WELL_KNOWN
        )
    return framed + _LINES.format(**values) + _PACKED.format(**values)
