"""Layouts of the stored state of a site, numbered, and the way from one to the next.

`version.py` holds the numbers; a module for each change of the layout, such as `section_keys.py`,
its steps in both directions; `migration.py` takes them.
"""
