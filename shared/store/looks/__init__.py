"""Looks at pages, kept in Redis: what is to be looked at, what was found, and a summary of it."""
