<?php
/**
 * Settings of one site.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * Reads the settings; SITEMAPD_ADDRESS, SITEMAPD_SITE and SITEMAPD_SECRET in wp-config.php win over
 * what is stored, so that the secret need not be in the database.
 */
class Sitemapd_Options {

	const NAME     = 'sitemapd';
	const DEFAULTS = array(
		'address'     => '',
		'site'        => '',
		'secret'      => '',
		'sections'    => array(),
		'terms'       => true,
		'authors'     => true,
		'attachments' => false,
		'core'        => 'keep',
		'sitemap'     => '',
	);
	const ENDPOINT = '#/v1/sites/([a-z0-9-]{1,32})/(?:events|hooks/wordpress)$#';
	const FIXED    = array(
		'address' => 'SITEMAPD_ADDRESS',
		'site'    => 'SITEMAPD_SITE',
		'secret'  => 'SITEMAPD_SECRET',
	);

	/**
	 * Settings to use in place of those stored, or none.
	 *
	 * @var array
	 */
	private $given;

	/**
	 * Use the settings of the current site, or these.
	 *
	 * @param array $given Settings of a site that is gone.
	 */
	public function __construct( array $given = array() ) {
		$this->given = $given;
	}

	/**
	 * One setting.
	 *
	 * @param string $name One of DEFAULTS.
	 * @return mixed
	 */
	public function get( $name ) {
		if ( isset( $this->given[ $name ] ) ) {
			return $this->given[ $name ];
		}
		if ( $this->is_fixed( $name ) ) {
			return (string) constant( self::FIXED[ $name ] );
		}
		$stored = (array) get_option( self::NAME, array() );
		return $stored[ $name ] ?? self::DEFAULTS[ $name ];
	}

	/**
	 * Whether wp-config.php decides.
	 *
	 * @param string $name One of DEFAULTS.
	 * @return bool
	 */
	public function is_fixed( $name ) {
		return isset( self::FIXED[ $name ] ) && defined( self::FIXED[ $name ] );
	}

	/**
	 * The raw signing key.
	 *
	 * @return string Empty if there is no usable secret.
	 */
	public function key() {
		return self::decode( (string) $this->get( 'secret' ) );
	}

	/**
	 * The raw key in a Standard Webhooks secret: whsec_ and base64 of 24 to 64 bytes.
	 *
	 * @param string $secret As the administrator gave it.
	 * @return string Empty if it is none.
	 */
	public static function decode( $secret ) {
		if ( ! str_starts_with( $secret, 'whsec_' ) ) {
			return '';
		}
		$key = base64_decode( substr( $secret, 6 ), true ); // phpcs:ignore WordPress.PHP.DiscouragedPHPFunctions -- The form Standard Webhooks gives its keys.
		return is_string( $key ) && strlen( $key ) >= 24 && strlen( $key ) <= 64 ? $key : '';
	}

	/**
	 * Whether there is enough to send anything.
	 *
	 * @return bool
	 */
	public function is_complete() {
		return '' !== $this->get( 'address' ) && '' !== $this->get( 'site' ) && '' !== $this->key();
	}

	/**
	 * The address of the public sitemap.
	 *
	 * @return string
	 */
	public function sitemap() {
		$given = (string) $this->get( 'sitemap' );
		return '' === $given ? home_url( '/sitemap.xml' ) : $given;
	}

	/**
	 * What may be stored of a submitted form; an empty secret keeps the former one.
	 *
	 * @param mixed $given Submitted values.
	 * @return array
	 */
	public function sanitize( $given ) {
		$given = is_array( $given ) ? $given : array();
		$old   = array_merge( self::DEFAULTS, (array) get_option( self::NAME, array() ) );
		$clean = $old;

		$address = untrailingslashit( esc_url_raw( trim( (string) ( $given['address'] ?? '' ) ), array( 'http', 'https' ) ) );
		$site    = trim( (string) ( $given['site'] ?? '' ) );
		$secret  = trim( (string) ( $given['secret'] ?? '' ) );
		if ( preg_match( self::ENDPOINT, $address, $endpoint ) ) {
			$address = substr( $address, 0, -strlen( $endpoint[0] ) );
			$site    = $endpoint[1];
		}
		if ( '' === $address && ! empty( $given['address'] ) ) {
			add_settings_error( self::NAME, 'address', __( 'The address must start with https:// or http://.', 'sitemapd' ) );
		} else {
			$clean['address'] = $address;
		}
		if ( '' !== $site && ! preg_match( '/^[a-z0-9-]{1,32}$/', $site ) ) {
			add_settings_error( self::NAME, 'site', __( 'The site name has 1 to 32 small letters, digits and hyphens.', 'sitemapd' ) );
		} else {
			$clean['site'] = $site;
		}
		if ( '' !== $secret && '' === self::decode( $secret ) ) {
			add_settings_error( self::NAME, 'secret', __( 'The secret must be whsec_ followed by base64 of 24 to 64 bytes, as in sitemapd.toml.', 'sitemapd' ) );
		} elseif ( '' !== $secret ) {
			$clean['secret'] = $secret;
		}
		foreach ( array( 'terms', 'authors', 'attachments' ) as $name ) {
			$clean[ $name ] = ! empty( $given[ $name ] );
		}
		$clean['core']     = in_array( $given['core'] ?? '', array( 'disable', 'redirect' ), true ) ? $given['core'] : 'keep';
		$clean['sitemap']  = esc_url_raw( trim( (string) ( $given['sitemap'] ?? '' ) ), array( 'http', 'https' ) );
		$clean['sections'] = array();
		foreach ( (array) ( $given['sections'] ?? array() ) as $type => $section ) {
			$section = trim( (string) $section );
			if ( preg_match( '/^[a-z0-9-]{1,32}$/', $section ) ) {
				$clean['sections'][ sanitize_key( $type ) ] = $section;
			}
		}
		return $clean;
	}
}
