<?php
/**
 * The plugin as a whole.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * Holds the parts together: what is noticed in a request waits in the ledger at its end and is sent.
 */
class Sitemapd_Plugin {

	const CRON_S = 20.0;

	/**
	 * The settings.
	 *
	 * @var Sitemapd_Options
	 */
	public $options;

	/**
	 * What waits.
	 *
	 * @var Sitemapd_Ledger
	 */
	public $ledger;

	/**
	 * HTTP.
	 *
	 * @var Sitemapd_Client
	 */
	public $client;

	/**
	 * The last deliveries.
	 *
	 * @var Sitemapd_Deliveries
	 */
	public $deliveries;

	/**
	 * Sends.
	 *
	 * @var Sitemapd_Sender
	 */
	public $sender;

	/**
	 * Every page.
	 *
	 * @var Sitemapd_Walk
	 */
	public $walk;

	/**
	 * What was noticed.
	 *
	 * @var Sitemapd_Notes
	 */
	private $notes;

	/**
	 * Sites that close or go.
	 *
	 * @var Sitemapd_Network
	 */
	private $network;

	/**
	 * Notices posts.
	 *
	 * @var Sitemapd_Watch_Posts
	 */
	private $posts;

	/**
	 * Whether wp-cron shall start when this request ends.
	 *
	 * @var bool
	 */
	private $hurry = false;

	/**
	 * Make the parts.
	 */
	public function __construct() {
		$seo = new Sitemapd_Seo();

		$this->options    = new Sitemapd_Options();
		$pages            = new Sitemapd_Pages( $this->options, $seo, new Sitemapd_Languages() );
		$this->ledger     = new Sitemapd_Ledger();
		$this->client     = new Sitemapd_Client( $this->options );
		$this->deliveries = new Sitemapd_Deliveries();
		$this->sender     = new Sitemapd_Sender( $this->options, $this->ledger, new Sitemapd_Batch( $this->ledger, $pages ), $this->client, $this->deliveries );
		$this->walk       = new Sitemapd_Walk( $this->ledger, $pages );
		$this->notes      = new Sitemapd_Notes();
		$this->network    = new Sitemapd_Network( $this, $this->notes );
		$this->posts      = new Sitemapd_Watch_Posts( $this->notes, $pages, $seo );
	}

	/**
	 * Listen.
	 */
	public function register() {
		$this->posts->register();
		$this->network->register();
		( new Sitemapd_Watch_Archives( $this->notes, $this->posts ) )->register();
		add_action( 'init', array( $this, 'prepare' ), 1 );
		// The very last: every other plugin has stored what it stores.
		add_action( 'shutdown', array( $this, 'finish' ), PHP_INT_MAX );
		add_action( 'sitemapd_flush', array( $this, 'work' ) );
		add_action( 'sitemapd_hourly', array( $this, 'work' ) );
		add_action( 'sitemapd_daily', array( $this, 'daily' ) );
		add_action( 'update_option_' . Sitemapd_Options::NAME, array( $this, 'configured' ), 10, 2 );
		add_action( 'add_option_' . Sitemapd_Options::NAME, array( $this, 'first_configured' ), 10, 2 );
		$core = new Sitemapd_Core_Sitemap( $this->options );
		add_action( 'plugins_loaded', array( $core, 'register' ) );
		if ( is_admin() ) {
			require_once __DIR__ . '/class-sitemapd-admin.php';
			( new Sitemapd_Admin( $this ) )->register();
		}
		if ( defined( 'WP_CLI' ) && WP_CLI ) {
			require_once __DIR__ . '/class-sitemapd-cli.php';
			WP_CLI::add_command( 'sitemapd', new Sitemapd_Cli( $this ) );
		}
	}

	/**
	 * Tables and schedules of this site; each site of a network makes its own when it is first used.
	 */
	public function prepare() {
		$this->ledger->install();
		if ( ! wp_next_scheduled( 'sitemapd_daily' ) ) {
			wp_schedule_event( time() + DAY_IN_SECONDS, 'daily', 'sitemapd_daily' );
		}
		// WordPress keeps its schedule in one option, and two requests can undo each other's change.
		$lost = ( is_admin() || wp_doing_cron() ) && ! wp_next_scheduled( 'sitemapd_flush' );
		if ( $lost && $this->options->is_complete() && ( $this->walk->progress() || $this->ledger->count_waiting() ) ) {
			$this->sender->schedule( max( time(), $this->sender->retry_at() ) );
		}
		if ( $lost && $this->network->has_left() ) {
			$this->sender->schedule( time() );
		}
		if ( ! wp_next_scheduled( 'sitemapd_hourly' ) ) {
			wp_schedule_event( time() + HOUR_IN_SECONDS, 'hourly', 'sitemapd_hourly' );
		}
	}

