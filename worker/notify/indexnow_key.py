"""Key file in the web root, by which IndexNow verifies the host (PROTOCOL U4)."""

from __future__ import annotations

from contextlib import closing

from shared.config.sites.site import Site
from shared.errors import PublishError
from worker.publishing.targets.registry import open_own


def ensure(site: Site) -> None:
    """Write the key file if it does not exist.

    Raises PublishError if it cannot be written, or a file of that name has other content, which
    stays. A file served elsewhere (`key_location`) is left to the administrator.
    """
    config = site.notify.indexnow
    if config is None or config.key_location is not None:
        return
    name, content = f"{config.key}.txt", config.key.encode()
    with closing(open_own(site)) as root:
        found = root.read(name)
        if found is None:
            staged = root.stage(name, [content])
            try:
                root.place(staged)
            finally:
                root.discard([staged])
            root.sync()
        elif found.strip() != content:
            raise PublishError(
                f"{site.web_root / name} was not written by sitemapd: remove it, or use another key"
            )
