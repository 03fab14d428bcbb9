<?php
/**
 * Deliveries of sites that are gone.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * Keeps bodies that are ready to be sent in options of the network, one each, until they are
 * accepted: the tables and the settings of the site they tell of are dropped.
 */
class Sitemapd_Outbox {

	const PREFIX = 'sitemapd_body_';
	const LINES  = 1000; // About 150 KB: below what object caches take in one item.

	/**
	 * The last deliveries.
	 *
	 * @var Sitemapd_Deliveries
	 */
	private $deliveries;

	/**
	 * Use these parts.
	 *
	 * @param Sitemapd_Deliveries $deliveries The last deliveries.
	 */
	public function __construct( Sitemapd_Deliveries $deliveries ) {
		$this->deliveries = $deliveries;
	}

	/**
	 * Keep events.
	 *
	 * @param int      $network  Network ID.
	 * @param array    $settings address, site, and secret unless it is a constant.
	 * @param string   $about    Which site they tell of, for people.
	 * @param string[] $lines    Events, at most LINES.
	 */
	public function keep( $network, array $settings, $about, array $lines ) {
		$body = array(
			'settings' => $settings,
			'about'    => $about,
			'lines'    => array_values( $lines ),
			'at'       => 0,
			'fails'    => 0,
		);
		add_network_option( $network, self::PREFIX . wp_generate_uuid4(), $body );
	}

	/**
	 * Send what is kept and due. Two requests may send the same: the versions make that harmless.
	 *
	 * @param float $until   No request starts after this time.
	 * @param float $timeout Seconds for each request.
	 * @return int When to go on, 0 if nothing is left.
	 */
	public function send( $until, $timeout ) {
		$next   = 0;
		$silent = array();
		foreach ( self::names( self::PREFIX ) as $name ) {
			$body = get_network_option( null, $name );
			if ( ! is_array( $body ) ) {
				continue;
			}
			$service = $body['settings']['address'] . ' ' . $body['settings']['site'];
			$at      = max( $body['at'], $silent[ $service ] ?? 0 );
			if ( $at <= time() && microtime( true ) < $until ) {
				$at = $this->post( $name, $body, $timeout );
				if ( $at > time() ) {
					$silent[ $service ] = $at;
				}
			}
			if ( $at || get_network_option( null, $name ) ) {
				$next = $next ? min( $next, max( $at, time() ) ) : max( $at, time() );
			}
		}
		return $next;
	}

	/**
	 * The options of the network with this prefix, the oldest first.
	 *
	 * @param string $prefix Beginning of the names.
	 * @return string[]
	 */
	public static function names( $prefix ) {
		global $wpdb;
		// phpcs:ignore WordPress.DB.DirectDatabaseQuery -- No function lists them.
		return $wpdb->get_col( $wpdb->prepare( "SELECT meta_key FROM {$wpdb->sitemeta} WHERE site_id = %d AND meta_key LIKE %s ORDER BY meta_id", get_current_network_id(), $wpdb->esc_like( $prefix ) . '%' ) );
	}

	/**
	 * Send one body.
	 *
	 * @param string $name    Its option.
	 * @param array  $body    What keep() stored.
	 * @param float  $timeout Seconds.
	 * @return int When to go on with it, 0 if it is done.
	 */
	private function post( $name, array $body, $timeout ) {
		$client = new Sitemapd_Client( new Sitemapd_Options( $body['settings'] ) );
		$lines  = $body['lines'];
		$result = $client->post( implode( "\n", $lines ) . "\n", $timeout );
		$this->deliveries->note( $result['status'], count( $lines ), $body['about'], $result['said'] );
		if ( Sitemapd_Client::LATER === $result['outcome'] ) {
			$body['at']    = time() + Sitemapd_Sender::delay( $result['wait'], $body['fails'] );
			$body['fails'] = $body['fails'] + 1;
			update_network_option( null, $name, $body );
			return $body['at'];
		}
		if ( Sitemapd_Client::REFUSED === $result['outcome'] ) {
			// What is refused by name is dropped; without names, fewer are sent until one is left.
			$half  = max( 1, intdiv( count( $lines ), 2 ) );
			$parts = $result['items'] ? array( array_diff_key( $lines, array_flip( $result['items'] ) ) ) : array_chunk( $lines, $half );
			foreach ( count( $lines ) > 1 ? array_filter( $parts ) : array() as $part ) {
				$this->keep( get_current_network_id(), $body['settings'], $body['about'], $part );
			}
			delete_network_option( null, $name );
			return count( $lines ) > 1 ? time() : 0;
		}
		delete_network_option( null, $name );
		return 0;
	}
}
