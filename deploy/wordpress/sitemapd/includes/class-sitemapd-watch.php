<?php
/**
 * Notices what changes.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * Collects, during one request, the objects whose pages may have changed. WordPress fires up to a
 * dozen hooks for one save; each object is noted once, and looked at when the request is over.
 */
class Sitemapd_Watch {

	const LOOK  = 1; // More changed than can be named.
	const MOVED = 2; // The rules by which addresses are built changed, or who may read them.

	/**
	 * What is public.
	 *
	 * @var Sitemapd_Pages
	 */
	private $pages;

	/**
	 * Keys of post meta that matter.
	 *
	 * @var string[]
	 */
	private $keys;

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
	 * Use these parts.
	 *
	 * @param Sitemapd_Pages $pages What is public.
	 * @param Sitemapd_Seo   $seo   What SEO plugins say.
	 */
	public function __construct( Sitemapd_Pages $pages, Sitemapd_Seo $seo ) {
		$this->pages = $pages;
		$this->keys  = array_merge( array( '_thumbnail_id' ), $seo->keys() );
	}

	/**
	 * Listen.
	 */
	public function register() {
		// Before: the address is still right. A slug is mangled on the way to the trash.
		add_action( 'pre_post_update', array( $this, 'before' ) );
		add_action( 'wp_trash_post', array( $this, 'before' ) );
		add_action( 'before_delete_post', array( $this, 'before_delete' ) );

		// A permanent delete fires neither a transition nor a save; an import suspends the cache.
		add_action( 'clean_post_cache', array( $this, 'post' ), 10, 2 );
		add_action( 'deleted_post', array( $this, 'post' ), 10, 2 );
		add_action( 'transition_post_status', array( $this, 'transition' ), 10, 3 );
		add_action( 'wp_after_insert_post', array( $this, 'post' ), 10, 2 );
		add_action( 'post_updated', array( $this, 'updated' ), 10, 3 );
		foreach ( array( 'added', 'updated', 'deleted' ) as $done ) {
			add_action( "{$done}_post_meta", array( $this, 'meta' ), 10, 3 );
		}
		foreach ( array( 'add_attachment', 'edit_attachment', 'delete_attachment' ) as $hook ) {
			add_action( $hook, array( $this, 'attachment' ) );
		}
		add_action( 'wp_media_attach_action', array( $this, 'attach' ), 10, 3 );
		add_action( 'set_object_terms', array( $this, 'post_terms' ), 10, 4 );

		add_action( 'created_term', array( $this, 'term' ), 10, 3 );
		add_action( 'edited_term', array( $this, 'term' ), 10, 3 );
		add_action( 'edited_term_taxonomy', array( $this, 'term_count' ), 10, 2 );
		add_action( 'delete_term', array( $this, 'term_deleted' ), 10, 5 );

		add_action( 'profile_update', array( $this, 'user' ) );
		add_action( 'deleted_user', array( $this, 'user_deleted' ), 10, 2 );
		add_action( 'remove_user_from_blog', array( $this, 'user_deleted' ) );

		foreach ( array( 'show_on_front', 'page_on_front', 'page_for_posts' ) as $option ) {
			add_action( "update_option_$option", array( $this, 'front' ), 10, 2 );
		}
		foreach ( array( 'permalink_structure', 'category_base', 'tag_base', 'home', 'blog_public' ) as $option ) {
			add_action( "update_option_$option", array( $this, 'moved' ) );
		}
		add_action( 'activated_plugin', array( $this, 'everything' ) );
		add_action( 'deactivated_plugin', array( $this, 'everything' ) );
		add_action( 'switch_theme', array( $this, 'everything' ) );
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

	/**
	 * A post is about to change.
	 *
	 * @param int $id Post ID.
	 */
	public function before( $id ) {
		$post = get_post( $id );
		if ( $post && $this->pages->is_public( $post ) ) {
			$this->note( "post:$id", (string) get_permalink( $post ) );
			$this->note( "type:$post->post_type" );
		}
	}

	/**
	 * A post is about to be deleted for good: its children move up.
	 *
	 * @param int $id Post ID.
	 */
	public function before_delete( $id ) {
		$this->before( $id );
		$post = get_post( $id );
		if ( $post ) {
			$this->family( $post );
			$this->note( "user:$post->post_author" ); // There will be no transition.
		}
	}

	/**
	 * A post changed.
	 *
	 * @param int          $id   Post ID.
	 * @param WP_Post|null $post The post, where the hook gives it.
	 */
	public function post( $id, $post = null ) {
		$types = array_filter( array( get_post_type( $id ), $post instanceof WP_Post ? $post->post_type : '' ) );
		foreach ( $types as $name ) {
			$type = get_post_type_object( $name );
			if ( $type && $type->_builtin && ! is_post_type_viewable( $type ) ) {
				return; // Revisions, menus, templates.
			}
			if ( $type && $type->has_archive ) {
				$this->note( "type:$name" );
			}
		}
		$this->note( "post:$id" );
	}

	/**
	 * A post has another status, or the same: an author or an archive may have its first page.
	 *
	 * @param string  $new_status New status.
	 * @param string  $old_status Old status.
	 * @param WP_Post $post       The post.
	 */
	public function transition( $new_status, $old_status, $post ) {
		$this->post( $post->ID, $post );
		if ( $new_status !== $old_status && in_array( 'publish', array( $new_status, $old_status ), true ) ) {
			$this->note( "user:$post->post_author" );
		}
	}

	/**
	 * A post was updated.
	 *
	 * @param int     $id     Post ID.
	 * @param WP_Post $after  As it is.
	 * @param WP_Post $before As it was.
	 */
	public function updated( $id, $after, $before ) {
		if ( $after->post_name !== $before->post_name || $after->post_parent !== $before->post_parent ) {
			$this->family( $after );
		}
		if ( $after->post_author !== $before->post_author ) {
			$this->note( "user:$before->post_author" );
			$this->note( "user:$after->post_author" );
		}
	}

	/**
	 * Post meta changed.
	 *
	 * @param int|int[] $meta_id Unused.
	 * @param int       $id      Post ID.
	 * @param string    $key     Key.
	 */
	public function meta( $meta_id, $id, $key ) {
		if ( in_array( $key, $this->keys, true ) ) {
			$this->post( $id );
		}
	}

	/**
	 * An attachment changed: it may be an image of the post it belongs to.
	 *
	 * @param int $id Attachment ID.
	 */
	public function attachment( $id ) {
		$this->post( $id );
		$parent = wp_get_post_parent_id( $id );
		if ( $parent ) {
			$this->post( $parent );
		}
	}

	/**
	 * An attachment was attached to a post, or detached from it.
	 *
	 * @param string $action Unused.
	 * @param int    $id     Attachment ID.
	 * @param int    $parent Post ID.
	 */
	public function attach( $action, $id, $parent ) {
		$this->post( $parent );
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
			$this->post( $id );
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
			$this->note( "term:$term" );
		}
		if ( $this->is_in_addresses( $taxonomy ) ) {
			$posts = get_objects_in_term( $terms, $taxonomy );
			array_map( array( $this, 'post' ), is_array( $posts ) ? $posts : array() );
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
			$this->note( "term:$term->term_id" );
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
		$this->note( "term:$id" );
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
			array_map( array( $this, 'post' ), (array) $posts );
		}
	}

