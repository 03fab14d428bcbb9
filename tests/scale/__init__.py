"""Several machines, played by processes on loopback: imports nothing of ours."""
