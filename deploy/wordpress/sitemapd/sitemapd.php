<?php
/**
 * Plugin Name:       sitemapd
 * Description:       Tells a sitemapd service what changed, so that the sitemap is right a blink after you publish, edit, move or delete.
 * Version:           0.1.0
 * Requires at least: 6.1
 * Requires PHP:      8.0
 * Author:            sitemapd contributors
 * License:           GPL-2.0-or-later
 * License URI:       https://www.gnu.org/licenses/gpl-2.0.html
 * Text Domain:       sitemapd
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

define( 'SITEMAPD_VERSION', '0.1.0' );
define( 'SITEMAPD_FILE', __FILE__ );

foreach ( array( 'options', 'deliveries', 'ledger', 'client', 'seo', 'languages', 'pages', 'batch', 'sender', 'walk', 'notes', 'watch-posts', 'watch-archives', 'core-sitemap', 'actions', 'outbox', 'network', 'plugin', 'setup' ) as $sitemapd_part ) {
	require_once __DIR__ . '/includes/class-sitemapd-' . $sitemapd_part . '.php';
}
unset( $sitemapd_part );

/**
 * The one instance that holds the parts together.
 *
 * @return Sitemapd_Plugin
 */
function sitemapd() {
	static $plugin = null;
	if ( null === $plugin ) {
		$plugin = new Sitemapd_Plugin();
	}
	return $plugin;
}

register_activation_hook( __FILE__, array( 'Sitemapd_Setup', 'activate' ) );
register_deactivation_hook( __FILE__, array( 'Sitemapd_Setup', 'deactivate' ) );
sitemapd()->register();
