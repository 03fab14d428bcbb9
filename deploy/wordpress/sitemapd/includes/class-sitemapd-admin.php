<?php
/**
 * Settings > sitemapd.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * The settings page and what its buttons do.
 */
class Sitemapd_Admin {

	const PAGE       = 'sitemapd';
	const CAPABILITY = 'manage_options';
	const NONCE      = 'sitemapd_actions';

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
	 * Listen.
	 */
	public function register() {
		add_action( 'admin_menu', array( $this, 'menu' ) );
		add_action( 'admin_init', array( $this, 'settings' ) );
		add_action( 'admin_enqueue_scripts', array( $this, 'script' ) );
		add_action( 'wp_ajax_sitemapd_test', array( $this, 'ajax_test' ) );
		add_action( 'wp_ajax_sitemapd_send_all', array( $this, 'ajax_send_all' ) );
		add_filter( 'plugin_action_links_' . plugin_basename( SITEMAPD_FILE ), array( $this, 'links' ) );
	}

	/**
	 * The page in the menu.
	 */
	public function menu() {
		add_options_page( 'sitemapd', 'sitemapd', self::CAPABILITY, self::PAGE, array( $this, 'page' ) );
	}

	/**
	 * The option that the form stores.
	 */
	public function settings() {
		register_setting(
			self::PAGE,
			Sitemapd_Options::NAME,
			array(
				'type'              => 'array',
				'sanitize_callback' => array( $this->plugin->options, 'sanitize' ),
			)
		);
	}

	/**
	 * The script of the page.
	 *
	 * @param string $hook Which page is shown.
	 */
	public function script( $hook ) {
		if ( 'settings_page_' . self::PAGE !== $hook ) {
			return;
		}
		wp_enqueue_script( 'sitemapd-admin', plugins_url( 'assets/admin.js', SITEMAPD_FILE ), array(), SITEMAPD_VERSION, true );
		$data = array(
			'url'     => admin_url( 'admin-ajax.php' ),
			'nonce'   => wp_create_nonce( self::NONCE ),
			'failed'  => __( 'No answer. Reload the page and try again.', 'sitemapd' ),
			'waiting' => __( 'Waiting for sitemapd.', 'sitemapd' ),
		);
		wp_add_inline_script( 'sitemapd-admin', 'var sitemapdAdmin = ' . wp_json_encode( $data ) . ';', 'before' );
	}

	/**
	 * A link to the settings among the plugins.
	 *
	 * @param string[] $links So far.
	 * @return string[]
	 */
	public function links( $links ) {
		$url = admin_url( 'options-general.php?page=' . self::PAGE );
		array_unshift( $links, '<a href="' . esc_url( $url ) . '">' . esc_html__( 'Settings', 'sitemapd' ) . '</a>' );
		return $links;
	}

	/**
	 * The button "Test": is the service ready, and does it know the secret?
	 */
	public function ajax_test() {
		$this->check();
		if ( ! $this->plugin->options->is_complete() ) {
			wp_send_json_error( array( 'said' => __( 'Save the address, the site and the secret first.', 'sitemapd' ) ) );
		}
		list( $good, $said ) = ( new Sitemapd_Actions( $this->plugin ) )->test();
		if ( ! $good ) {
			wp_send_json_error( array( 'said' => $said ) );
		}
		wp_send_json_success( array( 'said' => $said ) );
	}

	/**
	 * The button "Send everything": one step of it.
	 */
	public function ajax_send_all() {
		$this->check();
		if ( ! $this->plugin->options->is_complete() ) {
			wp_send_json_error( array( 'said' => __( 'Save the address, the site and the secret first.', 'sitemapd' ) ) );
		}
		// phpcs:ignore WordPress.Security.NonceVerification -- check() has verified it.
		$progress = ( new Sitemapd_Actions( $this->plugin ) )->send_all( ! empty( $_POST['start'] ) );
		$progress['said'] = sprintf(
			/* translators: 1: number of pages looked at, 2: about how many there are, 3: number of pages not yet sent. */
			__( '%1$d of about %2$d, %3$d waiting.', 'sitemapd' ),
			$progress['done'],
			max( $progress['total'], $progress['done'] ),
			$progress['waiting']
		);
		if ( ! $progress['clear'] ) {
			$last = $this->plugin->deliveries->all();
			wp_send_json_error( array( 'said' => $progress['said'] . ' ' . $this->sentence( $last[0] ?? array() ) ) );
		}
		wp_send_json_success( $progress );
	}

	/**
	 * Refuse whoever may not.
	 */
	private function check() {
		check_ajax_referer( self::NONCE, 'nonce' );
		if ( ! current_user_can( self::CAPABILITY ) ) {
			wp_send_json_error( array( 'said' => __( 'You may not do this.', 'sitemapd' ) ), 403 );
		}
	}

	/**
	 * A delivery in words.
	 *
	 * @param array $delivery Of Sitemapd_Deliveries, or empty.
	 * @return string
	 */
	private function sentence( array $delivery ) {
		return trim( ( $delivery['status'] ?? '' ) . ' ' . ( $delivery['said'] ?? '' ) );
	}

	/**
	 * The page.
	 */
	public function page() {
		if ( ! current_user_can( self::CAPABILITY ) ) {
			return;
		}
		require __DIR__ . '/settings-page.php';
	}
}
