"""Background loops of a worker: their supervision, the companions that have one each, and the
heartbeat. What a loop does belongs to the packages above.
"""
