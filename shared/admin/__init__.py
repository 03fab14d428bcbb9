"""Actions of administrators, shared by console and command line; no HTML and no terminal output."""
