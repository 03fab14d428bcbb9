<?php
/**
 * HTTP to sitemapd.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * Signs a body as Standard Webhooks 1.0.0 say and posts it; says what the answer means.
 */
class Sitemapd_Client {

	const SENT    = 'sent';
	const REFUSED = 'refused';
	const LATER   = 'later';

	/**
	 * The settings.
	 *
	 * @var Sitemapd_Options
	 */
	private $options;

	/**
	 * Use these settings.
	 *
	 * @param Sitemapd_Options $options The settings.
	 */
	public function __construct( Sitemapd_Options $options ) {
		$this->options = $options;
	}

	/**
	 * Post events.
	 *
	 * @param string $body    NDJSON, one event a line.
	 * @param float  $timeout Seconds in all.
	 * @return array outcome, status, said, wait (seconds, 0 for none), items (of the body, refused).
	 */
	public function post( $body, $timeout ) {
		$id   = 'wp_' . wp_generate_uuid4();
		$time = (string) time();
		$mac  = hash_hmac( 'sha256', "$id.$time.$body", $this->options->key(), true );
		$url  = $this->options->get( 'address' ) . '/v1/sites/' . rawurlencode( $this->options->get( 'site' ) ) . '/events';

		$answer = wp_remote_post(
			$url,
			array(
				'timeout'     => $timeout,
				'redirection' => 0, // A redirect turns the POST into a GET with its body.
				'body'        => $body,
				'headers'     => array(
					'content-type'      => 'application/x-ndjson',
					'webhook-id'        => $id,
					'webhook-timestamp' => $time,
					'webhook-signature' => 'v1,' . base64_encode( $mac ), // phpcs:ignore WordPress.PHP.DiscouragedPHPFunctions -- The form Standard Webhooks gives signatures.
				),
			)
		);
		return $this->judge( $answer );
	}

	/**
	 * Whether the service says it is ready.
	 *
	 * @return array status (0 without an answer), said.
	 */
	public function ready() {
		$answer = wp_remote_get(
			$this->options->get( 'address' ) . '/readyz',
			array(
				'timeout'     => 3,
				'redirection' => 0,
			)
		);
		if ( is_wp_error( $answer ) ) {
			return array( 0, $answer->get_error_message() );
		}
		return array( (int) wp_remote_retrieve_response_code( $answer ), (string) wp_remote_retrieve_response_message( $answer ) );
	}

	/**
	 * What an answer means.
	 *
	 * @param array|WP_Error $answer Of WordPress's HTTP client.
	 * @return array As post() returns it.
	 */
	private function judge( $answer ) {
		if ( is_wp_error( $answer ) ) {
			return $this->outcome( self::LATER, 0, $answer->get_error_message() );
		}
		$status = (int) wp_remote_retrieve_response_code( $answer );
		$said   = json_decode( wp_remote_retrieve_body( $answer ), true );
		$said   = is_array( $said ) ? $said : array();
		if ( $status >= 200 && $status < 300 ) {
			$warnings = array_column( (array) ( $said['warnings'] ?? array() ), 'detail' );
			return $this->outcome( self::SENT, $status, implode( '; ', $warnings ) );
		}
		$errors = array_filter( (array) ( $said['errors'] ?? array() ), 'is_array' );
		$words  = array();
		if ( 401 === $status ) {
			$words[] = __( 'The secret or the site is not the one in sitemapd.toml', 'sitemapd' );
		}
		$words[] = (string) ( $said['detail'] ?? wp_remote_retrieve_response_message( $answer ) );
		foreach ( $errors as $error ) {
			$words[] = ( $error['field'] ?? '' ) . ': ' . ( $error['detail'] ?? '' );
		}
		// These say that this body is wrong. 401, 403, 404 and redirects say that the settings are:
		// what waits is right and goes out when they are.
		$wrong  = in_array( $status, array( 400, 409, 411, 413, 415, 422 ), true );
		$result = $this->outcome( $wrong ? self::REFUSED : self::LATER, $status, implode( '; ', array_slice( $words, 0, 4 ) ) );

		$result['wait']  = self::seconds( (string) wp_remote_retrieve_header( $answer, 'retry-after' ) );
		$result['items'] = array_unique( array_map( 'intval', array_filter( array_column( $errors, 'item' ), 'is_int' ) ) );
		return $result;
	}

	/**
	 * A result without details.
	 *
	 * @param string $outcome SENT, REFUSED or LATER.
	 * @param int    $status  HTTP status.
	 * @param string $said    In words.
	 * @return array
	 */
	private function outcome( $outcome, $status, $said ) {
		return array(
			'outcome' => $outcome,
			'status'  => $status,
			'said'    => $said,
			'wait'    => 0,
			'items'   => array(),
		);
	}

	/**
	 * Retry-After in seconds: a number, or a date.
	 *
	 * @param string $header The header's value.
	 * @return int 0 for none.
	 */
	private static function seconds( $header ) {
		if ( ctype_digit( $header ) ) {
			return (int) $header;
		}
		$at = '' === $header ? false : strtotime( $header );
		return $at ? max( 0, $at - time() ) : 0;
	}
}
