<?php
/**
 * What SEO plugins say about a page.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * Reads noindex and canonical of a post where the active SEO plugin keeps them.
 */
class Sitemapd_Seo {

	/**
	 * The constant that says a plugin is active => its post meta: key and values for noindex, values
	 * for index, key of the canonical URL. A list as the meta's value is searched.
	 */
	const META = array(
		'WPSEO_VERSION'     => array( '_yoast_wpseo_meta-robots-noindex', array( '1' ), array( '2' ), '_yoast_wpseo_canonical' ),
		'RANK_MATH_VERSION' => array( 'rank_math_robots', array( 'noindex' ), array( 'index' ), 'rank_math_canonical_url' ),
		'SEOPRESS_VERSION'  => array( '_seopress_robots_index', array( 'yes' ), array(), '_seopress_robots_canonical' ),
	);

	/**
	 * Keys of post meta that change what is published, beside the featured image.
	 *
	 * @return string[]
	 */
	public function keys() {
		$keys = array();
		foreach ( self::META as $meta ) {
			array_push( $keys, $meta[0], $meta[3] );
		}
		return $keys;
	}

	/**
	 * What the active plugins say of a post.
	 *
	 * @param WP_Post $post The post.
	 * @return array noindex (bool), canonical (string, '' for none).
	 */
	public function of( WP_Post $post ) {
		$noindex   = false;
		$canonical = '';
		foreach ( self::META as $constant => list( $robots, $no, $yes, $link ) ) {
			if ( ! defined( $constant ) ) {
				continue;
			}
			$said = array_map( 'strval', array_filter( (array) get_post_meta( $post->ID, $robots, true ), 'is_scalar' ) );
			if ( array_intersect( $no, $said ) ) {
				$noindex = true;
			} elseif ( ! array_intersect( $yes, $said ) && $this->is_type_hidden( $constant, $post->post_type ) ) {
				$noindex = true;
			}
			$canonical = $canonical ? $canonical : (string) get_post_meta( $post->ID, $link, true );
		}
		if ( defined( 'AIOSEO_VERSION' ) ) {
			$row = $this->aioseo( $post->ID );
			if ( $row ) {
				$noindex   = $noindex || ( ! (int) $row->robots_default && (int) $row->robots_noindex );
				$canonical = $canonical ? $canonical : (string) $row->canonical_url;
			}
		}
		return array( $noindex, preg_match( '#^https?://#i', $canonical ) ? $canonical : '' );
	}

	/**
	 * Whether a plugin hides a post type as a whole.
	 *
	 * @param string $constant Of META.
	 * @param string $type     Post type.
	 * @return bool
	 */
	private function is_type_hidden( $constant, $type ) {
		switch ( $constant ) {
			case 'WPSEO_VERSION':
				$titles = (array) get_option( 'wpseo_titles', array() );
				return ! empty( $titles[ "noindex-$type" ] );
			case 'RANK_MATH_VERSION':
				$titles = (array) get_option( 'rank-math-options-titles', array() );
				return 'on' === ( $titles[ "pt_{$type}_custom_robots" ] ?? '' )
					&& in_array( 'noindex', (array) ( $titles[ "pt_{$type}_robots" ] ?? array() ), true );
			default:
				$titles = (array) get_option( 'seopress_titles_option_name', array() );
				return ! empty( $titles['seopress_titles_single_titles'][ $type ]['noindex'] );
		}
	}

	/**
	 * The row of All in One SEO, which keeps it in a table of its own.
	 *
	 * @param int $id Post ID.
	 * @return object|null
	 */
	private function aioseo( $id ) {
		global $wpdb;
		$hidden = $wpdb->suppress_errors( true ); // An installation that is not finished has no table yet.
		// phpcs:ignore WordPress.DB.DirectDatabaseQuery -- Another plugin's table; read once for each change.
		$row = $wpdb->get_row( $wpdb->prepare( "SELECT robots_default, robots_noindex, canonical_url FROM {$wpdb->prefix}aioseo_posts WHERE post_id = %d", $id ) );
		$wpdb->suppress_errors( $hidden );
		return $row;
	}
}
