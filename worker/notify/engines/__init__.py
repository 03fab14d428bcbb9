"""One module for each search engine, with its requests and the meaning of its answers; no queue and
no pacing.
"""
