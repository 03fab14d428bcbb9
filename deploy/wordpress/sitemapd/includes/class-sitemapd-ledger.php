<?php
/**
 * What was told to sitemapd about each object, and which objects wait.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * One row for each object ("post:5"): what was acknowledged of it, and a mark while it waits.
 *
 * The queue holds objects, not events: what is sent is what WordPress says when it is sent. So a
 * service that was away for a month finds one event for each object that changed, never more than
 * the site has objects, and nothing is ever dropped for want of space.
 */
class Sitemapd_Ledger {

	const SCHEMA = '1';
	const CHUNK  = 200;

	/**
	 * Create the table, once for each version of it.
	 */
	public function install() {
		if ( self::SCHEMA === get_option( 'sitemapd_schema' ) ) {
			return;
		}
		global $wpdb;
		require_once ABSPATH . 'wp-admin/includes/upgrade.php';
		dbDelta(
			"CREATE TABLE {$this->table()} (
			object varchar(64) NOT NULL,
			mark bigint(20) unsigned NOT NULL DEFAULT 0,
			loc text NOT NULL,
			state varchar(32) NOT NULL DEFAULT '',
			content varchar(32) NOT NULL DEFAULT '',
			lastmod varchar(20) NOT NULL DEFAULT '',
			PRIMARY KEY  (object),
			KEY mark (mark)
			) {$wpdb->get_charset_collate()};"
		);
		add_option( 'sitemapd_lock', self::free(), '', false );
		update_option( 'sitemapd_schema', self::SCHEMA, true );
	}

	/**
	 * Let objects wait to be sent.
	 *
	 * @param array $objects Object => its public URL before the change, or ''. The URL is kept only
	 *                       for an object nothing is known of: it may be listed without our doing.
	 * @param bool  $anew    Send it even if nothing changed.
	 */
	public function mark( array $objects, $anew = false ) {
		global $wpdb;
		$again = $anew ? ", state = ''" : '';
		foreach ( array_chunk( $objects, self::CHUNK, true ) as $chunk ) {
			$now    = (int) ( microtime( true ) * 1e6 );
			$values = array();
			foreach ( $chunk as $object => $loc ) {
				array_push( $values, $object, $now, $loc );
			}
			$rows = implode( ', ', array_fill( 0, count( $chunk ), '(%s, %d, %s)' ) );
			// phpcs:ignore WordPress.DB.PreparedSQL, WordPress.DB.DirectDatabaseQuery, WordPress.DB.PreparedSQLPlaceholders -- Own table; the rows are placeholders only.
			$wpdb->query( $wpdb->prepare( "INSERT INTO {$this->table()} (object, mark, loc) VALUES $rows ON DUPLICATE KEY UPDATE mark = VALUES(mark)$again", $values ) );
		}
	}

	/**
	 * Objects that wait, the longest first.
	 *
	 * @param int $most At most so many.
	 * @return object[] Rows.
	 */
	public function waiting( $most = self::CHUNK ) {
		global $wpdb;
		// phpcs:ignore WordPress.DB.PreparedSQL, WordPress.DB.DirectDatabaseQuery -- Own table, must be fresh.
		return $wpdb->get_results( $wpdb->prepare( "SELECT * FROM {$this->table()} WHERE mark > 0 ORDER BY mark, object LIMIT %d", $most ) );
	}

	/**
	 * How many objects wait.
	 *
	 * @return int
	 */
	public function count_waiting() {
		global $wpdb;
		// phpcs:ignore WordPress.DB.PreparedSQL, WordPress.DB.DirectDatabaseQuery -- Own table, must be fresh.
		return (int) $wpdb->get_var( "SELECT COUNT(*) FROM {$this->table()} WHERE mark > 0" );
	}

	/**
	 * How many objects are known to be listed.
	 *
	 * @return int
	 */
	public function count_listed() {
		global $wpdb;
		// phpcs:ignore WordPress.DB.PreparedSQL, WordPress.DB.DirectDatabaseQuery -- Own table, must be fresh.
		return (int) $wpdb->get_var( "SELECT COUNT(*) FROM {$this->table()} WHERE state <> ''" );
	}

	/**
	 * The next objects in the order of their names, whether they wait or not.
	 *
	 * @param string $after The last one seen.
	 * @return string[]
	 */
	public function known( $after ) {
		global $wpdb;
		// phpcs:ignore WordPress.DB.PreparedSQL, WordPress.DB.DirectDatabaseQuery -- Own table, must be fresh.
		return $wpdb->get_col( $wpdb->prepare( "SELECT object FROM {$this->table()} WHERE object > %s ORDER BY object LIMIT %d", $after, self::CHUNK ) );
	}

	/**
	 * The next objects that may be listed, in the order of their names.
	 *
	 * @param string $after The last one seen.
	 * @param int    $most  At most so many.
	 * @return object[] Rows.
	 */
	public function listed( $after, $most ) {
		global $wpdb;
		// phpcs:ignore WordPress.DB.PreparedSQL, WordPress.DB.DirectDatabaseQuery -- Own table, must be fresh.
		return $wpdb->get_results( $wpdb->prepare( "SELECT object, loc FROM {$this->table()} WHERE object > %s AND loc <> '' ORDER BY object LIMIT %d", $after, $most ) );
	}

	/**
	 * Let every object wait that does not.
	 */
	public function mark_all() {
		global $wpdb;
		// phpcs:ignore WordPress.DB.PreparedSQL, WordPress.DB.DirectDatabaseQuery -- Own table.
		$wpdb->query( $wpdb->prepare( "UPDATE {$this->table()} SET mark = %d WHERE mark = 0", (int) ( microtime( true ) * 1e6 ) ) );
	}

	/**
	 * An object was told, or needs no telling. One that changed meanwhile keeps waiting.
	 *
	 * @param object     $row  The row as it was read.
	 * @param array|null $page What sitemapd knows now, from Sitemapd_Pages::describe(); null if the
	 *                         page is not listed.
	 */
	public function settle( $row, $page ) {
		global $wpdb;
		if ( null === $page ) {
			// phpcs:ignore WordPress.DB.PreparedSQL, WordPress.DB.DirectDatabaseQuery -- Own table.
			$gone = $wpdb->query( $wpdb->prepare( "DELETE FROM {$this->table()} WHERE object = %s AND mark = %d", $row->object, $row->mark ) );
			if ( ! $gone ) {
				// phpcs:ignore WordPress.DB.PreparedSQL, WordPress.DB.DirectDatabaseQuery -- Own table.
				$wpdb->query( $wpdb->prepare( "UPDATE {$this->table()} SET loc = '', state = '' WHERE object = %s", $row->object ) );
			}
			return;
		}
		// phpcs:ignore WordPress.DB.PreparedSQL, WordPress.DB.DirectDatabaseQuery -- Own table.
		$wpdb->query( $wpdb->prepare( "UPDATE {$this->table()} SET loc = %s, state = %s, content = %s, lastmod = %s, mark = IF(mark = %d, 0, mark) WHERE object = %s", $page['loc'], $page['state'], $page['content'], $page['lastmod'], $row->mark, $row->object ) );
	}

	/**
	 * Nothing of it changed: it waits no more, unless it was marked again meanwhile.
	 *
	 * @param object $row The row as it was read.
	 */
	public function unmark( $row ) {
		global $wpdb;
		// phpcs:ignore WordPress.DB.PreparedSQL, WordPress.DB.DirectDatabaseQuery -- Own table.
		$wpdb->query( $wpdb->prepare( "UPDATE {$this->table()} SET mark = 0 WHERE object = %s AND mark = %d", $row->object, $row->mark ) );
	}

	/**
	 * Become the one request that sends, for a while.
	 *
	 * @param float $hold How many seconds at most: a request may die.
	 * @param float $wait How many seconds another request may still need.
	 * @return string A token, or '' if another request sends.
	 */
	public function lock( $hold, $wait ) {
		global $wpdb;
		$deadline = microtime( true ) + $wait;
		do {
			$now   = microtime( true );
			$token = self::until( $now + $hold );
			// Compare and set in one statement: two requests never both get it.
			// phpcs:ignore WordPress.DB.DirectDatabaseQuery -- Atomic, and no cache may stand between.
			$got = $wpdb->query( $wpdb->prepare( "UPDATE {$wpdb->options} SET option_value = %s WHERE option_name = 'sitemapd_lock' AND option_value < %s", $token, self::until( $now ) ) );
			if ( $got ) {
				return $token;
			}
			usleep( 20000 );
		} while ( microtime( true ) < $deadline );
		return '';
	}

	/**
	 * Give the lock back, unless another request has it by now.
	 *
	 * @param string $token From lock().
	 */
	public function unlock( $token ) {
		global $wpdb;
		// phpcs:ignore WordPress.DB.DirectDatabaseQuery -- As above.
		$wpdb->query( $wpdb->prepare( "UPDATE {$wpdb->options} SET option_value = %s WHERE option_name = 'sitemapd_lock' AND option_value = %s", self::free(), $token ) );
	}

	/**
	 * Versions for a batch: greater than every one given before, and the time in milliseconds if
	 * the clock allows. To be called under the lock, before the state of the objects is read.
	 *
	 * @param int $count How many.
	 * @return int The first of them.
	 */
	public function versions( $count ) {
		global $wpdb;
		// phpcs:ignore WordPress.DB.DirectDatabaseQuery -- A persistent cache may hold an older one.
		$last  = (int) $wpdb->get_var( "SELECT option_value FROM {$wpdb->options} WHERE option_name = 'sitemapd_clock'" );
		$first = max( (int) ( microtime( true ) * 1000 ), $last + 1 );
		update_option( 'sitemapd_clock', (string) ( $first + $count - 1 ), false );
		return $first;
	}

	/**
	 * The name of the table.
	 *
	 * @return string
	 */
	private function table() {
		global $wpdb;
		return $wpdb->prefix . 'sitemapd_pages';
	}

	/**
	 * A moment as text of fixed width, so that the database compares it right.
	 *
	 * @param float $seconds Since 1970.
	 * @return string
	 */
	private static function until( $seconds ) {
		return sprintf( '%020d-%06d', (int) ( $seconds * 1e6 ), wp_rand( 0, 999999 ) );
	}

	/**
	 * The lock when nobody has it.
	 *
	 * @return string
	 */
	private static function free() {
		return sprintf( '%020d-%06d', 0, 0 );
	}
}
