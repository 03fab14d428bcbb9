"""The HTTP interface that accepts events, and the console; nothing that applies or publishes them
(worker).
"""