	/**
	 * A user changed: the nice name is part of addresses.
	 *
	 * @param int $id User ID.
	 */
	public function user( $id ) {
		$this->note( "user:$id" );
		if ( str_contains( (string) get_option( 'permalink_structure' ), '%author%' ) ) {
			$this->everything();
		}
	}

	/**
	 * A user went: the posts go with him, or to another one without a hook for each.
	 *
	 * @param int      $id   User ID.
	 * @param int|null $heir User ID, null for none.
	 */
	public function user_deleted( $id, $heir = null ) {
		$this->note( "user:$id" );
		if ( $heir ) {
			$this->user( (int) $heir );
		}
	}

	/**
	 * Another page is the front page, or shows the posts.
	 *
	 * @param mixed $before Former value.
	 * @param mixed $after  New value.
	 */
	public function front( $before, $after ) {
		$this->note( 'type:post' );
		$pages = array( $before, $after, get_option( 'page_on_front' ), get_option( 'page_for_posts' ) );
		foreach ( array_filter( array_map( 'intval', $pages ) ) as $id ) {
			$this->post( $id );
			$page = get_post( $id );
			if ( $page ) {
				$this->family( $page );
			}
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
	 * Note an object.
	 *
	 * @param string $name For example "term:3".
	 * @param string $loc  Its public URL before the change, if it is known; the first one stands.
	 */
	private function note( $name, $loc = '' ) {
		$noted = &$this->noted[ get_current_blog_id() ];
		if ( empty( $noted[ $name ] ) ) {
			$noted[ $name ] = $loc;
		}
	}

	/**
	 * Note everything below a post: the addresses of children begin with those of their parents.
	 *
	 * @param WP_Post $post The post.
	 */
	private function family( WP_Post $post ) {
		global $wpdb;
		if ( ! is_post_type_hierarchical( $post->post_type ) ) {
			return;
		}
		$level = array( $post->ID );
		$seen  = array();
		while ( $level ) {
			$seen += array_flip( $level );
			$list  = implode( ',', array_map( 'intval', $level ) );
			// phpcs:ignore WordPress.DB.PreparedSQL, WordPress.DB.DirectDatabaseQuery -- Integers only; get_pages() would leave drafts and what is below them out.
			$below = $wpdb->get_col( $wpdb->prepare( "SELECT ID FROM {$wpdb->posts} WHERE post_type = %s AND post_parent IN ($list)", $post->post_type ) );
			$level = array_diff( array_map( 'intval', $below ), array_keys( $seen ) );
			foreach ( $level as $id ) {
				$this->note( "post:$id" );
			}
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