	/**
	 * The request is over: let wait what was noticed, and send it.
	 */
	public function finish() {
		$noted = $this->notes->take();
		if ( $noted || $this->hurry || $this->network->is_concerned() ) {
			ignore_user_abort( true );
			if ( function_exists( 'fastcgi_finish_request' ) ) {
				fastcgi_finish_request(); // The editor has the answer; the rest is our time.
			} elseif ( function_exists( 'litespeed_finish_request' ) ) {
				litespeed_finish_request();
			}
		}
		$here = get_current_blog_id();
		foreach ( $noted as $site => list( $objects, $all ) ) {
			if ( is_multisite() && ! get_site( $site ) ) {
				continue; // Deleted in this request.
			}
			if ( $site !== $here ) {
				switch_to_blog( $site );
			}
			if ( $this->options->is_complete() ) {
				$this->ledger->install();
				$this->tell( $objects, $all, $site === $here );
			}
			if ( $site !== $here ) {
				restore_current_blog();
			}
		}
		if ( $this->hurry ) {
			self::spawn();
		}
		$this->network->finish();
	}

	/**
	 * Start wp-cron of the current site.
	 */
	public static function spawn() {
		if ( ! wp_doing_cron() && ! ( defined( 'DISABLE_WP_CRON' ) && DISABLE_WP_CRON ) ) {
			spawn_cron();
		}
	}

	/**
	 * Send what was noticed on the current site.
	 *
	 * @param string[] $objects Objects, with their addresses before.
	 * @param int      $all     0, or Sitemapd_Notes::LOOK or MOVED.
	 * @param bool     $now     Whether this request can build its addresses.
	 */
	private function tell( array $objects, $all, $now ) {
		$this->ledger->mark( $objects );
		if ( ! $all && $now ) {
			$this->sender->flush();
			$this->hurry = $this->hurry || ( $this->ledger->count_waiting() && $this->sender->retry_at() <= time() );
			return;
		}
		// Until the next request addresses are built by the former rules.
		if ( $all ) {
			$this->walk->start( false );
		}
		if ( Sitemapd_Notes::MOVED === $all && $this->sender->retry_at() <= time() ) {
			// Pages that we never told of, from an import, are the service's to find. It may refuse.
			$this->sender->resync();
		}
		$this->sender->schedule( time() );
		if ( $now ) {
			$this->hurry = true;
		} else {
			self::spawn();
		}
	}

	/**
	 * In wp-cron: go on with what waits and with a walk, for a while.
	 */
	public function work() {
		if ( ! $this->options->is_complete() ) {
			return;
		}
		$until = microtime( true ) + self::CRON_S;
		do {
			$more  = $this->walk->step();
			$clear = $this->sender->flush( 2, 10.0 );
		} while ( $clear && ( $more || $this->ledger->count_waiting() ) && microtime( true ) < $until );
		if ( $more || $this->ledger->count_waiting() ) {
			$this->sender->schedule( max( time(), $this->sender->retry_at() ) );
		}
	}

	/**
	 * Once a day: compare everything with what was told.
	 */
	public function daily() {
		if ( $this->options->is_complete() && ! $this->walk->progress() ) {
			$this->walk->start( false );
		}
		$this->work();
	}

	/**
	 * The settings were stored for the first time.
	 *
	 * @param string $name  Unused.
	 * @param mixed  $after New settings.
	 */
	public function first_configured( $name, $after ) {
		$this->configured( array(), $after );
	}

	/**
	 * The settings changed: a service that knows nothing yet is told everything.
	 *
	 * @param mixed $before Former settings.
	 * @param mixed $after  New settings.
	 */
	public function configured( $before, $after ) {
		$before = array_merge( Sitemapd_Options::DEFAULTS, (array) $before );
		$after  = array_merge( Sitemapd_Options::DEFAULTS, (array) $after );
		$this->sender->retry_now();
		if ( $this->options->is_complete() ) {
			$this->walk->start( $before['address'] !== $after['address'] || $before['site'] !== $after['site'] || '' === $before['secret'] );
			$this->sender->schedule( time() );
			$this->hurry = true;
		}
	}
}
