<?php
/**
 * Every page, one part after the other.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * Lets every public object wait, and every one that was told of, in steps. "Anew" sends all of
 * them; else only what differs is sent: once a day, and after changes that no hook tells in full.
 */
class Sitemapd_Walk {

	const NAME   = 'sitemapd_walk';
	const PHASES = array( 'type', 'post', 'term', 'user', 'known' );

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
	 * Begin at the beginning.
	 *
	 * @param bool $anew Send what has not changed, too.
	 */
	public function start( $anew ) {
		$under_way = $this->progress();
		update_option(
			self::NAME,
			array(
				'anew'  => $anew || ( $under_way && $under_way['anew'] ),
				'phase' => 0,
				'after' => '',
				'done'  => 0,
			),
			false
		);
	}

	/**
	 * Where it is.
	 *
	 * @return array|null anew, phase, after, done; null if there is none under way.
	 */
	public function progress() {
		$walk = get_option( self::NAME );
		return is_array( $walk ) ? $walk : null;
	}

	/**
	 * About how many objects a walk meets.
	 *
	 * @return int
	 */
	public function total() {
		$total = 0;
		foreach ( $this->pages->types() as $type ) {
			$total += 1 + (int) ( wp_count_posts( $type )->publish ?? 0 );
		}
		foreach ( $this->pages->taxonomies() as $taxonomy ) {
			$total += (int) wp_count_terms( array( 'taxonomy' => $taxonomy ) );
		}
		return $total;
	}

	/**
	 * Let the next objects wait.
	 *
	 * @return bool Whether there is more.
	 */
	public function step() {
		$walk = $this->progress();
		if ( ! $walk ) {
			return false;
		}
		$phase = self::PHASES[ $walk['phase'] ] ?? '';
		$ids   = $this->ids( $phase, (string) $walk['after'] );
		if ( $ids ) {
			$known = 'known' === $phase;
			$names = array();
			foreach ( $ids as $id ) {
				$names[ $known ? $id : "$phase:$id" ] = '';
			}
			$this->ledger->mark( $names, $walk['anew'] && ! $known );
			$walk['after'] = end( $ids );
			$walk['done'] += $known ? 0 : count( $ids );
		}
		if ( ! $ids || 'type' === $phase ) {
			++$walk['phase'];
			$walk['after'] = '';
		}
		if ( $walk['phase'] >= count( self::PHASES ) ) {
			delete_option( self::NAME );
			return false;
		}
		update_option( self::NAME, $walk, false );
		return true;
	}

	/**
	 * The next IDs.
	 *
	 * @param string $phase One of PHASES.
	 * @param string $after The last one seen.
	 * @return string[]
	 */
	private function ids( $phase, $after ) {
		global $wpdb;
		switch ( $phase ) {
			case 'type':
				return array_unique( array_merge( array( 'post' ), $this->pages->types() ) );
			case 'post':
				$sql = "SELECT ID FROM {$wpdb->posts} WHERE ID > %d AND post_type IN (%list%) AND post_status NOT IN ('draft', 'auto-draft', 'pending', 'future', 'private', 'trash') ORDER BY ID LIMIT %d";
				return $this->column( $sql, $this->pages->types(), $after );
			case 'term':
				$sql = "SELECT term_id FROM {$wpdb->term_taxonomy} WHERE term_id > %d AND taxonomy IN (%list%) AND count > 0 ORDER BY term_id LIMIT %d";
				return $this->column( $sql, $this->pages->taxonomies(), $after );
			case 'user':
				$sql = "SELECT DISTINCT post_author FROM {$wpdb->posts} WHERE post_author > %d AND post_type IN (%list%) AND post_status = 'publish' ORDER BY post_author LIMIT %d";
				return $this->column( $sql, $this->pages->authored_types(), $after );
			default:
				return $this->ledger->known( $after );
		}
	}

	/**
	 * A column of IDs.
	 *
	 * @param string   $sql   With %d for the last ID, %list% for names, %d for the limit.
	 * @param string[] $names Names.
	 * @param string   $after The last one seen.
	 * @return string[]
	 */
	private function column( $sql, array $names, $after ) {
		global $wpdb;
		if ( ! $names ) {
			return array();
		}
		$sql = str_replace( '%list%', implode( ', ', array_fill( 0, count( $names ), '%s' ) ), $sql );
		// phpcs:ignore WordPress.DB.PreparedSQL, WordPress.DB.DirectDatabaseQuery -- Placeholders only; a walk reads what is there.
		return $wpdb->get_col( $wpdb->prepare( $sql, array_merge( array( (int) $after ), $names, array( Sitemapd_Ledger::CHUNK ) ) ) );
	}
}
