"""Notification of search engines about published changes, and subscription to WebSub hubs; not the
HTTP client (worker/http).
"""
