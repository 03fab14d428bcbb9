<?php
/**
 * The last deliveries, for people.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * Keeps what became of the last deliveries; never a secret, never a body.
 */
class Sitemapd_Deliveries {

	const NAME = 'sitemapd_deliveries';
	const MOST = 20;

	/**
	 * Note one delivery.
	 *
	 * @param int    $status HTTP status, 0 without an answer.
	 * @param int    $events How many events it carried.
	 * @param string $what   Which objects, shortened.
	 * @param string $said   Why, in words.
	 */
	public function note( $status, $events, $what, $said ) {
		$last = $this->all();
		array_unshift(
			$last,
			array(
				'at'     => time(),
				'status' => (int) $status,
				'events' => (int) $events,
				'what'   => mb_substr( $what, 0, 120 ),
				'said'   => mb_substr( wp_strip_all_tags( $said ), 0, 300 ),
			)
		);
		update_option( self::NAME, array_slice( $last, 0, self::MOST ), false );
	}

	/**
	 * The last deliveries, newest first.
	 *
	 * @return array[]
	 */
	public function all() {
		return array_values( array_filter( (array) get_option( self::NAME, array() ), 'is_array' ) );
	}
}
