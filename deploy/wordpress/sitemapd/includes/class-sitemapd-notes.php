<?php
/**
 * What was noticed.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * Collects, during one request, the objects whose pages may have changed. WordPress fires up to a
 * dozen hooks for one save; each object is noted once, and looked at when the request is over.
 */
class Sitemapd_Notes {

	const LOOK  = 1; // More changed than can be named.
	const MOVED = 2; // The rules by which addresses are built changed, or who may read them.

	/**
	 * Site of the network => object => its public URL before the change, or ''.
	 *
	 * @var array[]
	 */
	private $noted = array();

	/**
	 * Site of the network => what happened to all its pages: LOOK or MOVED.
	 *
	 * @var int[]
	 */
	private $all = array();

	/**
	 * Note an object.
	 *
	 * @param string $name For example "term:3".
	 * @param string $loc  Its public URL before the change, if it is known; the first one stands.
	 */
	public function note( $name, $loc = '' ) {
		$noted = &$this->noted[ get_current_blog_id() ];
		if ( empty( $noted[ $name ] ) ) {
			$noted[ $name ] = $loc;
		}
	}

	/**
	 * More changed than can be named.
	 */
	public function everything() {
		$this->all += array( get_current_blog_id() => self::LOOK );
	}

	/**
	 * Every page may have another address, or none.
	 */
	public function moved() {
		$this->all[ get_current_blog_id() ] = self::MOVED;
	}

	/**
	 * What was noted since the last call.
	 *
	 * @return array[] Site of the network => objects with their addresses before; 0, LOOK or MOVED.
	 */
	public function take() {
		$taken = array();
		foreach ( array_keys( $this->noted + $this->all ) as $site ) {
			$taken[ $site ] = array( $this->noted[ $site ] ?? array(), $this->all[ $site ] ?? 0 );
		}
		$this->noted = array();
		$this->all   = array();
		return $taken;
	}
}
