<?php
/**
 * From what waits to what is told.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * Sends the objects that wait, one request at a time for the whole site.
 *
 * An event is made when it is sent, under a lock, and its version is taken before the state is read:
 * so a newer version never carries an older state, whatever runs at the same time.
 */
class Sitemapd_Sender {

	const MOST_BYTES   = 900000;
	const LOCK_S       = 60.0; // Longer than REFUSALS requests of the longest timeout.
	const LOCK_WAIT_S  = 1.0;
	const TIMEOUT_S    = 3.0;
	const FIRST_WAIT_S = 5;
	const MOST_WAIT_S  = HOUR_IN_SECONDS;
	const REFUSALS     = 5;

	/**
	 * The settings.
	 *
	 * @var Sitemapd_Options
	 */
	private $options;

	/**
	 * What waits.
	 *
	 * @var Sitemapd_Ledger
	 */
	private $ledger;

	/**
	 * What is public.
	 *
	 * @var Sitemapd_Pages
	 */
	private $pages;

	/**
	 * HTTP.
	 *
	 * @var Sitemapd_Client
	 */
	private $client;

	/**
	 * The last deliveries.
	 *
	 * @var Sitemapd_Deliveries
	 */
	private $deliveries;

	/**
	 * Objects in one request at most; halved while one is refused and nothing says which event.
	 *
	 * @var int
	 */
	private $size = Sitemapd_Ledger::CHUNK;

	/**
	 * Use these parts.
	 *
	 * @param Sitemapd_Options    $options    The settings.
	 * @param Sitemapd_Ledger     $ledger     What waits.
	 * @param Sitemapd_Pages      $pages      What is public.
	 * @param Sitemapd_Client     $client     HTTP.
	 * @param Sitemapd_Deliveries $deliveries The last deliveries.
	 */
	public function __construct( Sitemapd_Options $options, Sitemapd_Ledger $ledger, Sitemapd_Pages $pages, Sitemapd_Client $client, Sitemapd_Deliveries $deliveries ) {
		$this->options    = $options;
		$this->ledger     = $ledger;
		$this->pages      = $pages;
		$this->client     = $client;
		$this->deliveries = $deliveries;
	}

	/**
	 * Send what waits; what is left over is sent by wp-cron.
	 *
	 * @param int   $batches Requests at most.
	 * @param float $timeout Seconds for each.
	 * @return bool Whether nothing stopped it: false after a failure, or while waiting after one.
	 */
	public function flush( $batches = 1, $timeout = self::TIMEOUT_S ) {
		if ( ! $this->options->is_complete() ) {
			return false;
		}
		$clear = $this->retry_at() <= time();
		while ( $clear && $batches > 0 && $this->ledger->count_waiting() ) {
			$token = $this->ledger->lock( self::LOCK_S, self::LOCK_WAIT_S );
			if ( '' === $token ) {
				break; // The request that has it looks again after it gave it back.
			}
			try {
				$clear = $this->batch( $timeout );
			} finally {
				$this->ledger->unlock( $token );
			}
			--$batches;
		}
		if ( $this->ledger->count_waiting() ) {
			$this->schedule( max( time(), $this->retry_at() ) );
		}
		return $clear;
	}

	/**
	 * When the next attempt may be made.
	 *
	 * @return int Seconds since 1970, 0 for at once.
	 */
	public function retry_at() {
		$retry = get_option( 'sitemapd_retry' );
		return is_array( $retry ) ? (int) $retry['at'] : 0;
	}

	/**
	 * Forget that it failed: the settings are new, or somebody asks.
	 */
	public function retry_now() {
		delete_option( 'sitemapd_retry' );
	}

	/**
	 * Let wp-cron go on.
	 *
	 * @param int $at Seconds since 1970.
	 */
	public function schedule( $at ) {
		$next = wp_next_scheduled( 'sitemapd_flush' );
		if ( $next && $next <= $at && $next > time() - MINUTE_IN_SECONDS ) {
			return;
		}
		wp_clear_scheduled_hook( 'sitemapd_flush' );
		wp_schedule_single_event( $at, 'sitemapd_flush' );
	}

	/**
	 * Ask the service to compare the whole site by itself. It need not be able to.
	 */
	public function resync() {
		$event  = array(
			'type'   => 'resync',
			'prefix' => home_url( '/' ),
		);
		$result = $this->client->post( wp_json_encode( $event, JSON_UNESCAPED_SLASHES ), self::TIMEOUT_S );
		if ( Sitemapd_Client::SENT !== $result['outcome'] ) {
			$result['said'] = __( 'Not taken, and not needed: everything is compared from here.', 'sitemapd' ) . ' ' . $result['said'];
		}
		$this->deliveries->note( $result['status'], 1, 'resync', $result['said'] );
	}

	/**
	 * One request, and those that it takes to find out what is refused in it.
	 *
	 * @param float $timeout Seconds for each.
	 * @return bool Whether the service can be spoken to.
	 */
	private function batch( $timeout ) {
		for ( $tries = 0; $tries < self::REFUSALS; $tries++ ) {
			list( $events, $told ) = $this->gather();
			if ( ! $events ) {
				return true;
			}
			$result = $this->client->post( implode( "\n", $events ) . "\n", $timeout );
			$this->deliveries->note( $result['status'], count( $events ), self::names( $told ), $result['said'] );
			if ( Sitemapd_Client::LATER === $result['outcome'] ) {
				$this->wait( $result['wait'] );
				return false;
			}
			$this->retry_now();
			if ( Sitemapd_Client::SENT === $result['outcome'] ) {
				$this->settle( $told );
				$this->size = Sitemapd_Ledger::CHUNK;
				return true;
			}
			$this->refused( $told, $result['items'] );
		}
		return true;
	}

