"""The step from the inbox to the records of pages: consume, decide and apply events; no files are
written here (worker/publishing).
"""
