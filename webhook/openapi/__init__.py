"""The OpenAPI description of the HTTP interface; no views."""
