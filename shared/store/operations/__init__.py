"""State for operating the service: queues, dead letters, resync requests, checks, logs, sessions
and the worker registry; no records of pages or files.
"""
