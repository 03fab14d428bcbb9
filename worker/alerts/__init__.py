"""Alerts: watch the conditions of all sites, and send what began and what ended; the decisions are
in shared/alerts.
"""
