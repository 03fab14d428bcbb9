"""Log lines and traces of every process; no metrics."""
