"""A network of WordPress sites: each site's pages are listed while the site is open."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from tests.system import wordpress
from tests.system.network import Network
from tests.system.newsroom import SECRET, answering

NAMES = (
    "archived", "spam", "deleted", "inside", "away", "silent", "gone", "refused", "kept",
    "constant", "moved",
)  # fmt: skip
pytestmark = pytest.mark.cms_wordpress


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    wordpress.needed()
    home = tmp_path_factory.mktemp("network")
    network = Network(home, NAMES)
    try:
        network.start(wordpress.packed(home / "sitemapd.zip"))
        yield network
    finally:
        network.wp.stop()
        network.system.end()
    assert not network.wp.faults()


@pytest.mark.parametrize("status", ["archived", "spam", "deleted"])
def test_the_pages_of_a_closed_site_leave_and_come_back_with_it(
    network: Network, status: str
) -> None:
    ident = network.open(status)

    network.status(ident, status, 1)
    assert network.wp.visit(f"/{status}/").status_code == 410
    network.lists(status, set())
    assert network.kept() == []
    network.status(ident, status, 0)
    network.settled(status)


def test_a_site_that_is_closed_from_its_own_administration_leaves(network: Network) -> None:
    network.open("inside")

    network.wp.run("wpmu_delete_blog( get_current_blog_id() ); return 1;", "/inside")
    assert network.wp.visit("/inside/").status_code == 410
    network.lists("inside", set())
    assert network.kept() == []


def test_a_site_that_was_closed_while_sitemapd_was_away_is_emptied_by_the_main_site(
    network: Network,
) -> None:
    ident = network.open("away")
    before = network.published("away")
    with network.system.away():
        network.status(ident, "archived", 1)
        assert network.published("away") == before
    network.lose_schedule()

    network.empties("away")


def test_a_site_that_is_opened_again_before_sitemapd_is_back_stays_listed(
    network: Network,
) -> None:
    ident = network.open("silent")
    before = network.published("silent")
    with network.system.away():
        with answering(urlsplit(network.system.address).port or 0, b"") as calls:
            network.status(ident, "archived", 1)
            assert network.kept() == [str(ident)]
            network.status(ident, "archived", 0)
            made = len(calls)
        assert made == 1  # the request that closed the site does not try again and again
        assert network.kept() == []

    for _ in range(3):
        network.main_cron()
        assert network.published("silent") == before
    network.settled("silent")


def test_the_pages_of_a_deleted_site_leave_with_its_table(network: Network) -> None:
    ident = network.open("gone")
    assert f"wp_{ident}_sitemapd_pages" in network.tables()

    network.wp.run(f"wpmu_delete_blog( {ident}, true ); return 1;")
    assert not network.wp.run(f"return get_site( {ident} );")
    assert f"wp_{ident}_sitemapd_pages" not in network.tables()
    network.lists("gone", set())
    assert network.kept() == []


def test_what_is_refused_of_a_deleted_site_keeps_nothing_else_listed(network: Network) -> None:
    ident = network.open("refused")
    network.wp.run(
        f"global $wpdb; $insert = 'INSERT INTO wp_{ident}_sitemapd_pages (object, loc, state)';"
        "foreach ( range( 1, 1500 ) as $n ) {"
        " $home = $n % 700 ? 'http://elsewhere.example' : home_url();"
        " $rows[] = \"('a:$n', '$home/$n', 'x')\"; }"
        "return $wpdb->query( $insert . ' VALUES ' . implode( ',', $rows ) );"
    )
    network.wp.run(f"wpmu_delete_blog( {ident}, true ); return 1;")

    network.empties("refused")
    told = network.wp.run("return get_option( 'sitemapd_deliveries' );")
    assert {422, 202} <= {delivery["status"] for delivery in told}


@contextmanager
def defined(network: Network, secret: str) -> Iterator[None]:
    """Have wp-config.php define `secret`, if there is one, within the block."""
    config = network.wp.root / "wp-config.php"
    text = config.read_text()
    if secret:
        config.write_text(text.replace("<?php", f"<?php define( 'SITEMAPD_SECRET', '{secret}' );"))
    try:
        yield
    finally:
        config.write_text(text)


@pytest.mark.parametrize("name", ["kept", "constant"])
def test_what_a_deleted_site_could_not_tell_is_kept_and_sent_by_the_main_site(
    network: Network, name: str
) -> None:
    ident = network.open(name)
    before = network.published(name)
    with defined(network, SECRET if name == "constant" else ""):
        with network.system.away():
            network.wp.run(f"wpmu_delete_blog( {ident}, true ); return 1;")
            kept = network.kept()
            assert len(kept) == 1
            assert (SECRET in kept[0]) is (name == "kept")
            assert f"wp_{ident}_sitemapd_pages" not in network.tables()
            assert network.published(name) == before
        network.lose_schedule()

        network.empties(name)


def test_the_pages_of_a_site_with_another_address_move(network: Network) -> None:
    ident = network.open("moved")
    before = network.published("moved") or set()
    network.wp.run(
        f"switch_to_blog( {ident} ); delete_option( 'rewrite_rules' );"
        f"update_blog_details( {ident}, array( 'path' => '/elsewhere/' ) );"
        f"update_option( 'home', '{network.wp.url}/elsewhere' );"
        f"update_option( 'siteurl', '{network.wp.url}/elsewhere' );"
        "restore_current_blog(); return 1;"
    )

    network.lists("moved", {page.replace("/moved/", "/elsewhere/") for page in before})
    network.settled("moved", "/elsewhere")


def test_an_uninstalled_plugin_leaves_nothing_of_any_site_behind(network: Network) -> None:
    network.wp.run(
        "global $wpdb; $wpdb->query( 'CREATE TABLE wp_999_sitemapd_pages (a INT)' );"
        "return add_network_option( null, 'sitemapd_body_x', array( 'lines' => array() ) );"
    )
    left = network.wp.run(
        "deactivate_plugins( 'sitemapd/sitemapd.php' );"
        "uninstall_plugin( 'sitemapd/sitemapd.php' ); wp_cache_flush(); global $wpdb; $left = 0;"
        "foreach ( get_sites( array( 'fields' => 'ids' ) ) as $site ) { switch_to_blog( $site );"
        '$left += $wpdb->get_var( "SELECT COUNT(*) FROM $wpdb->options WHERE option_name'
        " LIKE 'sitemapd%'\" ); restore_current_blog(); } return $left;"
    )
    shutil.rmtree(network.wp.root / "wp-content" / "plugins" / "sitemapd")

    assert left == 0
    assert network.tables() == set()
    assert network.kept() == []
