<?php
/**
 * From what waits to what is told.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * Sends the objects that wait, one request at a time for the whole site.
 */
class Sitemapd_Sender {

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
	 * Makes events.
	 *
	 * @var Sitemapd_Batch
	 */
	private $batch;

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
	 * @param Sitemapd_Batch      $batch      Makes events.
	 * @param Sitemapd_Client     $client     HTTP.
	 * @param Sitemapd_Deliveries $deliveries The last deliveries.
	 */
	public function __construct( Sitemapd_Options $options, Sitemapd_Ledger $ledger, Sitemapd_Batch $batch, Sitemapd_Client $client, Sitemapd_Deliveries $deliveries ) {
		$this->options    = $options;
		$this->ledger     = $ledger;
		$this->batch      = $batch;
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
				$clear = $this->request( $timeout );
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
	private function request( $timeout ) {
		for ( $tries = 0; $tries < self::REFUSALS; $tries++ ) {
			list( $events, $told ) = $this->batch->gather( $this->size );
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
	 * How long the service is left alone.
	 *
	 * @param int $asked Seconds it asked for, 0 if it did not.
	 * @param int $fails How often it failed before.
	 * @return int Seconds.
	 */
	public static function delay( $asked, $fails ) {
		return (int) min( max( $asked, self::FIRST_WAIT_S * 2 ** min( $fails, 10 ) ), self::MOST_WAIT_S );
	}

	/**
	 * Leave the service alone for a while.
	 *
	 * @param int $asked Seconds it asked for, 0 if it did not.
	 */
	private function wait( $asked ) {
		$retry = get_option( 'sitemapd_retry' );
		$fails = is_array( $retry ) ? (int) $retry['fails'] : 0;
		update_option(
			'sitemapd_retry',
			array(
				'at'    => time() + self::delay( $asked, $fails ),
				'fails' => $fails + 1,
			),
			false
		);
	}
}
