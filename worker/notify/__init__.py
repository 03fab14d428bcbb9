"""Notification of search engines about published changes, and subscription to WebSub hubs. The HTTP
client belongs to worker/http.
"""
