"""The body of a request: its length, its bytes, strict JSON. No framework, no interpretation."""
