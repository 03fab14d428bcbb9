<?php
/**
 * Sites of a network that close, open, move or are deleted.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * Takes the pages of closed sites out. WordPress runs no wp-cron on a closed site, so the request
 * that closes it sends what it can, and the cron of the network's main site sends the rest.
 */
class Sitemapd_Network {

	const LEFT   = 'sitemapd_left_'; // Network option with the ID of a closed site that still has listed pages.
	const MOST_S = 5.0;

	/**
	 * The plugin.
	 *
	 * @var Sitemapd_Plugin
	 */
	private $plugin;

	/**
	 * What was noticed.
	 *
	 * @var Sitemapd_Notes
	 */
	private $notes;

	/**
	 * Bodies of sites that are gone.
	 *
	 * @var Sitemapd_Outbox
	 */
	private $outbox;

	/**
	 * Whether this request closed or deleted a site.
	 *
	 * @var bool
	 */
	private $concerned = false;

	/**
	 * Work for the plugin.
	 *
	 * @param Sitemapd_Plugin $plugin The plugin.
	 * @param Sitemapd_Notes  $notes  What was noticed.
	 */
	public function __construct( Sitemapd_Plugin $plugin, Sitemapd_Notes $notes ) {
		$this->plugin = $plugin;
		$this->notes  = $notes;
		$this->outbox = new Sitemapd_Outbox( $plugin->deliveries );
	}

	/**
	 * Listen.
	 */
	public function register() {
		if ( ! is_multisite() ) {
			return;
		}
		add_action( 'wp_update_site', array( $this, 'updated' ), 10, 2 );
		add_action( 'wp_uninitialize_site', array( $this, 'deleted' ), 1 ); // Core drops the tables at 10.
		add_filter( 'wpmu_drop_tables', array( $this, 'tables' ), 10, 2 );
		foreach ( array( 'sitemapd_flush', 'sitemapd_hourly' ) as $hook ) {
			add_action( $hook, array( $this, 'work' ) );
		}
	}

	/**
	 * Whether nobody can read a site.
	 *
	 * @param WP_Site|null $site The site; the current one if it is not given.
	 * @return bool
	 */
	public static function is_closed( $site = null ) {
		if ( ! is_multisite() ) {
			return false;
		}
		$site = $site ?? get_site();
		return ! $site || (int) $site->archived || (int) $site->spam || (int) $site->deleted;
	}

	/**
	 * A site was updated.
	 *
	 * @param WP_Site $after  As it is.
	 * @param WP_Site $before As it was.
	 */
	public function updated( $after, $before ) {
		$closed = self::is_closed( $after );
		$turned = self::is_closed( $before ) !== $closed;
		$moved  = $after->domain !== $before->domain || $after->path !== $before->path;
		if ( ! $turned && ! $moved ) {
			return;
		}
		switch_to_blog( (int) $after->id );
		if ( $closed && $turned && $this->plugin->options->is_complete() ) {
			// At once: should this request die, the main site's cron does all of it.
			update_network_option( (int) $after->network_id, self::LEFT . $after->id, (int) $after->id );
			$this->concerned = true;
		} elseif ( ! $closed ) {
			delete_network_option( (int) $after->network_id, self::LEFT . $after->id );
			$moved ? $this->notes->moved() : $this->notes->everything();
		}
		restore_current_blog();
	}

	/**
	 * A site is about to be deleted: keep what is to be told of it while there is a table to read.
	 *
	 * @param WP_Site $site The site.
	 */
	public function deleted( $site ) {
		switch_to_blog( (int) $site->id );
		if ( $this->plugin->options->is_complete() && get_option( 'sitemapd_schema' ) ) {
			// Never given back: no other request tells of pages that are about to go.
			$this->plugin->ledger->lock( Sitemapd_Sender::LOCK_S, Sitemapd_Sender::LOCK_WAIT_S );
			$this->keep( (int) $site->network_id, untrailingslashit( $site->domain . $site->path ) );
			$this->concerned = true;
		}
		delete_network_option( (int) $site->network_id, self::LEFT . $site->id );
		restore_current_blog();
	}

