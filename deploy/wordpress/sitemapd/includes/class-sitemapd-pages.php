<?php
/**
 * What WordPress says about its public pages.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * Describes an object ("post:5", "term:3", "user:1", "type:book") as WordPress has it now.
 */
class Sitemapd_Pages {

	const MOST_IMAGES = 1000;
	const MOST_TITLE  = 500;

	/**
	 * Post meta that changes without a change of the page.
	 */
	const VOLATILE = '/^(_edit_|_wp_old_|_wp_trash_|_wp_desired_post_slug$|_pingme$|_encloseme$)/';

	/**
	 * The settings.
	 *
	 * @var Sitemapd_Options
	 */
	private $options;

	/**
	 * What SEO plugins say.
	 *
	 * @var Sitemapd_Seo
	 */
	private $seo;

	/**
	 * What translation plugins say.
	 *
	 * @var Sitemapd_Languages
	 */
	private $languages;

	/**
	 * Use these parts.
	 *
	 * @param Sitemapd_Options   $options   The settings.
	 * @param Sitemapd_Seo       $seo       What SEO plugins say.
	 * @param Sitemapd_Languages $languages What translation plugins say.
	 */
	public function __construct( Sitemapd_Options $options, Sitemapd_Seo $seo, Sitemapd_Languages $languages ) {
		$this->options   = $options;
		$this->seo       = $seo;
		$this->languages = $languages;
	}

	/**
	 * The page of an object.
	 *
	 * @param string $name For example "post:5".
	 * @return array|null loc, state and content (digests), lastmod, event; null if it is not public.
	 */
	public function describe( $name ) {
		if ( ! get_option( 'blog_public' ) || Sitemapd_Network::is_closed() ) {
			return null;
		}
		list( $kind, $id ) = explode( ':', $name, 2 );

		$post  = 'post' === $kind ? get_post( (int) $id ) : null;
		$event = null;
		if ( $post && $this->is_public( $post ) ) {
			$event = $this->post( $post );
		} elseif ( 'post' !== $kind ) {
			$loc   = $this->archive( $kind, $id );
			$event = $loc ? array( 'loc' => $loc ) : null;
		}
		if ( null === $event ) {
			return null;
		}
		/**
		 * Filters the event that tells sitemapd about a public page.
		 *
		 * @param array|null $event Members of the event; null if the page shall not be listed.
		 * @param string     $name  The object, for example "post:5".
		 */
		$event = apply_filters( 'sitemapd_event', $event, $name );
		if ( ! is_array( $event ) || ! $this->is_ours( $event['loc'] ?? '' ) ) {
			return null;
		}
		$event = array(
			'type' => 'upsert',
			'id'   => $name,
		) + $event;
		$state = array_diff_key( $event, array( 'lastmod' => 0 ) );
		return array(
			'loc'     => $event['loc'],
			'state'   => md5( (string) wp_json_encode( $state ) ),
			'content' => $post ? $this->content( $post ) : '',
			'lastmod' => $event['lastmod'] ?? '',
			'event'   => $event,
		);
	}

	/**
	 * Whether everybody can read a post at an address of its own.
	 *
	 * @param WP_Post $post The post.
	 * @return bool
	 */
	public function is_public( WP_Post $post ) {
		return in_array( $post->post_type, $this->types(), true )
			&& '' === $post->post_password
			&& is_post_publicly_viewable( $post );
	}

	/**
	 * Post types whose pages are listed.
	 *
	 * @return string[]
	 */
	public function types() {
		$types = array_filter( get_post_types( array( 'public' => true ) ), 'is_post_type_viewable' );
		if ( ! $this->options->get( 'attachments' ) || '0' === (string) get_option( 'wp_attachment_pages_enabled', '1' ) ) {
			unset( $types['attachment'] );
		}
		/**
		 * Filters the post types whose pages are listed.
		 *
		 * @param string[] $types Names of post types.
		 */
		return array_values( (array) apply_filters( 'sitemapd_post_types', $types ) );
	}

	/**
	 * Taxonomies whose terms are listed.
	 *
	 * @return string[]
	 */
	public function taxonomies() {
		if ( ! $this->options->get( 'terms' ) ) {
			return array();
		}
		$taxonomies = array_filter( get_taxonomies( array( 'public' => true ) ), 'is_taxonomy_viewable' );
		/**
		 * Filters the taxonomies whose terms are listed.
		 *
		 * @param string[] $taxonomies Names of taxonomies.
		 */
		return array_values( (array) apply_filters( 'sitemapd_taxonomies', $taxonomies ) );
	}

	/**
	 * Post types that make an author's page worth listing, as WordPress's own sitemap has it.
	 *
	 * @return string[]
	 */
	public function authored_types() {
		return array_values( array_diff( get_post_types( array( 'public' => true ) ), array( 'attachment', 'page' ) ) );
	}

