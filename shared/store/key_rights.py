"""Rights of each role to each kind of key: what the users of Redis are made of.

`web` accepts events and shows the console; `worker` applies and publishes them, tells engines and
people, compares sources, and is the schedule besides. The administrator, who is the command line,
may do all that the server lets its owner do, and is not listed.

A right is what a role's own code needs: who takes over a web process can send events to any site,
and press the buttons of the console; records of pages, shards and blocks change by events only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

Role = Literal["web", "worker"]
ROLES: tuple[Role, ...] = ("web", "worker")

# Name or pattern; rights of web; rights of workers. A colon at the end stands for all that follow.
_OF_SITES = """
inbox               rw  rw
awake               rw  rw
rate                rw  rw
seen:               rw  rw
stats               rw  rw
accepted:           rw  rw
pulse:              rw  rw
hour:               rw  rw
refused             rw  r
recent              rw  rw
paused              rw  rw
purges              rw  r
purged:             rw  r
dead                rw  rw
held                rw  rw
allowed             rw  rw
dirty               rw  rw
quarantine          r   rw
notify:             rw  rw
notices             r   rw
notices:breakers    rw  rw
notices:dead        rw  rw
websub              rw  rw
checks:asked        rw  rw
checks              r   rw
checking            r   rw
checking:progress   r   rw
loc:                r   rw
id:                 r   rw
tombs               -   rw
counters            r   rw
sections            r   rw
tails               -   rw
section:*:shards    r   rw
section:*:files     r   rw
section:*:pending:  r   rw
section:*:taking:   r   rw
section:*:blocks:   r   rw
index:              r   rw
retired             r   rw
shape               r   rw
versions            -   rw
targets             r   rw
target:             -   rw
expiry              -   rw
coming              r   rw
cluster:            -   rw
feed                -   rw
feed:items          r   rw
titles:             -   rw
changes             -   rw
changes:since       -   rw
hosts               r   rw
submitting          -   rw
resync              r   rw
resync-alarm        -   rw
reconcile           -   rw
revisions           r   rw
crawl               r   r
crawl:pages         r   r
readback            r   rw
readback:           r   rw
reading-back        -   rw
told:               r   rw
spent:              r   rw
telling:            -   rw
following:          -   rw
lease               -   rw
migrating           -   rw
import:             -   rw
looks               r   rw
looks:page:         r   rw
looks:due           r   rw
looks:again         -   rw
looks:broken        r   rw
looks:unlisted      r   rw
absent              rw  rw
"""

_OF_NO_SITE = """
counts              rw  rw
configuration       rw  rw
worker:             r   rw
workers             r   rw
wanted:             rw  rw
loops:              r   rw
audit               rw  -
session:            rw  -
once:               rw  -
tries:              rw  -
alerts              -   rw
alerts:messages     -   rw
alerts:sent         -   rw
alerts:channels     -   rw
alerting            -   rw
looking:            -   rw
robots:             -   rw
doctor              rw  rw
"""

# Of kombu, where the broker is a Redis: queues, each with others of its name and a priority, and
# what is bound to which exchange.
_OF_BROKER = """
sitemapd*                           rw  rw
_kombu.binding.sitemapd*            rw  rw
_kombu.binding_permanent.sitemapd*  rw  rw
_kombu.*                            -   rw
unacked*                            -   rw
*.pidbox*                           -   rw
celeryev*                           -   rw
"""


class KeyRights(NamedTuple):
    """The rights of both roles to one kind of key: `r`, `w`, both or none. `name` is a glob below
    the prefix of a site, of what belongs to none, or whole for a key of the broker.
    """

    name: str
    web: str
    worker: str

    def of(self, role: Role) -> str:
        """Return the rights of one role."""
        return self.web if role == "web" else self.worker


def _read(table: str) -> tuple[KeyRights, ...]:
    rows = (line.split() for line in table.strip().splitlines())
    return tuple(
        KeyRights(name + "*" if name[-1] == ":" else name, web.strip("-"), worker.strip("-"))
        for name, web, worker in rows
    )


OF_SITES = _read(_OF_SITES)
OF_NO_SITE = _read(_OF_NO_SITE)
OF_BROKER = _read(_OF_BROKER)


def patterns(site: str, no_site: str) -> Iterator[KeyRights]:
    """Yield the rights by whole keys; `site` and `no_site` are the prefixes."""
    for prefix, rows in ((site, OF_SITES), (no_site, OF_NO_SITE), ("", OF_BROKER)):
        yield from (row._replace(name=prefix + row.name) for row in rows)
