"""State of notifications to search engines and of WebSub subscriptions; no HTTP requests
(worker/notify).
"""