	/**
	 * The events of the objects that wait the longest.
	 *
	 * @return array Lines, and for each line the row and the page it tells of.
	 */
	private function gather() {
		$rows    = $this->ledger->waiting( $this->size );
		$version = $this->ledger->versions( 2 * max( 1, count( $rows ) ) );
		$this->read_anew( $rows );
		// What leaves comes first, so that a page that takes its address over is the newer one.
		$leaving = array();
		$listed  = array();
		foreach ( $rows as $row ) {
			$page = $this->pages->describe( $row->object );
			if ( null === $page && '' === $row->loc ) {
				$this->ledger->settle( $row, null );
			} elseif ( null === $page ) {
				$leaving[] = array( $row, null, self::leaves( $row->object, $row->loc ) );
			} elseif ( ! $this->is_news( $row, $page ) ) {
				$this->ledger->unmark( $row );
			} else {
				if ( '' === $row->state && '' !== $row->loc && $row->loc !== $page['loc'] ) {
					// Listed without our doing, so its id is not known there. Under an id of its own
					// the delete takes nothing from a page that has this address by now.
					$leaving[] = array( null, null, self::leaves( "left:$row->object", $row->loc ) );
				}
				$listed[] = array( $row, $page, $page['event'] );
			}
		}
		$lines = array();
		$told  = array();
		$bytes = 0;
		foreach ( array_merge( $leaving, $listed ) as list( $row, $page, $event ) ) {
			$line   = wp_json_encode( $event + array( 'version' => $version++ ), JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE );
			$bytes += strlen( $line ) + 1;
			if ( $lines && $bytes > self::MOST_BYTES ) {
				break;
			}
			$lines[] = $line;
			$told[]  = array( $row, $page );
		}
		return array( $lines, $told );
	}

	/**
	 * Whether a page is to be told of: it differs, or it was edited. WordPress changes the date of
	 * modification with every save, and plugins count views in post meta; neither alone is news.
	 *
	 * @param object $row  What was told.
	 * @param array  $page What is so now.
	 * @return bool
	 */
	private function is_news( $row, array $page ) {
		return $row->state !== $page['state'] || ( $row->lastmod !== $page['lastmod'] && $row->content !== $page['content'] );
	}

	/**
	 * The objects of a request, for people.
	 *
	 * @param array $told Rows and pages.
	 * @return string
	 */
	private static function names( array $told ) {
		return implode( ', ', array_column( array_filter( array_column( $told, 0 ) ), 'object' ) );
	}

	/**
	 * Enter into the ledger what was told.
	 *
	 * @param array $told Rows and pages.
	 */
	private function settle( array $told ) {
		foreach ( $told as list( $row, $page ) ) {
			if ( $row ) {
				$this->ledger->settle( $row, $page );
			}
		}
	}

	/**
	 * Drop what is refused by name; without names, try fewer at a time until one is left.
	 *
	 * @param array $told  Rows and pages.
	 * @param int[] $items Positions that are refused.
	 */
	private function refused( array $told, array $items ) {
		if ( ! $items && count( $told ) > 1 ) {
			$this->size = max( 1, intdiv( min( $this->size, count( $told ) ), 2 ) );
			return;
		}
		// As if it had been told: the same would be refused again. A change of it is another try.
		$this->settle( $items ? array_intersect_key( $told, array_flip( $items ) ) : $told );
	}

	/**
	 * Leave the service alone for a while.
	 *
	 * @param int $asked Seconds it asked for, 0 if it did not.
	 */
	private function wait( $asked ) {
		$retry = get_option( 'sitemapd_retry' );
		$fails = is_array( $retry ) ? (int) $retry['fails'] : 0;
		$delay = max( $asked, self::FIRST_WAIT_S * 2 ** min( $fails, 10 ) );
		update_option(
			'sitemapd_retry',
			array(
				'at'    => time() + (int) min( $delay, self::MOST_WAIT_S ),
				'fails' => $fails + 1,
			),
			false
		);
	}

	/**
	 * Forget what this request has read of them before: another may have changed it since.
	 *
	 * @param object[] $rows Rows.
	 */
	private function read_anew( array $rows ) {
		if ( wp_cache_supports( 'flush_runtime' ) ) {
			wp_cache_flush_runtime();
		}
		$ids = array();
		foreach ( $rows as $row ) {
			list( $kind, $id ) = explode( ':', $row->object, 2 );
			if ( 'post' === $kind ) {
				$ids[] = (int) $id;
				wp_cache_delete( (int) $id, 'posts' );
				wp_cache_delete( (int) $id, 'post_meta' );
			} elseif ( 'term' === $kind ) {
				wp_cache_delete( (int) $id, 'terms' );
			}
		}
		_prime_post_caches( $ids );
	}

	/**
	 * The event of a page that is no longer public.
	 *
	 * @param string $id  The object.
	 * @param string $loc Where it was.
	 * @return array
	 */
	private static function leaves( $id, $loc ) {
		return array(
			'type' => 'delete',
			'id'   => $id,
			'loc'  => $loc,
		);
	}
}
