<?php
/**
 * WordPress's own sitemap, on request.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * Turns /wp-sitemap.xml off, or leads from it to ours.
 */
class Sitemapd_Core_Sitemap {

	/**
	 * The settings.
	 *
	 * @var Sitemapd_Options
	 */
	private $options;

	/**
	 * Use these settings.
	 *
	 * @param Sitemapd_Options $options The settings.
	 */
	public function __construct( Sitemapd_Options $options ) {
		$this->options = $options;
	}

	/**
	 * Do what the settings say.
	 */
	public function register() {
		if ( 'keep' === $this->options->get( 'core' ) ) {
			return;
		}
		add_filter( 'wp_sitemaps_enabled', '__return_false' );
		add_filter( 'robots_txt', array( $this, 'robots' ), 10, 2 );
		if ( 'redirect' === $this->options->get( 'core' ) ) {
			// Before WordPress guesses an address for what it does not find.
			add_action( 'template_redirect', array( $this, 'redirect' ), 0 );
		}
	}

	/**
	 * Lead from /wp-sitemap.xml and what it lists to our index.
	 */
	public function redirect() {
		$path = (string) wp_parse_url( sanitize_url( wp_unslash( $_SERVER['REQUEST_URI'] ?? '' ) ), PHP_URL_PATH );
		$base = (string) wp_parse_url( home_url( '/' ), PHP_URL_PATH );
		if ( preg_match( '#^' . preg_quote( $base, '#' ) . 'wp-sitemap[a-z0-9_-]*\.xml$#', $path ) || get_query_var( 'sitemap' ) ) {
			// phpcs:ignore WordPress.Security.SafeRedirect -- The administrator's own address; it may be on another host.
			wp_redirect( $this->options->sitemap(), 301, 'sitemapd' );
			exit;
		}
	}

	/**
	 * Name our sitemap in the robots.txt that WordPress makes; a file of that name wins over it.
	 *
	 * @param string $output     So far.
	 * @param mixed  $is_public  Whether search engines are welcome.
	 * @return string
	 */
	public function robots( $output, $is_public ) {
		return $is_public ? $output . "\nSitemap: " . esc_url_raw( $this->options->sitemap() ) . "\n" : $output;
	}
}
