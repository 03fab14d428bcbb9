"""State for operating the service: queues, dead letters, resyncs, checks, logs, sessions and
workers; no records of pages or files.
"""
