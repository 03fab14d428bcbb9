<?php
/**
 * Commands for WP-CLI.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * Tells sitemapd what is public.
 */
class Sitemapd_Cli {

	/**
	 * The plugin.
	 *
	 * @var Sitemapd_Plugin
	 */
	private $plugin;

	/**
	 * Speak for the plugin.
	 *
	 * @param Sitemapd_Plugin $plugin The plugin.
	 */
	public function __construct( Sitemapd_Plugin $plugin ) {
		$this->plugin = $plugin;
	}

	/**
	 * Sends every public page.
	 *
	 * @subcommand send-all
	 */
	public function send_all() {
		$this->need_settings();
		$progress = ( new Sitemapd_Actions( $this->plugin ) )->send_all( true );
		while ( $progress['clear'] && $progress['more'] ) {
			WP_CLI::log( sprintf( '%d of about %d, %d waiting', $progress['done'], $progress['total'], $progress['waiting'] ) );
			$progress = ( new Sitemapd_Actions( $this->plugin ) )->send_all( false );
		}
		if ( ! $progress['clear'] ) {
			$last = $this->plugin->deliveries->all();
			WP_CLI::error( sprintf( '%d wait: %s %s', $progress['waiting'], $last[0]['status'] ?? '', $last[0]['said'] ?? '' ) );
		}
		WP_CLI::success( sprintf( '%d sent.', $progress['done'] ) );
	}

	/**
	 * Shows how many pages were told and how many wait, and the last deliveries.
	 */
	public function status() {
		$this->need_settings();
		WP_CLI::log( sprintf( '%d pages told, %d waiting', $this->plugin->ledger->count_listed(), $this->plugin->ledger->count_waiting() ) );
		foreach ( $this->plugin->deliveries->all() as $delivery ) {
			WP_CLI::log( sprintf( '%s  %d  %d  %s  %s', gmdate( 'Y-m-d\TH:i:s\Z', $delivery['at'] ), $delivery['status'], $delivery['events'], $delivery['what'], $delivery['said'] ) );
		}
	}

	/**
	 * Asks whether sitemapd is ready and knows the secret.
	 */
	public function test() {
		$this->need_settings();
		list( $good, $said ) = ( new Sitemapd_Actions( $this->plugin ) )->test();
		if ( ! $good ) {
			WP_CLI::error( $said );
		}
		WP_CLI::success( $said );
	}

	/**
	 * End with an error unless there are settings.
	 */
	private function need_settings() {
		if ( ! $this->plugin->options->is_complete() ) {
			WP_CLI::error( 'Set the address, the site and the secret: Settings > sitemapd.' );
		}
	}
}
