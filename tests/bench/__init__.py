"""Benchmarks: each figure beside its baseline, interleaved with it in one run (`make bench`)."""
