"""Outgoing HTTP requests, with bounds on address, time and size. The meaning of answers belongs to
the callers.
"""
