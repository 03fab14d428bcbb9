<?php
// Runs the PHP on its standard input inside WordPress, as one request of its own; prints JSON.
// HTTP_HOST and DOCUMENT_ROOT come from the environment.
$_SERVER['HTTP_HOST']      = getenv( 'WORDPRESS_HOST' );
$_SERVER['REQUEST_METHOD'] = 'GET';
if ( getenv( 'WORDPRESS_INSTALLING' ) ) {
	define( 'WP_INSTALLING', true );
}
require getenv( 'WORDPRESS_ROOT' ) . '/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/admin.php';
wp_set_current_user( 1 );
$result = eval( stream_get_contents( STDIN ) );
echo "\n" . json_encode( $result );
