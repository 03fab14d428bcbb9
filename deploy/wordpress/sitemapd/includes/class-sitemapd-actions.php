<?php
/**
 * What the settings page and WP-CLI can do.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * The buttons.
 */
class Sitemapd_Actions {

	/**
	 * The plugin.
	 *
	 * @var Sitemapd_Plugin
	 */
	private $plugin;

	/**
	 * Act for the plugin.
	 *
	 * @param Sitemapd_Plugin $plugin The plugin.
	 */
	public function __construct( Sitemapd_Plugin $plugin ) {
		$this->plugin = $plugin;
	}

	/**
	 * One step of sending everything.
	 *
	 * @param bool $start Begin anew.
	 * @return array done, total, waiting, more (bool), clear (false: the service cannot be spoken to).
	 */
	public function send_all( $start ) {
		if ( $start ) {
			$this->plugin->walk->start( true );
			$this->plugin->sender->retry_now();
		}
		$total    = $this->plugin->walk->total();
		$progress = $this->plugin->walk->progress();
		$more     = $this->plugin->walk->step();
		$clear    = $this->plugin->sender->flush( 2, 10.0 );
		$waiting  = $this->plugin->ledger->count_waiting();
		$after    = $this->plugin->walk->progress();
		return array(
			'done'    => $after['done'] ?? max( $total, $progress['done'] ?? 0 ),
			'total'   => $total,
			'waiting' => $waiting,
			'more'    => $more || $waiting > 0,
			'clear'   => $clear,
		);
	}

	/**
	 * Ask whether the service is ready and takes what we sign: a delete of what never was.
	 *
	 * @return array Whether it is so, and why in words.
	 */
	public function test() {
		list( $status, $said ) = $this->plugin->client->ready();
		/* translators: 1: HTTP status, 2: the server's words. */
		$ready = sprintf( __( 'Ready: %1$s %2$s.', 'sitemapd' ), $status ? $status : '—', $said );
		if ( 404 === $status ) {
			$ready .= ' ' . __( 'The address must be that of sitemapd itself, without /v1/.', 'sitemapd' );
		}
		if ( 200 !== $status ) {
			return array( false, $ready );
		}
		$event  = array(
			'type' => 'delete',
			'id'   => 'wordpress:test',
		);
		$result = $this->plugin->client->post( (string) wp_json_encode( $event ), Sitemapd_Sender::TIMEOUT_S );
		$this->plugin->deliveries->note( $result['status'], 1, 'test', $result['said'] );
		/* translators: 1: HTTP status, 2: the server's words. */
		$signed = sprintf( __( 'Signed event: %1$s %2$s', 'sitemapd' ), $result['status'] ? $result['status'] : '—', $result['said'] );
		return array( Sitemapd_Client::SENT === $result['outcome'], "$ready $signed" );
	}
}
