<?php
/**
 * The events of one request.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * Makes the events of the objects that wait, as WordPress has them now.
 *
 * To be used under the lock: a version is taken before the state is read, so that a newer version
 * never carries an older state, whatever runs at the same time.
 */
class Sitemapd_Batch {

	const MOST_BYTES = 900000;

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
	 * Use these parts.
	 *
	 * @param Sitemapd_Ledger $ledger What waits.
	 * @param Sitemapd_Pages  $pages  What is public.
	 */
	public function __construct( Sitemapd_Ledger $ledger, Sitemapd_Pages $pages ) {
		$this->ledger = $ledger;
		$this->pages  = $pages;
	}

	/**
	 * The events of the objects that wait the longest; those that need none wait no more.
	 *
	 * @param int $most How many objects at most.
	 * @return array Lines, and for each line the row and the page it tells of.
	 */
	public function gather( $most ) {
		$rows    = $this->ledger->waiting( $most );
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
			$line   = self::line( $event, $version++ );
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
	 * A line of a body.
	 *
	 * @param array $event   The event.
	 * @param int   $version Its version.
	 * @return string
	 */
	public static function line( array $event, $version ) {
		return (string) wp_json_encode( $event + array( 'version' => $version ), JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE );
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
	public static function leaves( $id, $loc ) {
		return array(
			'type' => 'delete',
			'id'   => $id,
			'loc'  => $loc,
		);
	}
}
