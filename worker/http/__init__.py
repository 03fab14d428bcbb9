"""Outgoing HTTP requests, with bounds on address, time and size; not what their answers mean."""
