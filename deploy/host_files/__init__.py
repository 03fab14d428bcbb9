"""Files for a host in production, filled in from the configuration: nginx, systemd, Redis,
monitoring, the WordPress plugin. The templates are the directories of those names in deploy/.
"""
