"""The Flask views of events, CMS hooks, WebSub, status and metrics. No pages of the console and no
formats of senders (webhook/sources).
"""
