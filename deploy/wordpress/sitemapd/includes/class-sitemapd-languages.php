<?php
/**
 * Translations.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

/**
 * The translation group and the language of a post, as Polylang or WPML say.
 */
class Sitemapd_Languages {

	const HREFLANG = '/^[a-z]{2}(-[a-z]{4})?(-[a-z]{2})?$/i';

	/**
	 * The group and language of a post.
	 *
	 * @param WP_Post $post The post.
	 * @return array group and lang, or empty.
	 */
	public function of( WP_Post $post ) {
		list( $group, $lang ) = $this->polylang( $post ) ?? $this->wpml( $post ) ?? array( '', '' );
		$lang                 = str_replace( '_', '-', (string) $lang );
		if ( '' === $group || ! preg_match( self::HREFLANG, $lang ) ) {
			return array();
		}
		return array(
			'group' => $group,
			'lang'  => $lang,
		);
	}

	/**
	 * From Polylang: a group is a term of its taxonomy post_translations.
	 *
	 * @param WP_Post $post The post.
	 * @return array|null Group and language; null without Polylang.
	 */
	private function polylang( WP_Post $post ) {
		if ( ! function_exists( 'pll_get_post_language' ) || ! taxonomy_exists( 'post_translations' ) ) {
			return null;
		}
		$groups = wp_get_object_terms( $post->ID, 'post_translations', array( 'fields' => 'ids' ) );
		if ( is_wp_error( $groups ) || ! $groups ) {
			return null;
		}
		return array( 'polylang:' . $groups[0], pll_get_post_language( $post->ID ) );
	}

	/**
	 * From WPML.
	 *
	 * @param WP_Post $post The post.
	 * @return array|null Group and language; null without WPML.
	 */
	private function wpml( WP_Post $post ) {
		if ( ! defined( 'ICL_SITEPRESS_VERSION' ) ) {
			return null;
		}
		// phpcs:disable WordPress.NamingConventions.PrefixAllGlobals.NonPrefixedHooknameFound -- WPML's API.
		$group   = apply_filters( 'wpml_element_trid', null, $post->ID, 'post_' . $post->post_type );
		$details = apply_filters( 'wpml_post_language_details', null, $post->ID );
		// phpcs:enable
		if ( ! $group || ! is_array( $details ) ) {
			return null;
		}
		return array( 'wpml:' . $group, $details['language_code'] ?? '' );
	}
}