	/**
	 * Our table goes with the others of its site.
	 *
	 * @param string[] $tables So far.
	 * @param int      $site   Site ID.
	 * @return string[]
	 */
	public function tables( $tables, $site ) {
		global $wpdb;
		$tables[] = $wpdb->get_blog_prefix( $site ) . 'sitemapd_pages';
		return $tables;
	}

	/**
	 * Whether finish() has something to do.
	 *
	 * @return bool
	 */
	public function is_concerned() {
		return $this->concerned;
	}

	/**
	 * Whether something of closed and deleted sites is left over for this site's cron.
	 *
	 * @return bool
	 */
	public function has_left() {
		return is_multisite() && is_main_site() && ( Sitemapd_Outbox::names( Sitemapd_Outbox::PREFIX ) || Sitemapd_Outbox::names( self::LEFT ) );
	}

	/**
	 * The request that closed or deleted sites is over: send what can be sent in a short time.
	 */
	public function finish() {
		if ( $this->concerned ) {
			$this->concerned = false;
			$this->proceed( self::MOST_S, Sitemapd_Sender::TIMEOUT_S );
		}
	}

	/**
	 * In wp-cron: go on with what is left over.
	 */
	public function work() {
		$this->proceed( Sitemapd_Plugin::CRON_S, 10.0 );
	}

	/**
	 * Send what is left over of closed and deleted sites; the main site's cron goes on.
	 *
	 * @param float $seconds For all of it.
	 * @param float $timeout Seconds for each request.
	 */
	private function proceed( $seconds, $timeout ) {
		$until = microtime( true ) + $seconds;
		$next  = array_filter( array( $this->outbox->send( $until, $timeout ) ) );
		foreach ( Sitemapd_Outbox::names( self::LEFT ) as $name ) {
			$site = get_site( (int) substr( $name, strlen( self::LEFT ) ) );
			$at   = $site && self::is_closed( $site ) ? $this->empty_site( (int) $site->id, $until, $timeout ) : 0;
			if ( $at ) {
				$next[] = $at;
			} else {
				delete_network_option( null, $name );
			}
		}
		if ( $next ) {
			switch_to_blog( get_main_site_id() );
			$this->plugin->sender->schedule( max( time(), min( $next ) ) );
			if ( min( $next ) <= time() ) {
				Sitemapd_Plugin::spawn();
			}
			restore_current_blog();
		}
	}

	/**
	 * Take the pages of a closed site out.
	 *
	 * @param int   $site    Site ID.
	 * @param float $until   No request starts after this time.
	 * @param float $timeout Seconds for each request.
	 * @return int When to go on, 0 if nothing is left.
	 */
	private function empty_site( $site, $until, $timeout ) {
		switch_to_blog( $site );
		$left = 0;
		if ( $this->plugin->options->is_complete() ) {
			$this->plugin->ledger->install();
			$this->plugin->ledger->mark_all();
			$clear = true;
			while ( $clear && $this->plugin->ledger->count_waiting() && microtime( true ) < $until ) {
				$clear = $this->plugin->sender->flush( 1, $timeout );
			}
			$left = $this->plugin->ledger->count_waiting() ? max( time(), $this->plugin->sender->retry_at() ) : 0;
		}
		restore_current_blog();
		return $left;
	}

	/**
	 * Keep the events that take every listed page of the current site out.
	 *
	 * @param int    $network Network ID.
	 * @param string $about   The site's address, for people.
	 */
	private function keep( $network, $about ) {
		$options  = $this->plugin->options;
		$settings = array(
			'address' => $options->get( 'address' ),
			'site'    => $options->get( 'site' ),
		);
		if ( ! $options->is_fixed( 'secret' ) ) {
			$settings['secret'] = $options->get( 'secret' );
		}
		$after = '';
		do {
			$rows    = $this->plugin->ledger->listed( $after, Sitemapd_Outbox::LINES );
			$version = $this->plugin->ledger->versions( max( 1, count( $rows ) ) );
			$lines   = array();
			foreach ( $rows as $row ) {
				$after   = $row->object;
				$lines[] = Sitemapd_Batch::line( Sitemapd_Batch::leaves( $row->object, $row->loc ), $version++ );
			}
			if ( $lines ) {
				$this->outbox->keep( $network, $settings, $about, $lines );
			}
		} while ( count( $rows ) === Sitemapd_Outbox::LINES );
	}
}
