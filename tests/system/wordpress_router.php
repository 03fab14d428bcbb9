<?php
// For `php -S`: what a web server's rewrite rules do for WordPress, a network of sites included.
$path = rawurldecode( parse_url( $_SERVER['REQUEST_URI'], PHP_URL_PATH ) );
$file = $_SERVER['DOCUMENT_ROOT'] . $path;
if ( '/' !== $path && file_exists( $file ) ) {
	return false;
}
$script = preg_replace( '#^/[a-z0-9-]+(/(?:wp-admin/.+|[^/]+)\.php)$#', '$1', $path );
$script = is_file( $_SERVER['DOCUMENT_ROOT'] . $script ) ? $script : '/index.php';

$_SERVER['SCRIPT_NAME'] = $script;
$_SERVER['PHP_SELF']    = $script;
require $_SERVER['DOCUMENT_ROOT'] . $script;
