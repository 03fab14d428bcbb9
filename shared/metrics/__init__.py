"""Every metric, declared once, and the reading of its value from Redis; no counting
(shared/store/counting) and no HTTP.
"""
