"""The configuration of search engines that a site notifies and of hubs it subscribes to; requests
to them are in worker/notify.
"""
