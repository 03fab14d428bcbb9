"""Counters of events and durations, buffered in a process and stored for each site; not their form
as metrics (shared/metrics).
"""
