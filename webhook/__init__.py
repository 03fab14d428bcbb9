"""The HTTP interface that accepts events, and the console. No code that applies or publishes events
(worker).
"""
