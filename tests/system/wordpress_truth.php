// What WordPress itself says is public: its own sitemap's providers, asked directly, without what
// they list although nobody can read it (posts with a password), and with the archives of post
// types, which they leave out. Address => last modification of a post, else null.
if ( ! get_option( 'blog_public' ) ) {
	return new stdClass();
}
$found = array();
foreach ( array( new WP_Sitemaps_Posts(), new WP_Sitemaps_Taxonomies(), new WP_Sitemaps_Users() ) as $provider ) {
	foreach ( array_keys( $provider->get_object_subtypes() ) ?: array( '' ) as $subtype ) {
		for ( $page = 1; $page <= $provider->get_max_num_pages( $subtype ); $page++ ) {
			foreach ( $provider->get_url_list( $page, $subtype ) as $entry ) {
				$found[ $entry['loc'] ] = null;
			}
		}
	}
}
global $wpdb;
foreach ( $wpdb->get_results( "SELECT * FROM $wpdb->posts WHERE post_status = 'publish'" ) as $row ) {
	$loc = get_permalink( new WP_Post( $row ) );
	if ( ! array_key_exists( $loc, $found ) ) {
		continue;
	}
	if ( $row->post_password ) {
		unset( $found[ $loc ] );
	} else {
		$found[ $loc ] = str_replace( ' ', 'T', max( $row->post_modified_gmt, $row->post_date_gmt ) ) . 'Z';
	}
}
foreach ( get_post_types( array( 'has_archive' => true ) ) as $type ) {
	if ( wp_count_posts( $type )->publish ) {
		$found[ get_post_type_archive_link( $type ) ] = null;
	}
}
return (object) $found;
