"""Names of the commands, with the place and the short help of each.

The help of `sitemapd` lists them without importing any: all together take over a second. A unit
test holds each text against the command's own help.
"""

from __future__ import annotations

COMMANDS = {
    "up": ("up:up", "Run everything on this machine: Redis, webhook, worker, the web root."),
    "secret": ("secret:secret", "Make a new secret for `secrets = [...]`."),
    "status": (
        "state:status",
        "Show the state of each site: pages, files, what waits and for how long.",
    ),
    "entry": (
        "state:entry",
        "Show the file and the values of a page, and the latest decisions about it.",
    ),
    "confirm": (
        "state:confirm",
        "Let files that the shrink guard holds shrink to the shown number of pages.",
    ),
    "publish": ("state:publish", "Publish what waits now, regardless of the publish interval."),
    "verify": ("verify:verify", "Compare every published file with the state, byte for byte."),
    "rebuild": (
        "verify:rebuild",
        (
            "Repair inconsistencies in the state, then write every file that differs from it "
            "beside the old one, and swap it in."
        ),
    ),
    "check": (
        "check:check",
        (
            "Check every page and every file: what search engines would refuse, what is missing, "
            "what the web server serves."
        ),
    ),
    "import": (
        "imports:import_",
        "Import every page of an existing sitemap, feed, list or CMS, as it is there now.",
    ),
    "reconcile": (
        "reconcile:reconcile",
        (
            "Make the listed pages equal to a source (default: the site's own): add, change and "
            "delete pages by ordinary events."
        ),
    ),
    "backup": (
        "backup:backup",
        "Write the present state of all sites to FILE, without stopping anything.",
    ),
    "restore": (
        "backup:restore",
        (
            "Restore the state in FILE to the Redis of this home; `sitemapd up` and workers must "
            "not run."
        ),
    ),
    "connect": (
        "connect:connect",
        "Show how to connect a CMS to a site; wait for its first delivery; test a captured one.",
    ),
    "doctor": (
        "doctor:doctor",
        (
            "Check configuration, Redis, clock, web root, robots.txt, files, workers, and what is "
            "served."
        ),
    ),
    "crawl": (
        "crawl:crawl",
        (
            "Report when each engine fetched what was published: index, files, changed pages, "
            "robots.txt."
        ),
    ),
    "config": ("config:app", "Check the configuration, or print nginx lines for it."),
    "console": ("console:app", "The web console at /admin/."),
    "dead": ("dead:app", "Dead letters: events that failed five times."),
    "event": ("events:app", "Send, inspect and replay change events."),
    "files": ("files:app", "Inspect and roll back the published files."),
    "queue": ("queue:app", "List queues; pause, resume, drain or purge them."),
    "run": (
        "run:app",
        "Run one part in the foreground, for systemd, containers and other supervisors.",
    ),
    "notify": ("notify:app", "Notifications sent to search engines."),
    "websub": ("websub:app", "WebSub subscriptions: feeds whose hubs push changes to the webhook."),
    "workers": ("workers:app", "List workers; make one quiet, resume or stop it."),
}
"""Module and name in deploy.commands, and first sentence of the help, in the order of the help."""
