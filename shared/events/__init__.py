"""Change events as senders write them, parsed and checked; their meaning for a page is decided in
shared/domain.
"""
