"""Worker process and Celery schedule, from the inbox to the published files. Accepting events
belongs to webhook.
"""
