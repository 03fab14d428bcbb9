"""State of notifications to engines and of WebSub subscriptions; no HTTP requests
(worker/notify).
"""
