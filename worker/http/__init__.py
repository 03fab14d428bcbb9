"""The HTTP client for all requests that go out, with bounds on address, time and size. The meaning
of answers belongs to the callers.

Two things do not go through it: `sitemapd up` asks the web server that it started whether it is
ready (deploy/local/up.py), an address of its own making and before anything else is loaded; and the
SDK of OpenTelemetry sends traces to where its own variables say.
"""
