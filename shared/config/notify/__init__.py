"""The configuration of search engines that a site notifies and of hubs it subscribes to; no
requests to them (worker/notify).
"""
