<?php
/**
 * Notices what changes posts.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * Notes posts of every type when they change, and what changes with them.
 */
class Sitemapd_Watch_Posts {

	/**
	 * What was noticed.
	 *
	 * @var Sitemapd_Notes
	 */
	private $notes;

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
	 * Site of the network => post ID => true: posts whose attachments are noted.
	 *
	 * @var array[]
	 */
	private $searched = array();

	/**
	 * Use these parts.
	 *
	 * @param Sitemapd_Notes $notes What was noticed.
	 * @param Sitemapd_Pages $pages What is public.
	 * @param Sitemapd_Seo   $seo   What SEO plugins say.
	 */
	public function __construct( Sitemapd_Notes $notes, Sitemapd_Pages $pages, Sitemapd_Seo $seo ) {
		$this->notes = $notes;
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
		add_action( 'delete_attachment', array( $this, 'featured' ) );
		add_action( 'wp_media_attach_action', array( $this, 'attach' ), 10, 3 );
		foreach ( array( 'show_on_front', 'page_on_front', 'page_for_posts' ) as $option ) {
			add_action( "update_option_$option", array( $this, 'front' ), 10, 2 );
		}
	}

	/**
	 * A post is about to change.
	 *
	 * @param int $id Post ID.
	 */
	public function before( $id ) {
		$post = get_post( $id );
		if ( $post && $this->pages->is_public( $post ) ) {
			$this->notes->note( "post:$id", (string) get_permalink( $post ) );
			$this->notes->note( "type:$post->post_type" );
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
			$this->notes->note( "user:$post->post_author" ); // There will be no transition.
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
				$this->notes->note( "type:$name" );
			}
		}
		$this->notes->note( "post:$id" );
		// The address of an attachment begins with that of its post, and only readers of the post
		// can read it.
		$site = get_current_blog_id();
		if ( empty( $this->searched[ $site ][ $id ] ) ) {
			$this->searched[ $site ][ $id ] = true;
			foreach ( $this->below( array( $id ), array() ) as $attachment ) {
				$this->notes->note( "post:$attachment" );
			}
		}
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
			$this->notes->note( "user:$post->post_author" );
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
			$this->notes->note( "user:$before->post_author" );
			$this->notes->note( "user:$after->post_author" );
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
		// Object 0 says that the meta of every post was deleted; get_post( 0 ) is the global post.
		if ( $id && in_array( $key, $this->keys, true ) ) {
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
	 * An attachment is about to be deleted: afterwards nothing says which posts had it as their
	 * featured image.
	 *
	 * @param int $id Attachment ID.
	 */
	public function featured( $id ) {
		global $wpdb;
		// phpcs:ignore WordPress.DB.DirectDatabaseQuery -- Must be fresh.
		$posts = $wpdb->get_col( $wpdb->prepare( "SELECT post_id FROM {$wpdb->postmeta} WHERE meta_key = '_thumbnail_id' AND meta_value = %s", $id ) );
		array_map( array( $this, 'post' ), array_map( 'intval', $posts ) );
	}

	/**
	 * An attachment was attached to a post, or detached from it.
	 *
	 * @param string $action Unused.
	 * @param int    $id     Attachment ID.
	 * @param int    $parent Post ID.
	 */
	public function attach( $action, $id, $parent ) {
		$this->post( $id );
		$this->post( $parent );
	}

	/**
	 * Another page is the front page, or shows the posts.
	 *
	 * @param mixed $before Former value.
	 * @param mixed $after  New value.
	 */
	public function front( $before, $after ) {
		$this->notes->note( 'type:post' );
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
	 * Note everything below a post: the addresses of children begin with those of their parents.
	 *
	 * @param WP_Post $post The post.
	 */
	private function family( WP_Post $post ) {
		$types = is_post_type_hierarchical( $post->post_type ) ? array( $post->post_type ) : array();
		$level = array( $post->ID );
		$seen  = array();
		while ( $level ) {
			$seen += array_flip( $level );
			$level = array_diff( $this->below( $level, $types ), array_keys( $seen ) );
			foreach ( $level as $id ) {
				$this->notes->note( "post:$id" );
			}
		}
	}

	/**
	 * The children of posts: those of the given types, and attachments if their pages are listed.
	 *
	 * @param int[]    $ids   Post IDs.
	 * @param string[] $types Post types.
	 * @return int[]
	 */
	private function below( array $ids, array $types ) {
		global $wpdb;
		$types = array_merge( $types, array_intersect( array( 'attachment' ), $this->pages->types() ) );
		if ( ! $types ) {
			return array();
		}
		$list  = implode( ',', array_map( 'intval', $ids ) );
		$names = implode( ', ', array_fill( 0, count( $types ), '%s' ) );
		// phpcs:ignore WordPress.DB.PreparedSQL, WordPress.DB.PreparedSQLPlaceholders, WordPress.DB.DirectDatabaseQuery -- Integers and placeholders only; get_pages() would leave drafts and what is below them out.
		$below = $wpdb->get_col( $wpdb->prepare( "SELECT ID FROM {$wpdb->posts} WHERE post_type IN ($names) AND post_parent IN ($list)", $types ) );
		return array_map( 'intval', $below );
	}
}
