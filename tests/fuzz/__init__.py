"""Hostile input for every parser, each with an oracle (`make fuzz`)."""
