"""Change events as senders write them, parsed and checked; not what they mean for a page
(shared/domain).
"""
