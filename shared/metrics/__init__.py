"""Every metric, declared once, and the reading of its value from Redis; no HTTP. Counting is in
shared/store/counting.
"""
