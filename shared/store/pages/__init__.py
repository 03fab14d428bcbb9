"""Page records, claims and translation groups: look up, scan, apply and repair them; not the
records of files (shared/store/publishing).
"""
