"""Processes on one machine: supervisor, embedded Redis, first configuration, worker in a command;
not the web server (deploy/web).
"""
