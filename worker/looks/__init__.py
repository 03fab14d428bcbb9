"""Looks at the pages themselves: which one is next, how it is fetched and read, and what follows.
Checks of files and of the state belong to worker/checks.
"""
