<?php
// The site's own code, as a must-use plugin: what themes and plugins of a real site register.
define( 'WPSEO_VERSION', '0' ); // Yoast SEO is not packaged: only where it keeps its answers is tried.
add_action(
	'init',
	function () {
		register_post_type(
			'book',
			array(
				'public'       => true,
				'has_archive'  => true,
				'show_in_rest' => true,
				'rewrite'      => array( 'slug' => 'library' ),
				'supports'     => array( 'title', 'editor', 'thumbnail', 'custom-fields' ),
			)
		);
		register_post_type( 'ledger_entry', array( 'public' => false ) );
		foreach ( array( '_yoast_wpseo_meta-robots-noindex', '_yoast_wpseo_canonical' ) as $key ) {
			register_post_meta(
				'post',
				$key,
				array(
					'show_in_rest'  => true,
					'single'        => true,
					'type'          => 'string',
					'auth_callback' => '__return_true',
				)
			);
		}
	}
);
