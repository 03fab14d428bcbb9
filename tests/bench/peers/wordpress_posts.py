"""WordPress core: what it does anew for one changed post.

Core keeps no sitemap files. It renders the file of 2,000 posts that lists the post, and the index
that names that file, on every request. The changed post has a new slug, since core lists no lastmod
before WordPress 6.5.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import psutil

from tests.bench.peers.cost import Cost, Page
from tests.system.wordpress import WordPress, needed

PER_FILE = 2_000
_FIRST = re.compile(r"<loc>[^<]*/articles/\d+/\d+/([^<]*)/</loc>")
_LOAD = """
global $wpdb, $wp_rewrite;
$wp_rewrite->set_permalink_structure( '/articles/%%year%%/%%monthnum%%/%%postname%%/' );
flush_rewrite_rules( false );
$wpdb->query( 'SET GLOBAL innodb_buffer_pool_size = 1073741824' );
$wpdb->query( "LOAD DATA INFILE '%s' INTO TABLE $wpdb->posts ( post_name, post_date )
    SET post_date_gmt = post_date, post_modified = post_date, post_modified_gmt = post_date,
    post_title = post_name, post_author = 1, post_status = 'publish', post_type = 'post',
    post_content = '', post_excerpt = '', to_ping = '', pinged = '', post_content_filtered = ''" );
return (int) $wpdb->get_var( "SELECT COUNT(*) FROM $wpdb->posts WHERE post_status = 'publish'" );
"""


class Posts:
    """A site of `count` posts, and the file of its sitemap in the middle of them."""

    def __init__(self, wordpress: WordPress, pages: list[Page]) -> None:
        self._wordpress = wordpress
        source = wordpress.home / "posts.tsv"
        source.write_text(
            "".join(f"{loc.rpartition('/')[2]}\t{at[:10]} {at[11:19]}\n" for loc, at in pages)
        )
        wordpress.web.timeout = httpx.Timeout(600)
        self.count = wordpress.run(_LOAD % source)
        assert self.count >= len(pages), wordpress.errors.read_text()
        source.unlink()
        middle = len(pages) // 2 // PER_FILE + 1
        self._file = f"/wp-sitemap-posts-post-{middle}.xml"
        self._get("/wp-sitemap.xml")

    def change(self) -> Cost:
        """Change a post, then render its file and the index; the cost of these. They are written
        to nothing but the answers.
        """
        found = _FIRST.search(self._get(self._file))
        assert found
        slug = found[1] + "-b"
        self._wordpress.run(
            "global $wpdb; return $wpdb->update( $wpdb->posts,"
            f" array( 'post_name' => '{slug}' ), array( 'post_name' => '{found[1]}' ) );"
        )
        cpu, began = self._cpu(), time.perf_counter()
        index, content = self._get("/wp-sitemap.xml"), self._get(self._file)
        seconds = time.perf_counter() - began
        assert self._file in index
        assert f"/{slug}/</loc>" in content
        return Cost(seconds, self._cpu() - cpu, len(index.encode()) + len(content.encode()))

    def _get(self, path: str) -> str:
        answer = httpx.get(f"{self._wordpress.url}{path}", timeout=600, trust_env=False)
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.text

    def _cpu(self) -> float:
        """CPU seconds so far of PHP and MariaDB."""
        total = 0.0
        for child in self._wordpress.children:
            server = psutil.Process(child.pid)
            for process in (server, *server.children(recursive=True)):
                times = process.cpu_times()
                total += times.user + times.system
        return total


@contextmanager
def posts(pages: list[Page]) -> Iterator[Posts]:
    """A WordPress with `pages` as its posts, which ends with the block; skips where it is not
    installed.
    """
    needed()
    with TemporaryDirectory(prefix="sitemapd-bench-") as home:
        wordpress = WordPress(Path(home))
        try:
            wordpress.start()
            yield Posts(wordpress, pages)
        finally:
            wordpress.stop()
