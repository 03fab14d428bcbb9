"""What an administrator can do, once for console and command line.

Each action is one function that gives an Outcome: what came of it, and the command that does the
same. Who did it is recorded by whoever called it (outcomes.Log), once.
"""
