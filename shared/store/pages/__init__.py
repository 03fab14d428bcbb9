"""Records of pages, ids and translation groups: look up, scan, apply and repair them; not the
records of files (shared/store/publishing).
"""
