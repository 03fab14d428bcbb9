<?php
// Runs PHP inside WordPress as a request of its own, and answers with JSON: what it is posted, or
// its standard input where there is no database yet.
if ( 'cli' === PHP_SAPI ) {
	$_SERVER['HTTP_HOST'] = getenv( 'WORDPRESS_HOST' );
	define( 'WP_INSTALLING', true );
	require getenv( 'WORDPRESS_ROOT' ) . '/wp-load.php';
} else {
	require __DIR__ . '/wp-load.php';
}
require_once ABSPATH . 'wp-admin/includes/admin.php';
if ( ! wp_installing() ) {
	wp_set_current_user( 1 );
}
$result = eval( file_get_contents( 'cli' === PHP_SAPI ? 'php://stdin' : 'php://input' ) );
echo "\n" . json_encode( $result );
