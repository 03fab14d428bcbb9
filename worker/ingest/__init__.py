"""Inbox consumer and event processor: from the inbox to page records and patches. Writing files
belongs to worker/publishing.
"""
