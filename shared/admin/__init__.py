"""The actions of administrators, written once for console and command line; no HTML and no terminal
output.
"""
