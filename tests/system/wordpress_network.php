<?php
// Lets the domain of a site have a port: WordPress takes the colon out, tests have no port 80.
add_filter(
	'sanitize_user',
	function ( $clean, $raw ) {
		return preg_match( '/^[0-9.]+:[0-9]+$/', $raw ) ? $raw : $clean;
	},
	10,
	2
);
