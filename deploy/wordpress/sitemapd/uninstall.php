<?php
/**
 * Removes everything the plugin has stored, on every site of a network.
 *
 * @package Sitemapd
 */

defined( 'WP_UNINSTALL_PLUGIN' ) || exit;

/**
 * Remove what one site holds.
 */
function sitemapd_uninstall_site() {
	global $wpdb;
	foreach ( array( 'sitemapd', 'sitemapd_clock', 'sitemapd_deliveries', 'sitemapd_lock', 'sitemapd_retry', 'sitemapd_schema', 'sitemapd_walk' ) as $option ) {
		delete_option( $option );
	}
	foreach ( array( 'sitemapd_flush', 'sitemapd_hourly', 'sitemapd_daily' ) as $hook ) {
		wp_clear_scheduled_hook( $hook );
	}
	// phpcs:ignore WordPress.DB.DirectDatabaseQuery -- The plugin's own table.
	$wpdb->query( "DROP TABLE IF EXISTS {$wpdb->prefix}sitemapd_pages" );
}

if ( is_multisite() ) {
	$sitemapd_sites = get_sites(
		array(
			'fields' => 'ids',
			'number' => 0,
		)
	);
	foreach ( $sitemapd_sites as $sitemapd_site ) {
		switch_to_blog( $sitemapd_site );
		sitemapd_uninstall_site();
		restore_current_blog();
	}
} else {
	sitemapd_uninstall_site();
}
