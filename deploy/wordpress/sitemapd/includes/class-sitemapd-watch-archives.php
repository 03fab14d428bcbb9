<?php
/**
 * Notices what changes archives.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * Notes terms, authors and the rules of addresses when they change, and the posts they concern.
 */
class Sitemapd_Watch_Archives {

	/**
	 * What was noticed.
	 *
	 * @var Sitemapd_Notes
	 */
	private $notes;

	/**
	 * Notices posts.
	 *
	 * @var Sitemapd_Watch_Posts
	 */
	private $posts;

	/**
	 * Use these parts.
	 *
	 * @param Sitemapd_Notes       $notes What was noticed.
	 * @param Sitemapd_Watch_Posts $posts Notices posts.
	 */
	public function __construct( Sitemapd_Notes $notes, Sitemapd_Watch_Posts $posts ) {
		$this->notes = $notes;
		$this->posts = $posts;
	}

	/**
	 * Listen.
	 */
	public function register() {
		add_action( 'set_object_terms', array( $this, 'post_terms' ), 10, 4 );

		add_action( 'created_term', array( $this, 'term' ), 10, 3 );
		add_action( 'edited_term', array( $this, 'term' ), 10, 3 );
		add_action( 'edited_term_taxonomy', array( $this, 'term_count' ), 10, 2 );
		add_action( 'delete_term', array( $this, 'term_deleted' ), 10, 5 );

		add_action( 'profile_update', array( $this, 'user' ) );
		add_action( 'deleted_user', array( $this, 'user_deleted' ), 10, 2 );
		add_action( 'remove_user_from_blog', array( $this, 'user_deleted' ) );

		foreach ( array( 'permalink_structure', 'category_base', 'tag_base', 'home', 'blog_public' ) as $option ) {
			add_action( "update_option_$option", array( $this->notes, 'moved' ) );
		}
		add_action( 'activated_plugin', array( $this, 'plugin' ) );
		add_action( 'deactivated_plugin', array( $this, 'plugin' ) );
		add_action( 'switch_theme', array( $this->notes, 'everything' ) );
		add_action( 'update_option_wp_attachment_pages_enabled', array( $this->notes, 'everything' ) );
	}

	/**
	 * A plugin came or went: with it, maybe, post types. We ourselves say it in other places.
	 *
	 * @param string $name Of the plugin.
	 */
	public function plugin( $name ) {
		if ( plugin_basename( SITEMAPD_FILE ) !== $name ) {
			$this->notes->everything();
		}
	}

	/**
	 * A post has other terms: they may be part of its address.
	 *
	 * @param int    $id       Object ID, of a post or of something else.
	 * @param array  $terms    Unused.
	 * @param array  $tt_ids   Unused.
	 * @param string $taxonomy Taxonomy.
	 */
	public function post_terms( $id, $terms, $tt_ids, $taxonomy ) {
		if ( 'post_translations' === $taxonomy || 'language' === $taxonomy || $this->is_in_addresses( $taxonomy ) ) {
			$this->posts->post( $id );
		}
	}

	/**
	 * A term was made or edited: with it, those below it and the posts whose addresses name it.
	 *
	 * @param int    $id       Term ID.
	 * @param int    $tt_id    Unused.
	 * @param string $taxonomy Taxonomy.
	 */
	public function term( $id, $tt_id, $taxonomy ) {
		if ( ! is_taxonomy_viewable( $taxonomy ) ) {
			return;
		}
		$terms = array( $id );
		if ( is_taxonomy_hierarchical( $taxonomy ) ) {
			$terms = array_merge( $terms, (array) get_term_children( $id, $taxonomy ) );
		}
		foreach ( $terms as $term ) {
			$this->notes->note( "term:$term" );
		}
		if ( $this->is_in_addresses( $taxonomy ) ) {
			$posts = get_objects_in_term( $terms, $taxonomy );
			array_map( array( $this->posts, 'post' ), is_array( $posts ) ? $posts : array() );
		}
	}

	/**
	 * A term has another number of posts: with the first it gets a page, with the last it loses it.
	 *
	 * @param int    $tt_id    Term taxonomy ID.
	 * @param string $taxonomy Taxonomy.
	 */
	public function term_count( $tt_id, $taxonomy ) {
		$term = is_taxonomy_viewable( $taxonomy ) ? get_term_by( 'term_taxonomy_id', $tt_id ) : false;
		if ( $term ) {
			$this->notes->note( "term:$term->term_id" );
		}
	}

	/**
	 * A term was deleted.
	 *
	 * @param int     $id       Term ID.
	 * @param int     $tt_id    Unused.
	 * @param string  $taxonomy Taxonomy.
	 * @param WP_Term $term     As it was.
	 * @param int[]   $posts    Posts that had it.
	 */
	public function term_deleted( $id, $tt_id, $taxonomy, $term, $posts ) {
		$this->notes->note( "term:$id" );
		foreach ( get_terms(
			array(
				'taxonomy'   => $taxonomy,
				'parent'     => $term->parent,
				'hide_empty' => false,
				'fields'     => 'ids',
			)
		) as $moved_up ) {
			$this->term( $moved_up, 0, $taxonomy );
		}
		if ( $this->is_in_addresses( $taxonomy ) ) {
			array_map( array( $this->posts, 'post' ), (array) $posts );
		}
	}

	/**
	 * A user changed: the nice name is part of addresses.
	 *
	 * @param int $id User ID.
	 */
	public function user( $id ) {
		$this->notes->note( "user:$id" );
		if ( str_contains( (string) get_option( 'permalink_structure' ), '%author%' ) ) {
			$this->notes->everything();
		}
	}

	/**
	 * A user went: the posts go with him, or to another one without a hook for each.
	 *
	 * @param int      $id   User ID.
	 * @param int|null $heir User ID, null for none.
	 */
	public function user_deleted( $id, $heir = null ) {
		$this->notes->note( "user:$id" );
		if ( $heir ) {
			$this->user( (int) $heir );
		}
	}

	/**
	 * Whether addresses of posts name a taxonomy's terms.
	 *
	 * @param string $taxonomy Taxonomy.
	 * @return bool
	 */
	private function is_in_addresses( $taxonomy ) {
		global $wp_rewrite;
		$structures = array( (string) get_option( 'permalink_structure' ) );
		foreach ( (array) $wp_rewrite->extra_permastructs as $name => $permastruct ) {
			if ( $name !== $taxonomy ) {
				$structures[] = is_array( $permastruct ) ? (string) ( $permastruct['struct'] ?? '' ) : (string) $permastruct;
			}
		}
		return str_contains( implode( ' ', $structures ), "%$taxonomy%" );
	}
}
