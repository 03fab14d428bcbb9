"""The configuration of a first start."""

from __future__ import annotations

import secrets
from pathlib import Path
from string import Template

from deploy.local.processes import replace
from shared.config.settings import FILE
from shared.config.standard_secret import new_secret

SITE = "demo"

_CONFIG = Template("""\
# Configuration of sitemapd. Every field is listed; a line that begins with # shows its default.
# Each top-level field can also be given as a variable, which wins: SITEMAPD_REDIS_URL, ...
# `sitemapd config check` reports every fault of this file.

# redis_url = ""            # Redis >= 7.0 or Valkey; empty: the embedded server keeps the state
# broker_url = ""           # broker of Celery's messages, if not the same Redis: another Redis, or
#                             "amqp://USER:PASSWORD@HOST:5672/VHOST" (RabbitMQ)
# wait_replicas = 0         # replicas of Redis that must have an event before the sender gets 202;
#                             503 if they do not within:
# wait_replicas_ms = 500    # milliseconds
# public_url = ""           # where CMSes reach the webhook, as "https://hooks.example.com": what
#                             `sitemapd connect` prints; empty: the host of the site's base_url
# allow_loss = false        # true: run on a Redis that may lose accepted events
# body_limit = 1048576      # bytes of one request's body
# inbox_limit = 1000000     # events that may wait before senders get 503; 0: no limit
# linger = 0.02             # seconds between two reads of the inbox under load
# history_mb = 16.0         # megabytes of Redis for a site's latest events, and again for the lines
#                             they changed: what the console shows, replays and takes back
# checks_hours = 24.0       # hours between two checks of the site (sitemapd check); 0: only on
#                             request
# metrics_token = ""        # Bearer token that shows /metrics of all sites and of Redis; a site's
#                             own token shows that site
# log_level = "info"        # "debug": also a line for each decision with its reason

# A changed file is in force within a second, in all processes, or refused as a whole. At the next
# start only: redis_url, broker_url, allow_loss, log_level.

# The API that adds and removes sites (POST /v1/sites), for operators; off without a token.
# [api]
# token = "env:SITEMAPD_OPERATOR"  # or "file:/path"; several for rotation
# web_roots = ""            # directory for web roots of new sites; empty: beside the first site's

# The console, at $address/admin/. `sitemapd console link` prints a link that logs in once.
[console]
# Its address as browsers see it; without one it answers to this machine's own names only, on any
# port. Behind a proxy: "https://sitemaps.example.com", or a list. Other hosts get 400.
# origin = []
# session_hours = 12.0      # hours until a session expires
# One table for each user. role: "viewer" reads (the default), "operator" may act, too.
[console.users.admin]
token = "$console"
# token_sha256 = ""         # instead of the token: its SHA-256, so that it is not written here
role = "operator"

# Alerts, when something needs somebody and when it is over: `sitemapd alerts test` tries the
# channels. Passwords, secrets and addresses: "...", "env:NAME" or "file:/path".
# [alerts]
# name = ""                 # of this installation in messages; empty: the host's
# messages_per_hour = 12    # at most; what happens beyond is told by the next one
# group_seconds = 30        # alerts that begin or end within these come in one message
# end_minutes = 5           # a condition must be absent so long until its alert ends
# [alerts.email]
# host = "smtp.example.com"
# port = 0                  # 0: 587 for "starttls", 465 for "tls", 25 for "plain"
# security = "starttls"     # "tls": from the start; "plain": only for a server on this machine
# user = "alerts"           # empty, and the password too: no login
# password = "env:SMTP_PASSWORD"
# sender = "sitemapd@example.com"
# to = ["ops@example.com"]
# [alerts.webhook]
# url = "https://ops.example.com/sitemapd"
# secret = "env:ALERT_SECRET"  # `sitemapd secret` makes one: signed by Standard Webhooks
# allow_private = false     # true: the host may be one of your own network, without TLS, too
# [alerts.slack]
# url = "env:SLACK_URL"     # incoming webhook of Slack, or of what takes the same JSON
# allow_private = false
# A table for each condition: failed (events), late (minutes), held (files), drift (errors), source
# (pages), pages (alarms), engines (their number), silent (hours), disk (per cent).
# [alerts.failed]
# on = true                 # false: no alert
# limit = 1                 # late: 5, disk: 90, all others: 1
# after_minutes = 2         # it must hold so long until the alert begins; engines: 30
# sites = []                # ["www"]: watched for these only

# One table for each site, here or in a file sites.d/*.toml beside this one; its name is part of the
# address events are sent to: $address/v1/sites/$site/events
[sites.$site]
# Scheme, host, port (and directory) of every page. This is the address the demo was first served
# on; it stays when `sitemapd up` is told to listen elsewhere. For your site write its own.
base_url = "$address"
# Where sitemap.xml and robots.txt are written; relative to this file.
web_root = "public"
# Further places, or all of them instead of web_root: targets, below.
# Standard Webhooks secrets. Every one verifies: to rotate, add the new one, change the sender, then
# remove the old one or let it end: { secret = "whsec_...", until = 2030-01-01T00:00:00Z }
secrets = ["$secret"]
# Bearer tokens, for senders that cannot sign and for reading (`sitemapd status`, /metrics).
tokens = ["$token"]
# The `Sitemap:` lines in robots.txt: "off", "edit" an existing file, or "create" one if needed.
robots = "create"
# form = "xml"              # xml | xml.gz | encoded (.gz on disk, served as .xml) | txt | txt.gz
# index = true              # false: no index, robots.txt lists every file (Baidu)
# emit_deprecated = false   # true: publish tags that search engines ignore by now
# engines = []              # ["yandex", "baidu"]: warn senders of these engines' own limits
# publish_interval = 1.0    # seconds between two publishes under load; the first is at once
# rate = 500                # events a second taken for long, two minutes' worth at once (60000);
#                             more gets 429 with Retry-After; 0: no limit
# viewer = true             # write sitemap.css and sitemap.html: the sitemap readable for people
# feed = false              # true: write atom.xml and rss.xml, the newest changes; files of these
#                             names that lie there already are replaced
# feed_entries = 100        # pages in them, 10 to 1000
# hub = ""                  # URL of the WebSub hub that both name
# title = ""                # of the feeds; empty: the host
# hints = false             # true: list changefreq and priority, which Yandex reads
# shard_urls = 10000        # URLs in one file, at most 50000
# shard_bytes = 52428800    # bytes of one file before compression
# index_shards = 1000       # files in one index, at most 50000
# retire_hours = 24.0       # hours that files stay which an earlier form or index named
# check_interval = 60.0     # seconds between checks for files changed or deleted by hand; 0: never
# A publish that would take more than this share of a file's pages out within these minutes is
# held: the old file stays until `sitemapd confirm`. For what a broken CMS or a stolen key deletes.
# shrink_share = 0.5        # 1: publish whatever is deleted
# shrink_minutes = 10.0
# shrink_least = 50         # fewer pages than this may always be removed
# Where the truth about the pages is, for `sitemapd verify --against` and `sitemapd reconcile`, and
# for the event resync: "wordpress:https://...", "ghost:https://...", "sql:postgresql+psycopg://...",
# "sitemap:URL or path", "csv:FILE", "ndjson:FILE" (paths: absolute).
# source = ""
# source_key = ""           # ghost: Content API key; wordpress: user:application password;
#                             sql: the password
# source_query = ""         # sql: a SELECT; columns are named like an event's members: loc, ...
# reconcile_hours = 0.0     # hours between two reconciles; 0: only when a resync asks for one

# Families of pages, each with files of its own: posts-1.xml, ... `pages` always exists. A page
# whose event names no section goes to the first that claims its path or language, else to `pages`.
[sites.$site.sections.posts]
# shard_urls = 10000        # as above, for this section
# split = ""                # "month": posts-2025-11.xml, ...; "language": posts-de-1.xml, ...
# paths = []                # ["/blog/*"]
# languages = []            # ["de", "de-AT"]

# CMSes that send their own webhooks: `sitemapd connect ghost` prints the steps, and with --try
# the result of a captured delivery. WordPress, Wagtail, Payload and CloudEvents need none.
# [sites.$site.sources.strapi]
# secret = []               # ["..."]: every one verifies, for rotation
# permalinks = {}           # { article = "/blog/{published_at:%Y}/{slug}", "*" = "/{slug}" }: from
#                             fields of the entry, by type; "article:en" for one of its languages
# sections = {}             # { article = "posts" }: the section of a type
# ignore = []               # ["author"]: types that are no pages
# locales = []              # ["en", "de"], where what is deleted names no language (Contentful)
# branch = ""               # GitHub: the published branch; default the repository's
# [sites.$site.sources.websub]
# topics = []               # ["https://blog.example.com/feed.atom"]: feeds of the site; the worker
#                             subscribes at their hubs, which then send what is new
# hub = ""                  # empty: the one that a feed names, if it is known
# callback = "$address"     # origin at which the hub reaches this webhook; default base_url's
# allow_private = false     # true: feeds and hub may be in your own network, without TLS, too

# Places to which the files are published, besides web_root or instead of it (worker/README.md).
# [[sites.$site.targets]]
# url = "s3://bucket/prefix"  # gs://bucket/prefix, az://container/prefix, or a directory
# name = ""                 # in status, logs and metrics; empty: the host or the bucket
# host = ""                 # a directory: "web1": only the worker with --host web1 writes it
# endpoint = ""             # "https://s3.example.com": others than Amazon that speak S3, Azure's
# region = "us-east-1"
# access_key_id = ""        # s3: "env:NAME", "file:/path"; empty: as the tools of AWS find theirs
# secret_access_key = ""
# service_account = ""      # gs: JSON key
# account_name = ""         # az
# account_key = ""
# cache_control = "max-age=0, must-revalidate"
# allow_http = false        # true: an endpoint without TLS

# Looks at the pages: whether they answer 200 and may be indexed (worker/README.md). This table
# switches them on, and may be empty.
# [sites.$site.pages]
# daily = 2000              # requests a day at most, besides robots.txt once an hour
# interval = 1.0            # seconds between two requests to the host, at least
# broken = "warn"           # "unlist": pages that are not 200 and indexable leave the sitemap
# confirm_minutes = 5.0     # until a page that was found broken is looked at again
# again_hours = 24.0        # until a round over the pages begins again, at least
# alarm_broken = 2.0        # per cent of broken pages above which there is an alarm
# alarm_fewer = 10.0        # per cent of pages fewer than in the rounds before
# gate = false              # true: list a new page only once it was seen to be 200 and indexable
# prove_lastmod = false     # true: take a new date only once the page was seen to have changed;
#                             pip install 'sitemapd[pages]'
# wait_hours = 24.0         # for which a new page or a date waits for that at most
# records = 200000          # pages whose last look is kept, 40 bytes each

# Search engines to notify of published changes, a table each: `sitemapd notify test` shows the
# requests. Search engines have retired their pings. Secrets: "...", "env:NAME" or "file:/path".
# [sites.$site.notify]
# hosts = []                # further hosts for requests, besides those of engines and known hubs
# [sites.$site.notify.indexnow]
# key = "0123456789abcdef"  # `sitemapd notify key` makes one; public: its file is in the web root
# key_location = "$address/0123456789abcdef.txt"  # if you serve that file yourself
# endpoints = ["https://api.indexnow.org/indexnow"]  # the next where one fails; Naver's is
#                             https://searchadvisor.naver.com/indexnow
# daily = 10000             # URLs a day; of search_console, websub and crawler: requests
# debounce_minutes = 10.0   # between two notifications about one URL (these three: about the site)
# allow_private = false     # true: its host may be one of your own network, without TLS, too
# [sites.$site.notify.search_console]
# credentials = "file:/etc/sitemapd/google.json"  # JSON key of a service account
# property = ""             # "sc-domain:example.com" or a URL; empty: base_url
# endpoint = "https://www.googleapis.com/webmasters/v3"
# token_endpoint = "https://oauth2.googleapis.com/token"
# [sites.$site.notify.google_indexing]
# credentials = "file:/etc/sitemapd/google.json"
# sections = { posts = "JobPosting" }  # or "BroadcastEvent": Google takes no other pages
# endpoint = "https://indexing.googleapis.com/v3/urlNotifications:publish"
# token_endpoint = "https://oauth2.googleapis.com/token"
# [sites.$site.notify.bing]
# key = "env:BING_KEY"      # API key of Bing Webmaster Tools
# site = ""                 # as it is verified there; empty: the origin of base_url
# endpoint = "https://ssl.bing.com/webmaster/api.svc/json/SubmitUrlbatch"
# [sites.$site.notify.yandex]
# token = "env:YANDEX_TOKEN"  # OAuth
# user_id = 1
# host_id = "https:www.example.com:443"
# endpoint = "https://api.webmaster.yandex.net/v4"
# [sites.$site.notify.baidu]
# token = "env:BAIDU_TOKEN"
# site = ""                 # as it is verified there; empty: the origin of base_url
# endpoint = "http://data.zz.baidu.com/urls"
# plain_http = false        # true: send the token without TLS; Baidu names no other address
# [sites.$site.notify.websub]  # notify the hub above of the feeds
# [sites.$site.notify.crawler]  # one of your own: GET with the address of the sitemap
# url = "https://crawler.example.com/?sitemap={sitemap}"  # its host in `hosts`
# [sites.$site.notify.cloudflare]  # content delivery networks: told which files changed
# zone = "0123456789abcdef0123456789abcdef"  # id of the zone
# token = "env:CLOUDFLARE_TOKEN"  # with the permission Cache Purge
# endpoint = "https://api.cloudflare.com/client/v4"
# [sites.$site.notify.fastly]
# token = "env:FASTLY_TOKEN"  # with the scope purge_select
# soft = true               # false: nothing is served while the new file is fetched
# endpoint = "https://api.fastly.com"
# [sites.$site.notify.cloudfront]
# distribution = "E1EXAMPLE23456"
# access_key_id = "env:AWS_ACCESS_KEY_ID"  # may do cloudfront:CreateInvalidation
# secret_access_key = "env:AWS_SECRET_ACCESS_KEY"
# endpoint = "https://cloudfront.amazonaws.com"
# [sites.$site.notify.purge]  # any cache: one request for each file
# url = "{url}"             # the file's own address, or "https://cache.example.com/?u={url}"
# method = "PURGE"          # "POST", "GET", "DELETE"
# token = ""                # Bearer token, if it asks for one

[sites.$site.sections.products]

[sites.$site.sections.news]
news = true                 # Google News: articles of the last 48 hours, beside their normal entry
# keep_empty = false        # true: keep the file, without a line, while there is no news
""")


def write(home: Path, address: str) -> Path:
    """Return the configuration file in `home`; write one for a demo site at `address` if there is
    none.

    Never overwrites a file. Mode 0600, since it holds secrets.
    """
    path = home / FILE
    text = _CONFIG.substitute(
        address=address,
        site=SITE,
        secret=new_secret(),
        token=secrets.token_urlsafe(32),
        console=secrets.token_urlsafe(32),
    )
    if not path.exists():
        (home / "public").mkdir(mode=0o755, exist_ok=True)
        replace(path, text)
    return path
