"""Code that webhook, worker and deploy share; no web framework, no task queue, no command line."""
