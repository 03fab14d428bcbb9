"""The HTTP client for all requests that go out, with bounds on address, time and size. The meaning
of answers belongs to the callers.
"""
