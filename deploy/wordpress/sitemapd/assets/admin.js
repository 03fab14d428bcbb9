/* global sitemapdAdmin */
( function () {
	'use strict';

	var said = document.getElementById( 'sitemapd-said' );
	var bar = document.getElementById( 'sitemapd-progress' );
	var buttons = document.querySelectorAll( '[data-sitemapd]' );

	function hold( held ) {
		buttons.forEach( function ( button ) {
			button.disabled = held;
		} );
	}

	function ask( action, start ) {
		var form = new FormData();
		form.append( 'action', action );
		form.append( 'nonce', sitemapdAdmin.nonce );
		form.append( 'start', start ? '1' : '' );
		hold( true );
		fetch( sitemapdAdmin.url, { method: 'POST', body: form, credentials: 'same-origin' } )
			.then( function ( answer ) {
				return answer.json();
			} )
			.then( function ( answer ) {
				var data = answer.data || {};
				said.textContent = data.said || sitemapdAdmin.failed;
				bar.hidden = ! answer.success || undefined === data.done;
				if ( ! bar.hidden ) {
					bar.max = Math.max( data.total, data.done, 1 );
					bar.value = data.done;
				}
				if ( answer.success && data.more ) {
					ask( action, false );
				} else {
					hold( false );
				}
			} )
			.catch( function () {
				said.textContent = sitemapdAdmin.failed;
				hold( false );
			} );
	}

	buttons.forEach( function ( button ) {
		button.addEventListener( 'click', function () {
			said.textContent = sitemapdAdmin.waiting;
			ask( button.dataset.sitemapd, true );
		} );
	} );
}() );
