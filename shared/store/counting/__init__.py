"""Counters of events and durations, buffered in a process and stored per site; not their form as
metrics (shared/metrics).
"""
