"""Processes on one machine: supervisor, embedded Redis, first configuration, inline worker. The web
server is in deploy/web.
"""
