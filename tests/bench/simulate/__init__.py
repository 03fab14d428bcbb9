"""Simulation of sitemapd on machines that nobody has rented yet: a discrete-event model fed by the
figures of `make bench` (`make simulate`).

`figures` reads them, `costs` derives what each step costs, `counts` is what each step sends and
writes; `scenario` is the load and the machines, `servers` and `model` simulate them, `sizing` and
`prices` say what they need and cost, `points` holds the model against what was measured, `ladder`
raises the load until something breaks.
"""