	/**
	 * The event of a public post, without type and id.
	 *
	 * @param WP_Post $post The post.
	 * @return array
	 */
	private function post( WP_Post $post ) {
		list( $noindex, $canonical ) = $this->seo->of( $post );

		$sections = (array) $this->options->get( 'sections' );
		$images   = array();
		foreach ( $this->images( $post ) as $url ) {
			$images[] = array( 'loc' => $url );
		}
		$event = array(
			'loc'       => (string) get_permalink( $post ),
			'section'   => $sections[ $post->post_type ] ?? '',
			'lastmod'   => $this->lastmod( $post ),
			'published' => self::moment( $post->post_date_gmt ),
			'title'     => mb_substr( trim( html_entity_decode( wp_strip_all_tags( $post->post_title, true ), ENT_QUOTES, 'UTF-8' ) ), 0, self::MOST_TITLE ),
			'images'    => $images,
			'noindex'   => $noindex,
			'canonical' => $canonical,
		);
		return array_filter( $event ) + $this->languages->of( $post );
	}

	/**
	 * The address of an archive, if it has something to show.
	 *
	 * @param string $kind term, user or type.
	 * @param string $id   Its ID or name.
	 * @return string Empty if it is not listed.
	 */
	private function archive( $kind, $id ) {
		if ( 'term' === $kind ) {
			$term = get_term( (int) $id );
			if ( ! $term instanceof WP_Term || $term->count < 1 || ! in_array( $term->taxonomy, $this->taxonomies(), true ) ) {
				return '';
			}
			$link = get_term_link( $term );
			return is_string( $link ) ? $link : '';
		}
		if ( 'user' === $kind ) {
			$user = $this->options->get( 'authors' ) ? get_userdata( (int) $id ) : false;
			return $user && count_user_posts( $user->ID, $this->authored_types(), true ) > 0 ? get_author_posts_url( $user->ID ) : '';
		}
		if ( 'post' === $id ) {
			// With a static front page the page itself is listed, and so is the page for posts.
			$static = 'page' === get_option( 'show_on_front' ) && get_option( 'page_on_front' );
			return $static ? '' : home_url( '/' );
		}
		if ( ! in_array( $id, $this->types(), true ) || empty( wp_count_posts( $id )->publish ) ) {
			return '';
		}
		return (string) get_post_type_archive_link( $id );
	}

	/**
	 * Addresses of the featured image and of the images that belong to a post.
	 *
	 * @param WP_Post $post The post.
	 * @return string[]
	 */
	private function images( WP_Post $post ) {
		global $wpdb;
		// One query where get_attached_media() takes several: this is asked for every page.
		// phpcs:ignore WordPress.DB.DirectDatabaseQuery -- Must be fresh.
		$ids  = $wpdb->get_col( $wpdb->prepare( "SELECT ID FROM {$wpdb->posts} WHERE post_parent = %d AND post_type = 'attachment' AND post_mime_type LIKE %s ORDER BY menu_order, ID LIMIT %d", $post->ID, 'image/%', self::MOST_IMAGES ) );
		$ids  = array_map( 'intval', $ids );
		$urls = array();
		if ( 'attachment' === $post->post_type && wp_attachment_is_image( $post ) ) {
			array_unshift( $ids, $post->ID );
		}
		array_unshift( $ids, (int) get_post_thumbnail_id( $post ) );
		foreach ( array_slice( array_unique( array_filter( $ids ) ), 0, self::MOST_IMAGES ) as $id ) {
			$url = wp_get_attachment_url( $id );
			if ( $url && preg_match( '#^https?://#i', $url ) ) {
				$urls[] = $url;
			}
		}
		return array_values( array_unique( $urls ) );
	}

	/**
	 * When a post last changed for its readers: a scheduled post is older than its publication, for
	 * WordPress does not touch its date of modification when it appears. Never in the future.
	 *
	 * @param WP_Post $post The post.
	 * @return string Empty if unknown.
	 */
	private function lastmod( WP_Post $post ) {
		return self::moment( min( max( $post->post_modified_gmt, $post->post_date_gmt ), gmdate( 'Y-m-d H:i:s' ) ) );
	}

	/**
	 * A digest of what readers see of a post: a save that changes none of it is no news.
	 *
	 * @param WP_Post $post The post.
	 * @return string
	 */
	private function content( WP_Post $post ) {
		$meta = array();
		foreach ( (array) get_post_meta( $post->ID ) as $key => $values ) {
			if ( ! preg_match( self::VOLATILE, $key ) ) {
				$meta[ $key ] = $values;
			}
		}
		ksort( $meta );
		$terms = array();
		foreach ( get_object_taxonomies( $post ) as $taxonomy ) {
			$in                 = get_the_terms( $post, $taxonomy );
			$terms[ $taxonomy ] = is_array( $in ) ? wp_list_pluck( $in, 'term_id' ) : array();
			sort( $terms[ $taxonomy ] );
		}
		$seen  = array( $post->post_title, $post->post_content, $post->post_excerpt, $post->post_author, $terms, $meta );
		return md5( maybe_serialize( $seen ) );
	}

	/**
	 * Whether an address is of this site: a plugin may let a post lead elsewhere.
	 *
	 * @param string $url Absolute.
	 * @return bool
	 */
	private function is_ours( $url ) {
		return wp_parse_url( $url, PHP_URL_HOST ) === wp_parse_url( home_url(), PHP_URL_HOST );
	}

	/**
	 * A time of the database, in UTC, as W3C writes it.
	 *
	 * @param string $gmt As in post_date_gmt.
	 * @return string Empty if there is none.
	 */
	private static function moment( $gmt ) {
		return $gmt > '0001' ? str_replace( ' ', 'T', $gmt ) . 'Z' : '';
	}
}
