"""The web server process: Granian, buffered requests and the published files; not the WSGI
application (webhook).
"""
