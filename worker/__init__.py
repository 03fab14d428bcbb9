"""The worker process and the Celery schedule, from the inbox to published files; nothing that
accepts events (webhook).
"""
