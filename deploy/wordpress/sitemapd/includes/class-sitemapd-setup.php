<?php
/**
 * Activation and deactivation.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * Prepares a site when the plugin is activated, and ends its schedules when it is deactivated.
 */
class Sitemapd_Setup {

	const SCHEDULED = array( 'sitemapd_flush', 'sitemapd_hourly', 'sitemapd_daily' );

	/**
	 * Activation: what changed while the plugin was off is found by looking at everything.
	 */
	public static function activate() {
		$plugin = sitemapd();
		$plugin->ledger->install();
		if ( $plugin->options->is_complete() ) {
			$plugin->walk->start( false );
			$plugin->sender->schedule( time() );
		}
	}

	/**
	 * Deactivation: nothing is sent any more; what waits stays.
	 *
	 * @param bool $network Whether on the whole network.
	 */
	public static function deactivate( $network = false ) {
		$sites = $network ? get_sites(
			array(
				'fields' => 'ids',
				'number' => 0,
			)
		) : array( get_current_blog_id() );
		foreach ( $sites as $site ) {
			if ( is_multisite() ) {
				switch_to_blog( $site );
			}
			foreach ( self::SCHEDULED as $hook ) {
				wp_clear_scheduled_hook( $hook );
			}
			if ( is_multisite() ) {
				restore_current_blog();
			}
		}
	}
}
