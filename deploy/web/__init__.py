"""The web server process: Granian, buffered requests and the published files. The WSGI application
is in webhook.
"""
