"""Names of the commands, with the place, the panel and the short help of each.

The help of `sitemapd` lists them without importing any: all together take over a second. A unit
test holds each text against the command's own help.
"""

from __future__ import annotations

from typing import NamedTuple

EVERYDAY, REPAIR, OPERATE, SET_UP = "Everyday", "Repair", "Operate", "Set up"
PANELS = (EVERYDAY, REPAIR, OPERATE, SET_UP)
"""Headings of the help, in its order."""


class ListedCommand(NamedTuple):
    """Panel of a command, its `module:name` in deploy.commands, and the first sentence of its
    help.
    """

    panel: str
    place: str
    help: str


COMMANDS = {
    "status": ListedCommand(
        EVERYDAY, "state:status",
        "Show the state of each site: pages, files, what waits and for how long.",
    ),
    "entry": ListedCommand(
        EVERYDAY, "state:entry",
        "Show the file and the values of a page, and the latest decisions about it.",
    ),
    "event": ListedCommand(EVERYDAY, "events:app", "Send, inspect and replay change events."),
    "files": ListedCommand(EVERYDAY, "files:app", "Inspect and roll back the published files."),
    "import": ListedCommand(
        EVERYDAY, "imports:import_",
        "Import every page of an existing sitemap, feed, list or CMS, as it is there now.",
    ),
    "check": ListedCommand(
        EVERYDAY, "check:check",
        ("Check every page and every file: what search engines would refuse, what is missing, "
         "what the web server serves."),
    ),
    "crawl": ListedCommand(
        EVERYDAY, "crawl:crawl",
        ("Report when each engine fetched what was published: index, files, changed pages, "
         "robots.txt."),
    ),
    "readback": ListedCommand(
        EVERYDAY, "readback:readback",
        "Show which published pages and sitemaps search engines know, and since when.",
    ),
    "console": ListedCommand(EVERYDAY, "console:app", "The web console at /admin/."),
    "doctor": ListedCommand(
        REPAIR, "doctor:doctor",
        ("Check configuration, Redis, clock, web root, robots.txt, files, workers, and what is "
         "served."),
    ),
    "verify": ListedCommand(
        REPAIR, "verify:verify",
        "Compare every published file with the state, byte for byte.",
    ),
    "reconcile": ListedCommand(
        REPAIR, "reconcile:reconcile",
        ("Make the listed pages equal to a source (default: the site's own): add, change and "
         "delete pages by ordinary events."),
    ),
    "rebuild": ListedCommand(
        REPAIR, "verify:rebuild",
        ("Repair inconsistencies in the state, then write every file that differs from it beside "
         "the old one, and swap it in."),
    ),
    "publish": ListedCommand(
        REPAIR, "state:publish",
        "Publish what waits now, regardless of the publish interval.",
    ),
    "confirm": ListedCommand(
        REPAIR, "state:confirm",
        "Let files that the shrink guard holds shrink to the shown number of pages.",
    ),
    "dead": ListedCommand(REPAIR, "dead:app", "Dead letters: events that failed five times."),
    "queue": ListedCommand(
        OPERATE, "queue:app",
        "List queues; pause, resume, drain or purge them.",
    ),
    "workers": ListedCommand(
        OPERATE, "workers:app",
        "List workers; make one quiet, resume or stop it.",
    ),
    "notify": ListedCommand(OPERATE, "notify:app", "Notifications sent to search engines."),
    "backup": ListedCommand(
        OPERATE, "backup:backup",
        "Write the present state of all sites to FILE, without stopping anything.",
    ),
    "restore": ListedCommand(
        OPERATE, "backup:restore",
        ("Restore the state in FILE to the Redis of this home; `sitemapd up` and workers must "
         "not run."),
    ),
    "migrate": ListedCommand(
        OPERATE, "migrate:migrate",
        ("Move the stored state of sites to the layout of this version, as its workers do at their "
         "start."),
    ),
    "site": ListedCommand(
        OPERATE, "sites:site",
        "List, add and remove sites, without a restart.",
    ),
    "section": ListedCommand(
        OPERATE, "sites:section",
        "Add sections to a site, without a restart.",
    ),
    "user": ListedCommand(
        OPERATE, "user:app",
        "Add users of the console, without a restart.",
    ),
    "alerts": ListedCommand(
        OPERATE, "alerts:app", "Alerts by e-mail, Slack, signed webhooks: list and test."
    ),
    "run": ListedCommand(
        OPERATE, "run:app",
        "Run one part in the foreground, for systemd, containers and other supervisors.",
    ),
    "up": ListedCommand(
        SET_UP, "up:up",
        "Run everything on this machine: Redis, webhook, worker, the web root.",
    ),
    "config": ListedCommand(
        SET_UP, "config:app",
        "Check the configuration, or print nginx lines for it.",
    ),
    "deploy-files": ListedCommand(
        SET_UP, "deploy_files:deploy_files",
        "Write nginx, systemd, Redis, Kubernetes and monitoring files, and the WordPress plugin.",
    ),
    "secret": ListedCommand(SET_UP, "secret:secret", "Make a new secret for `secrets = [...]`."),
    "connect": ListedCommand(
        SET_UP, "connect:connect",
        "Show how to connect a CMS to a site; wait for its first delivery; test a captured one.",
    ),
    "websub": ListedCommand(
        SET_UP, "websub:app",
        "WebSub subscriptions: feeds whose hubs push changes to the webhook.",
    ),
    "completion": ListedCommand(
        SET_UP, "completion:completion",
        "Print the lines that let a shell complete commands, options and names of sites.",
    ),
}  # fmt: skip
"""Commands in the order of the help, those of a panel together."""
