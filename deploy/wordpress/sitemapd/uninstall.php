<?php
/**
 * Removes everything the plugin has stored, on every site of a network.
 *
 * @package Sitemapd
 */

defined( 'WP_UNINSTALL_PLUGIN' ) || exit;

require_once __DIR__ . '/includes/class-sitemapd-setup.php';

/**
 * Remove the options and the schedules of one site.
 */
function sitemapd_uninstall_site() {
	foreach ( array( 'sitemapd', 'sitemapd_clock', 'sitemapd_deliveries', 'sitemapd_lock', 'sitemapd_retry', 'sitemapd_schema', 'sitemapd_walk' ) as $option ) {
		delete_option( $option );
	}
	foreach ( Sitemapd_Setup::SCHEDULED as $hook ) {
		wp_clear_scheduled_hook( $hook );
	}
}

/**
 * Drop the tables of all sites, those of sites that are gone too.
 */
function sitemapd_uninstall_tables() {
	global $wpdb;
	// phpcs:disable WordPress.DB.DirectDatabaseQuery, WordPress.DB.PreparedSQL -- The plugin's own tables.
	$tables = $wpdb->get_col( $wpdb->prepare( 'SHOW TABLES LIKE %s', $wpdb->esc_like( $wpdb->base_prefix ) . '%sitemapd\_pages' ) );
	foreach ( preg_grep( '/^' . preg_quote( $wpdb->base_prefix, '/' ) . '(\d+_)?sitemapd_pages$/', $tables ) as $table ) {
		$wpdb->query( "DROP TABLE IF EXISTS `$table`" );
	}
	// phpcs:enable
}

/**
 * Remove what the network holds for sites that are closed or gone.
 */
function sitemapd_uninstall_network() {
	global $wpdb;
	// phpcs:ignore WordPress.DB.DirectDatabaseQuery -- No function lists them.
	$options = $wpdb->get_results( $wpdb->prepare( "SELECT site_id, meta_key FROM {$wpdb->sitemeta} WHERE meta_key LIKE %s OR meta_key LIKE %s", 'sitemapd\_body\_%', 'sitemapd\_left\_%' ) );
	foreach ( $options as $option ) {
		delete_network_option( (int) $option->site_id, $option->meta_key );
	}
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
	sitemapd_uninstall_network();
} else {
	sitemapd_uninstall_site();
}
sitemapd_uninstall_tables();
