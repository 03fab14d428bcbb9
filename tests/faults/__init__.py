"""Faults on the real system: what injects them, what drives and judges it."""
