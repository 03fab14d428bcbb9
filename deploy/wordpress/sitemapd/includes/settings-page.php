<?php
/**
 * The settings page; $this is a Sitemapd_Admin.
 *
 * @package Sitemapd
 */

defined( 'ABSPATH' ) || exit;

$sitemapd_options = $this->plugin->options;
$sitemapd_name    = Sitemapd_Options::NAME;
$sitemapd_waiting = $this->plugin->ledger->count_waiting();
$sitemapd_retry   = $this->plugin->sender->retry_at();
$sitemapd_sets    = (array) $sitemapd_options->get( 'sections' );
$sitemapd_core    = array(
	'keep'     => __( 'leave it as it is', 'sitemapd' ),
	'disable'  => __( 'turn it off', 'sitemapd' ),
	'redirect' => __( 'redirect it to the sitemap of sitemapd', 'sitemapd' ),
);
$sitemapd_fields  = array(
	'address' => array( __( 'Address of sitemapd', 'sitemapd' ), 'url', 'https://sitemapd.example.com' ),
	'site'    => array( __( 'Site', 'sitemapd' ), 'text', __( 'the name in [sites.NAME]', 'sitemapd' ) ),
	'secret'  => array( __( 'Secret', 'sitemapd' ), 'password', 'whsec_…' ),
	'sitemap' => array( __( 'Address of the sitemap', 'sitemapd' ), 'url', home_url( '/sitemap.xml' ) ),
);
$sitemapd_checks  = array(
	'terms'       => __( 'Categories, tags and other terms', 'sitemapd' ),
	'authors'     => __( 'Authors', 'sitemapd' ),
	'attachments' => __( 'Pages of attachments', 'sitemapd' ),
);
?>
<div class="wrap">
	<h1>sitemapd</h1>
	<form method="post" action="options.php">
		<?php settings_fields( Sitemapd_Admin::PAGE ); ?>
		<table class="form-table" role="presentation">
			<?php foreach ( $sitemapd_fields as $sitemapd_field => list( $sitemapd_label, $sitemapd_type, $sitemapd_hint ) ) : ?>
				<?php
				$sitemapd_value = (string) $sitemapd_options->get( $sitemapd_field );
				$sitemapd_fixed = $sitemapd_options->is_fixed( $sitemapd_field );
				if ( 'secret' === $sitemapd_field ) {
					$sitemapd_hint  = '' === $sitemapd_value ? $sitemapd_hint : __( 'stored; write a new one to change it', 'sitemapd' );
					$sitemapd_value = '';
				}
				?>
				<tr>
					<th scope="row"><label for="sitemapd-<?php echo esc_attr( $sitemapd_field ); ?>"><?php echo esc_html( $sitemapd_label ); ?></label></th>
					<td>
						<input class="regular-text" autocomplete="off"
							id="sitemapd-<?php echo esc_attr( $sitemapd_field ); ?>"
							type="<?php echo esc_attr( $sitemapd_type ); ?>"
							name="<?php echo esc_attr( "{$sitemapd_name}[{$sitemapd_field}]" ); ?>"
							value="<?php echo esc_attr( $sitemapd_value ); ?>"
							placeholder="<?php echo esc_attr( $sitemapd_hint ); ?>"
							<?php wp_readonly( $sitemapd_fixed ); ?>>
						<?php if ( $sitemapd_fixed ) : ?>
							<p class="description"><?php esc_html_e( 'Set in wp-config.php.', 'sitemapd' ); ?></p>
						<?php endif; ?>
					</td>
				</tr>
			<?php endforeach; ?>
			<tr>
				<th scope="row"><?php esc_html_e( 'Listed beside posts and pages', 'sitemapd' ); ?></th>
				<td>
					<?php foreach ( $sitemapd_checks as $sitemapd_field => $sitemapd_label ) : ?>
						<label><input type="checkbox" value="1" name="<?php echo esc_attr( "{$sitemapd_name}[{$sitemapd_field}]" ); ?>" <?php checked( $sitemapd_options->get( $sitemapd_field ) ); ?>>
							<?php echo esc_html( $sitemapd_label ); ?></label><br>
					<?php endforeach; ?>
				</td>
			</tr>
			<tr>
				<th scope="row"><?php esc_html_e( 'Sections', 'sitemapd' ); ?></th>
				<td>
					<p class="description"><?php esc_html_e( 'Section of sitemapd.toml for each post type. Leave it empty to let sitemapd decide.', 'sitemapd' ); ?></p>
					<?php foreach ( array_filter( get_post_types( array( 'public' => true ), 'objects' ), 'is_post_type_viewable' ) as $sitemapd_type ) : ?>
						<p><label><input class="small-text" style="width: 10em" pattern="[a-z0-9\-]{0,32}" name="<?php echo esc_attr( "{$sitemapd_name}[sections][{$sitemapd_type->name}]" ); ?>" value="<?php echo esc_attr( $sitemapd_sets[ $sitemapd_type->name ] ?? '' ); ?>">
							<?php echo esc_html( $sitemapd_type->labels->name ); ?></label></p>
					<?php endforeach; ?>
				</td>
			</tr>
			<tr>
				<th scope="row"><?php esc_html_e( 'WordPress’s own sitemap', 'sitemapd' ); ?></th>
				<td>
					<?php foreach ( $sitemapd_core as $sitemapd_value => $sitemapd_label ) : ?>
						<label><input type="radio" name="<?php echo esc_attr( "{$sitemapd_name}[core]" ); ?>" value="<?php echo esc_attr( $sitemapd_value ); ?>" <?php checked( $sitemapd_options->get( 'core' ), $sitemapd_value ); ?>>
							<?php echo esc_html( $sitemapd_label ); ?></label><br>
					<?php endforeach; ?>
				</td>
			</tr>
		</table>
		<?php submit_button(); ?>
	</form>

	<h2><?php esc_html_e( 'State', 'sitemapd' ); ?></h2>
	<p>
		<?php
		/* translators: 1: number of pages, 2: number of pages. */
		echo esc_html( sprintf( __( '%1$d pages told, %2$d waiting.', 'sitemapd' ), $this->plugin->ledger->count_listed(), $sitemapd_waiting ) );
		if ( $sitemapd_waiting && $sitemapd_retry > time() ) {
			/* translators: %s: a duration. */
			echo ' ' . esc_html( sprintf( __( 'Next attempt in %s.', 'sitemapd' ), human_time_diff( time(), $sitemapd_retry ) ) );
		}
		?>
	</p>
	<p>
		<button type="button" class="button" data-sitemapd="sitemapd_test"><?php esc_html_e( 'Test', 'sitemapd' ); ?></button>
		<button type="button" class="button" data-sitemapd="sitemapd_send_all"><?php esc_html_e( 'Send everything', 'sitemapd' ); ?></button>
		<progress id="sitemapd-progress" hidden></progress>
		<span id="sitemapd-said" role="status"></span>
	</p>

	<h2><?php esc_html_e( 'Last deliveries', 'sitemapd' ); ?></h2>
	<table class="widefat striped">
		<thead><tr>
			<th><?php esc_html_e( 'When', 'sitemapd' ); ?></th>
			<th><?php esc_html_e( 'Status', 'sitemapd' ); ?></th>
			<th><?php esc_html_e( 'Events', 'sitemapd' ); ?></th>
			<th><?php esc_html_e( 'About', 'sitemapd' ); ?></th>
			<th><?php esc_html_e( 'Answer', 'sitemapd' ); ?></th>
		</tr></thead>
		<tbody>
			<?php foreach ( $this->plugin->deliveries->all() as $sitemapd_delivery ) : ?>
				<tr>
					<td><?php echo esc_html( wp_date( 'Y-m-d H:i:s', $sitemapd_delivery['at'] ) ); ?></td>
					<td><?php echo esc_html( $sitemapd_delivery['status'] ? $sitemapd_delivery['status'] : '—' ); ?></td>
					<td><?php echo esc_html( $sitemapd_delivery['events'] ); ?></td>
					<td><?php echo esc_html( $sitemapd_delivery['what'] ); ?></td>
					<td><?php echo esc_html( $sitemapd_delivery['said'] ); ?></td>
				</tr>
			<?php endforeach; ?>
		</tbody>
	</table>
</div>
