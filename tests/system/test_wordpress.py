"""A real WordPress with the plugin, a real sitemapd, and an editor's year between them.

After each step the published files, read over HTTP as a crawler would, list exactly what WordPress
says is public, each page with WordPress's own date.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.system import wordpress
from tests.system.driver import wait_until
from tests.system.newsroom import SECRET, SETTINGS, Newsroom, answering

IMAGE = "{http://www.google.com/schemas/sitemap-image/1.1}"
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJ"
    "RU5ErkJggg=="
)
PLUGIN = Path(__file__).parents[2] / "deploy" / "wordpress" / "sitemapd"

cms_wordpress = pytest.mark.cms_wordpress


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wordpress.packed(tmp_path_factory.mktemp("zip") / "sitemapd.zip")


@pytest.fixture(scope="module")
def newsroom(tmp_path_factory: pytest.TempPathFactory, package: Path) -> Iterator[Newsroom]:
    wordpress.needed()
    newsroom = Newsroom(tmp_path_factory.mktemp("wordpress"))
    try:
        newsroom.start(package)
        newsroom.send_everything()
        yield newsroom
    finally:
        newsroom.wp.stop()
        newsroom.system.end()
    assert not newsroom.wp.faults()


def test_the_zip_holds_the_plugin_and_has_the_same_bytes_every_time(
    package: Path, tmp_path: Path
) -> None:
    again = wordpress.packed(tmp_path / "again.zip")
    with zipfile.ZipFile(package) as packed:
        names = set(packed.namelist())
    tree = {f"sitemapd/{p.relative_to(PLUGIN)}" for p in PLUGIN.rglob("*") if p.is_file()}
    head = (PLUGIN / "sitemapd.php").read_text()
    version = re.search(r"Version: +(\S+)", head)

    assert package.read_bytes() == again.read_bytes()
    assert names == tree
    assert names >= {"sitemapd/sitemapd.php", "sitemapd/readme.txt", "sitemapd/uninstall.php"}
    assert version
    assert f"'SITEMAPD_VERSION', '{version[1]}'" in head
    assert f"Stable tag: {version[1]}\n" in (PLUGIN / "readme.txt").read_text()


@cms_wordpress
def test_every_file_of_the_plugin_compiles_and_is_no_page_of_its_own() -> None:
    wordpress.needed()
    for path in PLUGIN.rglob("*.php"):
        done = subprocess.run(["php", "-l", path], capture_output=True, text=True, check=False)

        assert done.returncode == 0, done.stdout
        assert re.search(r"(?m)^defined\( '\w+' \) \|\| exit;$", path.read_text()), path


@cms_wordpress
def test_a_site_that_was_there_before_is_sent_as_a_whole(newsroom: Newsroom) -> None:
    public = newsroom.settled()

    assert f"{newsroom.wp.url}/" in public
    assert f"{newsroom.wp.url}/sample-page/" in public
    assert f"{newsroom.wp.url}/author/editor/" in public
    assert f"{newsroom.wp.url}/category/uncategorized/" in public


@cms_wordpress
def test_a_post_from_draft_to_its_end(newsroom: Newsroom) -> None:
    wp = newsroom.wp
    before = newsroom.settled()
    ident = newsroom.post("Life", status="draft", content="one")
    assert newsroom.settled() == before
    newsroom.edit(ident, status="publish")
    assert newsroom.link(ident) in newsroom.settled()
    newsroom.edit(ident, content="two")
    newsroom.settled()
    newsroom.edit(ident, slug="жизнь")
    assert newsroom.link(ident).endswith("/%D0%B6%D0%B8%D0%B7%D0%BD%D1%8C/")
    newsroom.settled()
    newsroom.edit(ident, slug="a-life")
    assert newsroom.link(ident) in newsroom.settled()
    newsroom.edit(ident, date="2020-02-03T04:05:06")
    assert f"{wp.url}/2020/02/a-life/" in newsroom.settled()

    for hidden, shown in (
        ({"status": "private"}, {"status": "publish"}),
        ({"password": "secret"}, {"password": ""}),
        ({"status": "draft"}, {"status": "publish"}),
        ({"status": "pending"}, {"status": "publish"}),
    ):
        newsroom.edit(ident, **hidden)
        assert newsroom.settled() == before, hidden
        newsroom.edit(ident, **shown)
        assert newsroom.link(ident) in newsroom.settled(), shown

    wp.rest("DELETE", f"posts/{ident}")
    assert newsroom.settled() == before
    bin_ = wp.page("edit.php?post_status=trash&post_type=post")
    untrash = re.search(rf"post\.php\?post={ident}&amp;action=untrash&amp;_wpnonce=(\w+)", bin_)
    assert untrash
    wp.web.get(f"/wp-admin/post.php?post={ident}&action=untrash&_wpnonce={untrash[1]}")
    assert newsroom.settled() == before  # WordPress restores it as a draft
    newsroom.edit(ident, status="publish")
    assert newsroom.link(ident) in newsroom.settled()
    wp.rest("DELETE", f"posts/{ident}?force=true")
    assert newsroom.settled() == before


@cms_wordpress
def test_a_scheduled_post_appears_when_wp_cron_publishes_it(newsroom: Newsroom) -> None:
    before = newsroom.settled()
    soon = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + 7200))
    ident = newsroom.post("Later", status="future", date_gmt=soon)
    assert newsroom.settled() == before
    # Two hours go by: for the post, and for the schedule.
    newsroom.wp.run(
        "global $wpdb; $past = gmdate( 'Y-m-d H:i:s', time() - 60 );"
        "$dates = array( 'post_date' => $past, 'post_date_gmt' => $past );"
        f"$wpdb->update( $wpdb->posts, $dates, array( 'ID' => {ident} ) );"
        f"$arguments = array( {ident} );"
        "wp_clear_scheduled_hook( 'publish_future_post', $arguments );"
        "return wp_schedule_single_event( time() - 60, 'publish_future_post', $arguments );"
    )

    def published() -> bool:
        newsroom.wp.cron()
        return bool(newsroom.wp.run(f"return 'publish' === get_post_status( {ident} );"))

    wait_until(published, "wp-cron publishes it")
    public = newsroom.wp.public()
    link = newsroom.link(ident)
    # Its date of modification is still in the future, two hours from now: not what was published.
    wait_until(lambda: link in newsroom.published(), "it is listed")
    assert set(newsroom.published()) == set(public)
    lastmod = newsroom.published()[link] or ""
    assert lastmod <= time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    newsroom.edit(ident, content="now")
    newsroom.settled()


@cms_wordpress
def test_pages_below_a_page_follow_it(newsroom: Newsroom) -> None:
    wp = newsroom.wp
    top = newsroom.post("Top", "pages")
    middle = newsroom.post("Middle", "pages", parent=top)
    leaf = newsroom.post("Leaf", "pages", parent=middle)
    other = newsroom.post("Other", "pages")
    assert f"{wp.url}/top/middle/leaf/" in newsroom.settled()

    newsroom.edit(top, "pages", slug="summit")
    assert f"{wp.url}/summit/middle/leaf/" in newsroom.settled()
    newsroom.edit(middle, "pages", parent=other)
    assert f"{wp.url}/other/middle/leaf/" in newsroom.settled()
    newsroom.edit(middle, "pages", status="draft")
    assert f"{wp.url}/other/middle/leaf/" in newsroom.settled()
    newsroom.edit(middle, "pages", slug="moved")  # a draft moves what is below it
    assert f"{wp.url}/other/moved/leaf/" in newsroom.settled()
    wp.rest("DELETE", f"pages/{other}")
    assert f"{wp.url}/other__trashed/moved/leaf/" in newsroom.settled()
    wp.run(f"return (bool) wp_untrash_post( {other} );")
    assert f"{wp.url}/other/moved/leaf/" in newsroom.settled()
    wp.rest("DELETE", f"pages/{other}?force=true")
    assert f"{wp.url}/moved/leaf/" in newsroom.settled()
    wp.rest("DELETE", f"pages/{middle}?force=true")
    assert f"{wp.url}/leaf/" in newsroom.settled()
    assert newsroom.link(leaf) == f"{wp.url}/leaf/"


@cms_wordpress
def test_two_pages_swap_their_addresses(newsroom: Newsroom) -> None:
    one, two = newsroom.post("One", content="1"), newsroom.post("Two", content="2")
    newsroom.settled()
    newsroom.wp.run(
        f"wp_update_post( array( 'ID' => {one}, 'post_name' => 'between' ) );"
        f"wp_update_post( array( 'ID' => {two}, 'post_name' => 'one' ) );"
        f"return wp_update_post( array( 'ID' => {one}, 'post_name' => 'two' ) );"
    )
    public = newsroom.settled()

    assert {newsroom.link(one), newsroom.link(two)} <= set(public)
    newsroom.wp.rest("DELETE", f"posts/{one}")
    reused = newsroom.post("Again", slug="two")
    assert newsroom.link(reused) in newsroom.settled()
    newsroom.wp.rest("DELETE", f"posts/{one}?force=true")  # its address is another's by now
    assert newsroom.link(reused) in newsroom.settled()


@cms_wordpress
def test_a_page_that_was_imported_without_its_id_leaves_its_address(newsroom: Newsroom) -> None:
    newsroom.settled()
    imported = []
    for slug in ("gone", "moved"):
        # Without the end of a request the plugin knows nothing of it.
        post = f"array( 'post_title' => '{slug}', 'post_status' => 'publish', 'post_author' => 1 )"
        ident = newsroom.wp.run(
            f"remove_all_actions( 'shutdown' ); return wp_insert_post( {post} );"
        )
        newsroom.system.send({"type": "upsert", "loc": newsroom.link(ident)})
        imported.append(ident)
    wait_until(lambda: newsroom.link(imported[1]) in newsroom.published(), "the import is listed")
    newsroom.wp.rest("DELETE", f"posts/{imported[0]}")
    newsroom.edit(imported[1], slug="elsewhere")
    assert newsroom.link(imported[1]) in newsroom.settled()


@cms_wordpress
def test_bulk_and_quick_edit(newsroom: Newsroom) -> None:
    wp = newsroom.wp
    idents = [newsroom.post(f"Bulk {n}") for n in range(3)]
    newsroom.settled()
    before = newsroom.deliveries()[0]["at"], len(newsroom.deliveries())

    def bulk(action: str, **more: str) -> None:
        listed = wp.page("edit.php?post_type=post")
        nonce = re.search(r'id="_wpnonce" name="_wpnonce" value="(\w+)"', listed)
        assert nonce
        chosen: list[tuple[str, str | int | float | bool | None]] = [
            ("post_type", "post"), ("_wpnonce", nonce[1]), ("action", action),
            *(("post[]", str(ident)) for ident in idents), *more.items(),
        ]  # fmt: skip
        reply = wp.web.get("/wp-admin/edit.php", params=chosen)
        assert reply.status_code == 302, reply.text

    unchanged = {"tags_input": "", "post_author": "-1", "post_category[]": "0"}
    bulk("edit", bulk_edit="Update", _status="draft", **unchanged)
    assert not {newsroom.link(ident) for ident in idents} & set(newsroom.settled())
    told = newsroom.deliveries()[0]
    assert all(f"post:{ident}" in told["what"] for ident in idents), before
    bulk("edit", bulk_edit="Update", _status="publish", **unchanged)
    assert {newsroom.link(ident) for ident in idents} <= set(newsroom.settled())
    bulk("trash")
    newsroom.settled()

    ident = newsroom.post("Quick")
    listed = wp.page("edit.php?post_type=post")
    nonce = re.search(r'name="_inline_edit" value="(\w+)"', listed)
    assert nonce
    year, month, day = newsroom.wp.run(f"return get_the_date( 'Y-m-d', {ident} );").split("-")
    wp.submit(
        "admin-ajax.php", action="inline-save", _inline_edit=nonce[1], post_ID=ident,
        post_type="post", post_title="Quick", post_name="quicker", _status="publish",
        aa=year, mm=month, jj=day, hh="00", mn="00", ss="00", post_view="list", screen="edit-post",
        post_author="1", post_password="",
    )  # fmt: skip
    assert newsroom.link(ident).endswith("/quicker/")
    assert newsroom.link(ident) in newsroom.settled()


@cms_wordpress
def test_terms_and_the_posts_whose_addresses_name_them(newsroom: Newsroom) -> None:
    wp = newsroom.wp
    parent = wp.rest("POST", "categories", name="World")["id"]
    child = wp.rest("POST", "categories", name="Asia", parent=parent)["id"]
    assert f"{wp.url}/category/world/asia/" not in newsroom.settled()  # nothing to show yet
    ident = newsroom.post("Report", categories=[child])
    assert f"{wp.url}/category/world/asia/" in newsroom.settled()
    wp.rest("POST", f"categories/{parent}", slug="globe")
    assert f"{wp.url}/category/globe/asia/" in newsroom.settled()
    wp.rest("POST", f"categories/{child}", name="Asia and the Pacific")
    newsroom.settled()

    newsroom.permalinks("/%category%/%postname%/")
    newsroom.settled(cron=True)
    assert newsroom.link(ident) == f"{wp.url}/globe/asia/report/"
    wp.rest("POST", f"categories/{parent}", slug="planet")
    assert f"{wp.url}/planet/asia/report/" in newsroom.settled()
    newsroom.edit(ident, categories=[parent])
    assert f"{wp.url}/planet/report/" in newsroom.settled()
    newsroom.edit(ident, categories=[child])
    newsroom.settled()
    wp.rest("DELETE", f"categories/{parent}?force=true")
    assert f"{wp.url}/asia/report/" in newsroom.settled()
    wp.rest("DELETE", f"categories/{child}?force=true")
    assert f"{wp.url}/uncategorized/report/" in newsroom.settled()
    newsroom.permalinks("/%year%/%monthnum%/%postname%/")
    newsroom.settled(cron=True)


@cms_wordpress
def test_authors(newsroom: Newsroom) -> None:
    wp = newsroom.wp
    user = wp.rest(
        "POST", "users", username="writer", email="writer@example.org", password="Kx3!kd83hdSk",
        roles=["author"],
    )["id"]  # fmt: skip
    assert f"{wp.url}/author/writer/" not in newsroom.settled()
    first = newsroom.post("By the writer", author=user)
    assert f"{wp.url}/author/writer/" in newsroom.settled()
    wp.rest("POST", f"users/{user}", slug="poet")
    assert f"{wp.url}/author/poet/" in newsroom.settled()
    newsroom.edit(first, author=1)
    assert f"{wp.url}/author/poet/" not in newsroom.settled()
    second = newsroom.post("By the poet", author=user)
    newsroom.settled()
    wp.rest("DELETE", f"users/{user}?force=true&reassign=1")
    public = newsroom.settled()
    assert f"{wp.url}/author/poet/" not in public
    assert newsroom.link(second) in public


@cms_wordpress
def test_post_types_of_the_site(newsroom: Newsroom) -> None:
    wp = newsroom.wp
    before = newsroom.settled()
    wp.run(
        "$entry = array( 'post_type' => 'ledger_entry', 'post_title' => 'x' );"
        "return wp_insert_post( $entry + array( 'post_status' => 'publish' ) );"
    )
    assert newsroom.settled() == before
    ident = newsroom.post("Novel", "book")
    public = newsroom.settled()
    assert {f"{wp.url}/library/novel/", f"{wp.url}/library/"} <= set(public)
    retype = "return wp_update_post( array( 'ID' => {}, 'post_type' => '{}' ) );"
    wp.run(retype.format(ident, "ledger_entry"))
    assert newsroom.settled() == before
    wp.run(retype.format(ident, "book"))
    assert newsroom.settled().keys() == public.keys()
    wp.rest("DELETE", f"book/{ident}?force=true")
    assert newsroom.settled() == before


@cms_wordpress
def test_noindex_and_canonical_take_a_page_out(newsroom: Newsroom) -> None:
    """The keys of Yoast SEO, which is not packaged: what they do, not the plugin itself."""
    ident = newsroom.post("Hidden")
    link = newsroom.link(ident)
    assert link in newsroom.settled()
    for key, value, off in (
        ("_yoast_wpseo_meta-robots-noindex", "1", "0"),
        ("_yoast_wpseo_canonical", "https://elsewhere.example/", ""),
    ):
        newsroom.edit(ident, meta={key: value})
        newsroom.settled(but=frozenset({link}))
        newsroom.edit(ident, meta={key: off})
        assert link in newsroom.settled()
    newsroom.edit(ident, meta={"_yoast_wpseo_canonical": link})
    assert link in newsroom.settled()
    newsroom.wp.run("return update_option( 'wpseo_titles', array( 'noindex-page' => true ) );")
    hidden = frozenset({f"{newsroom.wp.url}/sample-page/"})
    page = newsroom.wp.run("return get_page_by_path( 'sample-page' )->ID;")
    newsroom.edit(page, "pages", content="edited")
    newsroom.settled(but=hidden)
    newsroom.wp.run("return delete_option( 'wpseo_titles' );")
    newsroom.wp.run("do_action( 'sitemapd_daily' ); return 1;")
    newsroom.settled()


@cms_wordpress
@pytest.mark.parametrize(
    ("constant", "noindex", "canonical"),
    [
        ("RANK_MATH_VERSION", {"rank_math_robots": ["noindex"]}, "rank_math_canonical_url"),
        ("SEOPRESS_VERSION", {"_seopress_robots_index": "yes"}, "_seopress_robots_canonical"),
        ("AIOSEO_VERSION", {}, ""),
    ],
)
def test_other_seo_plugins_are_asked_where_they_keep_their_answers(
    newsroom: Newsroom, constant: str, noindex: dict[str, Any], canonical: str
) -> None:
    """None of them is packaged: their meta keys and their table, not the plugins themselves."""
    ident = newsroom.post("Asked")
    link = newsroom.link(ident)
    store = "global $wpdb; $table = $wpdb->prefix . 'aioseo_posts';"
    if canonical:
        for key, value in noindex.items():
            store += f"update_post_meta( {ident}, '{key}', json_decode( '{json.dumps(value)}' ) );"
        store += f"update_post_meta( {ident}, '{canonical}', '{link}' );"
    else:
        store += (
            '$wpdb->query( "CREATE TABLE $table (post_id BIGINT, robots_default TINYINT, '
            'robots_noindex TINYINT, canonical_url TEXT)" );'
            f"$wpdb->query( \"INSERT INTO $table VALUES ({ident}, 0, 1, '{link}')\" );"
        )
    ask = f"return ( new Sitemapd_Seo() )->of( get_post( {ident} ) );"

    without = newsroom.wp.run(f"{store} {ask}")
    said = newsroom.wp.run(f"define( '{constant}', '1' ); {ask}")
    newsroom.wp.run(
        'global $wpdb; $wpdb->query( "DROP TABLE IF EXISTS wp_aioseo_posts" ); return 1;'
    )

    assert without == [False, ""]
    assert said[0] is True
    assert wordpress.upper_escapes(said[1]) == link
    newsroom.settled()


@cms_wordpress
def test_images_are_listed_with_their_page(newsroom: Newsroom) -> None:
    ident = newsroom.post("Picture")
    image, attached = (
        newsroom.wp.run(
            f"$file = wp_upload_bits( '{name}.png', null, base64_decode( '{PNG}' ) );"
            "$image = array( 'post_mime_type' => 'image/png', 'post_status' => 'inherit' );"
            f"return wp_insert_attachment( $image, $file['file'], {parent} );"
        )
        for name, parent in (("featured", 0), ("attached", ident))
    )
    link = newsroom.link(ident)

    def shown() -> list[str]:
        entry = newsroom.entries().get(link)
        found = [] if entry is None else entry.findall(f"{IMAGE}image/{IMAGE}loc")
        return [(loc.text or "").rpartition("/")[2] for loc in found]

    wait_until(lambda: shown() == ["attached.png"], "the image that belongs to it")
    newsroom.edit(ident, featured_media=image)
    wait_until(lambda: shown() == ["featured.png", "attached.png"], "the featured image, first")
    newsroom.wp.rest("DELETE", f"media/{attached}?force=true")
    wait_until(lambda: shown() == ["featured.png"], "the deleted one is gone")
    newsroom.edit(ident, featured_media=0)
    wait_until(lambda: shown() == [], "no image")
    public = newsroom.settled()

    # Off in installations of WordPress 6.4 and newer; its own sitemap never lists them.
    newsroom.wp.run("return update_option( 'wp_attachment_pages_enabled', '1' );")
    newsroom.configure(attachments="1")
    page = newsroom.link(image)

    def shows_page() -> bool:
        newsroom.wp.cron()
        return newsroom.published().keys() == {*public, page}

    wait_until(shows_page, "the attachment's page")
    newsroom.configure()
    newsroom.settled(cron=True)


def stored_image(newsroom: Newsroom, name: str, parent: int = 0) -> int:
    """Store an image in the media library; its id."""
    return int(
        newsroom.wp.run(
            f"$file = wp_upload_bits( '{name}.png', null, base64_decode( '{PNG}' ) );"
            "$image = array( 'post_mime_type' => 'image/png', 'post_status' => 'inherit' );"
            f"$image += array( 'post_title' => '{name}' );"
            f"return wp_insert_attachment( $image, $file['file'], {parent} );"
        )
    )


@cms_wordpress
def test_a_featured_image_that_is_deleted_leaves_the_entries_of_its_posts(
    newsroom: Newsroom,
) -> None:
    featured = stored_image(newsroom, "shared")
    idents = [newsroom.post(f"Shares {n}", featured_media=featured) for n in range(2)]
    other = newsroom.post("Not concerned")
    newsroom.settled()

    def images() -> int:
        entries = newsroom.entries()
        found = [entries[newsroom.link(ident)] for ident in idents]
        return sum(len(entry.findall(f"{IMAGE}image")) for entry in found)

    wait_until(lambda: images() == 2, "both posts show the featured image")
    newsroom.wp.run(
        f"$GLOBALS['post'] = get_post( {other} );"
        f"return (bool) wp_delete_attachment( {featured}, true );"
    )
    wait_until(lambda: images() == 0, "no post shows the deleted image")
    told = newsroom.deliveries()[0]["what"].split(", ")
    assert set(told) == {f"post:{ident}" for ident in idents}


@cms_wordpress
def test_the_page_of_an_attachment_follows_the_attachment_and_its_parent(
    newsroom: Newsroom,
) -> None:
    newsroom.wp.run("return update_option( 'wp_attachment_pages_enabled', '1' );")
    newsroom.configure(attachments="1")
    parent = newsroom.post("Parent")
    top = newsroom.post("Album", "pages")
    below = newsroom.post("Sheet", "pages", parent=top)
    attached, alone, deep = (
        stored_image(newsroom, name, of)
        for name, of in (("of-a-post", parent), ("of-none", 0), ("of-a-sheet", below))
    )

    def readable(ident: int) -> bool:
        return newsroom.wp.visit(newsroom.link(ident).removeprefix(newsroom.wp.url)).is_success

    def listed(ident: int) -> bool:
        newsroom.wp.cron()
        return newsroom.link(ident) in newsroom.published()

    for ident in (attached, alone, deep):
        wait_until(lambda ident=ident: listed(ident), "the page of the attachment is listed")  # type: ignore[misc]

    def follows(ident: int, step: str, *, public: bool = True) -> None:
        # Not by wp-cron: by the request that made the change.
        assert readable(ident) is public, step
        wait_until(
            lambda: (newsroom.link(ident) in newsroom.published()) is public, f"after: {step}"
        )
        assert sum("of-a-post" in loc for loc in newsroom.published()) <= 1, step

    for hidden, shown in (
        ({"status": "private"}, {"status": "publish"}),
        ({"status": "draft"}, {"status": "publish"}),
        ({"status": "pending"}, {"status": "publish"}),
    ):
        newsroom.edit(parent, **hidden)
        follows(attached, str(hidden), public=False)
        newsroom.edit(parent, **shown)
        follows(attached, str(shown))
    newsroom.edit(parent, slug="another-parent")
    assert "/another-parent/" in newsroom.link(attached)
    follows(attached, "the slug of the parent")
    newsroom.edit(top, "pages", slug="binder")
    assert "/binder/sheet/" in newsroom.link(deep)
    follows(deep, "the slug of the page above the parent")

    newsroom.wp.rest("DELETE", f"posts/{parent}")
    follows(attached, "the trash", public=readable(attached))
    newsroom.wp.rest("DELETE", f"posts/{parent}?force=true")
    follows(attached, "the end of the parent")

    switch = "return update_option( 'wp_attachment_pages_enabled', '{}' );"
    newsroom.wp.run(switch.format(0))
    wait_until(lambda: not listed(alone), "WordPress has no pages of attachments")
    newsroom.wp.run(switch.format(1))
    wait_until(lambda: all(map(listed, (attached, alone, deep))), "WordPress has them again")

    def nonce(action: str) -> str:
        return str(newsroom.wp.run(f"return wp_create_nonce( '{action}' );"))

    # As the three views of the media library do it: by REST, in the grid, in the list.
    links = {newsroom.link(ident) for ident in (attached, alone, deep)}
    newsroom.wp.rest("DELETE", f"media/{attached}?force=true")
    grid = {"action": "delete-post", "id": str(alone), "_wpnonce": nonce(f"delete-post_{alone}")}
    assert newsroom.wp.submit("admin-ajax.php", **grid).text == "1"
    row = f"post.php?action=delete&post={deep}&_wpnonce={nonce(f'delete-post_{deep}')}"
    assert newsroom.wp.web.get(f"/wp-admin/{row}").status_code == 302
    wait_until(lambda: not links & newsroom.published().keys(), "the pages are gone")
    for ident in (below, top):
        newsroom.wp.rest("DELETE", f"pages/{ident}?force=true")
    newsroom.configure()
    newsroom.settled(cron=True)


@cms_wordpress
def test_one_save_is_one_event_and_a_save_of_nothing_is_none(newsroom: Newsroom) -> None:
    newsroom.settled()
    ident = newsroom.post("Once", content="one")
    public = newsroom.settled()
    told = newsroom.deliveries()

    newsroom.edit(ident, content="one")  # WordPress gives it another date all the same
    newsroom.wp.run(f"stick_post( {ident} ); return 1;")
    newsroom.wp.run(f"return update_post_meta( {ident}, 'views', 7 );")
    assert newsroom.deliveries() == told
    assert newsroom.published() == public

    time.sleep(1.1)  # the list has no finer time than seconds
    newsroom.edit(ident, content="two")
    newest = newsroom.deliveries()[0]
    assert (newest["status"], newest["events"], newest["what"]) == (202, 1, f"post:{ident}")
    newsroom.settled()


@cms_wordpress
def test_editors_who_save_at_the_same_time_end_in_what_wordpress_has(newsroom: Newsroom) -> None:
    idents = [newsroom.post(f"Busy {number}") for number in range(3)]
    hit = newsroom.post("Everybody's")
    newsroom.settled()

    def save(number: int) -> None:
        for turn in range(3):
            newsroom.edit(idents[number], slug=f"busy-{number}-{turn}")
            newsroom.edit(hit, slug=f"by-{number}-{turn}", content=f"{number} {turn}")

    with ThreadPoolExecutor(3) as editors:
        list(editors.map(save, range(3)))
    assert newsroom.link(hit) in newsroom.settled(cron=True)


@cms_wordpress
def test_the_front_page_and_who_may_look(newsroom: Newsroom) -> None:
    wp = newsroom.wp
    front, blog = newsroom.post("Front", "pages"), newsroom.post("Blog", "pages")
    newsroom.settled()
    wp.run(
        f"update_option( 'page_on_front', {front} ); update_option( 'page_for_posts', {blog} );"
        "return update_option( 'show_on_front', 'page' );"
    )
    public = newsroom.settled()
    assert f"{wp.url}/front/" not in public
    assert {f"{wp.url}/", f"{wp.url}/blog/"} <= set(public)
    wp.run("return update_option( 'show_on_front', 'posts' );")
    assert f"{wp.url}/front/" in newsroom.settled()

    wp.run("return update_option( 'blog_public', '0' );")
    assert newsroom.settled(cron=True) == {}
    wp.run("return update_option( 'blog_public', '1' );")
    assert newsroom.settled(cron=True)


@cms_wordpress
def test_what_changes_behind_every_hook_is_found_by_the_daily_look(newsroom: Newsroom) -> None:
    gone, moved = newsroom.post("Gone by SQL"), newsroom.post("Moved by SQL")
    newsroom.settled()
    newsroom.wp.run(
        f"global $wpdb; $wpdb->delete( $wpdb->posts, array( 'ID' => {gone} ) );"
        "$slug = array( 'post_name' => 'by-sql' );"
        f"return $wpdb->update( $wpdb->posts, $slug, array( 'ID' => {moved} ) );"
    )
    newsroom.wp.run("do_action( 'sitemapd_daily' ); return 1;")
    assert newsroom.link(moved).endswith("/by-sql/")
    assert newsroom.link(moved) in newsroom.settled()


@cms_wordpress
def test_what_changes_while_sitemapd_is_away_is_caught_up(newsroom: Newsroom) -> None:
    keep, gone = newsroom.post("Kept", content="one"), newsroom.post("Lost")
    newsroom.settled()
    port = urlsplit(newsroom.system.address).port or 0
    with newsroom.system.away():
        with answering(port, b"HTTP/1.1 429 No\r\nRetry-After: 1800\r\nContent-Length: 0\r\n\r\n"):
            newsroom.edit(keep, content="too many")
        retry = newsroom.wp.run("return get_option( 'sitemapd_retry' )['at'] - time();")
        assert 1700 < retry <= 1800
        newsroom.wp.run("return delete_option( 'sitemapd_retry' );")

        with answering(port, b"") as calls:
            for number in range(5):
                newsroom.edit(keep, content=f"edit {number}")
            newsroom.wp.rest("DELETE", f"posts/{gone}")
            new = newsroom.post("While it was away")
            made = len(calls)
        # Seven saves; whoever does not answer is asked again after a pause only.
        assert 1 <= made <= 3
        assert "waiting" in newsroom.wp.page(SETTINGS)

    expected = newsroom.wp.public()

    def caught_up() -> bool:
        newsroom.wp.cron()
        return newsroom.published() == expected

    wait_until(caught_up, "wp-cron sends what waits")
    assert newsroom.link(new) in expected


@cms_wordpress
def test_what_is_refused_is_dropped_by_name_and_what_is_wrong_in_the_settings_waits(
    newsroom: Newsroom,
) -> None:
    newsroom.settled()
    newsroom.configure(**{"sections][page": "nowhere", "sections][post": "posts"})
    newsroom.send_everything()
    refused = [told for told in newsroom.deliveries() if told["status"] == 422]
    assert refused
    assert "nowhere" not in newsroom.wp.page("index.php")
    assert "section: not configured" in refused[0]["said"]
    status, _, posts = newsroom.system.get("/posts-1.xml")
    assert status == 200
    assert posts.count(b"<loc>") == newsroom.wp.run("return (int) wp_count_posts()->publish;")
    newsroom.configure()
    newsroom.send_everything()
    newsroom.settled()

    other = "whsec_" + "QUFB" * 8
    assert other not in newsroom.configure(secret=other)
    ident = newsroom.post("Behind a wrong secret")
    assert newsroom.deliveries()[0]["status"] == 401
    assert newsroom.link(ident) not in newsroom.published()
    newsroom.configure()
    assert newsroom.link(ident) in newsroom.settled(cron=True)


@cms_wordpress
def test_the_settings_page_keeps_its_secret_and_its_door(newsroom: Newsroom) -> None:
    wp = newsroom.wp
    shown = wp.page(SETTINGS)
    assert SECRET not in shown
    assert SECRET.removeprefix("whsec_") not in shown
    newsroom.configure(secret="")  # an empty field keeps the stored one
    said = newsroom.ask("sitemapd_test")
    assert said["success"], said
    assert "202" in said["data"]["said"]

    refused = "must be whsec_"
    assert refused in newsroom.configure(secret="whsec_short")
    assert newsroom.ask("sitemapd_test")["success"]
    script = "<script>alert(1)</script>"
    assert script not in newsroom.configure(sitemap=f"https://a.example/{script}", site=script)
    newsroom.configure()

    forged = wp.web.post("/wp-admin/admin-ajax.php", data={"action": "sitemapd_test"})
    assert (forged.status_code, forged.text) == (403, "-1")
    barred = wp.web.post(
        "/run.php",
        content="$reader = array( 'user_login' => 'reader', 'user_pass' => 'x' );"
        "wp_set_current_user( wp_insert_user( $reader + array( 'role' => 'subscriber' ) ) );"
        "$_REQUEST['nonce'] = wp_create_nonce( 'sitemapd_actions' );"
        "require_once WP_PLUGIN_DIR . '/sitemapd/includes/class-sitemapd-admin.php';"
        "( new Sitemapd_Admin( sitemapd() ) )->ajax_send_all();",
    )
    assert (barred.status_code, barred.json()["success"]) == (403, False)
    newsroom.settled()


@cms_wordpress
@pytest.mark.parametrize("path", ["events", "hooks/wordpress", "hooks/wordpress/"])
def test_an_address_with_the_path_of_the_site_is_taken_apart(newsroom: Newsroom, path: str) -> None:
    pasted = f"{newsroom.system.address}/v1/sites/demo/{path}"
    shown = newsroom.configure(address=pasted, site="")
    stored = newsroom.wp.run("return get_option( 'sitemapd' );")

    assert (stored["address"], stored["site"]) == (newsroom.system.address, "demo")
    assert pasted not in shown
    assert newsroom.ask("sitemapd_test")["success"]
    newsroom.configure()


@cms_wordpress
def test_a_wrong_address_and_a_wrong_site_are_named_as_such(newsroom: Newsroom) -> None:
    newsroom.configure(address=f"{newsroom.system.address}/v1")
    said = newsroom.ask("sitemapd_test")
    assert not said["success"]
    assert "404" in said["data"]["said"]
    assert "must be that of sitemapd itself, without /v1/" in said["data"]["said"]

    newsroom.configure(site="another")
    said = newsroom.ask("sitemapd_test")
    assert not said["success"]
    cause = "The secret or the site is not the one in sitemapd.toml"
    assert cause in said["data"]["said"]
    told = newsroom.deliveries()[0]
    assert told["status"] == 401
    assert cause in told["said"]
    assert cause in newsroom.wp.page(SETTINGS)
    newsroom.configure()
    newsroom.settled(cron=True)


@cms_wordpress
def test_wordpress_own_sitemap_is_turned_off_or_leads_to_ours(newsroom: Newsroom) -> None:
    visit = newsroom.wp.visit
    assert visit("/wp-sitemap.xml").status_code == 200
    newsroom.configure(core="disable")
    assert visit("/wp-sitemap.xml").status_code == 404
    assert f"Sitemap: {newsroom.wp.url}/sitemap.xml" in visit("/robots.txt").text
    newsroom.configure(core="redirect")
    for path in ("/wp-sitemap.xml", "/wp-sitemap-posts-post-1.xml"):
        reply = visit(path)
        assert reply.status_code == 301
        assert reply.headers["location"] == f"{newsroom.wp.url}/sitemap.xml"
    newsroom.configure()
    newsroom.settled()


@cms_wordpress
def test_an_uninstalled_plugin_leaves_nothing(newsroom: Newsroom) -> None:
    left = newsroom.wp.run(
        "deactivate_plugins( 'sitemapd/sitemapd.php' );"
        "uninstall_plugin( 'sitemapd/sitemapd.php' ); wp_cache_flush();"
        "global $wpdb; $like = \"LIKE '%sitemapd%'\"; return array("
        '$wpdb->get_col( "SELECT option_name FROM $wpdb->options WHERE option_name $like" ),'
        '$wpdb->get_col( "SHOW TABLES $like" ),'
        "false !== strpos( json_encode( _get_cron_array() ), 'sitemapd' ) );"
    )
    shutil.rmtree(newsroom.wp.root / "wp-content" / "plugins" / "sitemapd")

    assert left == [[], [], False]
