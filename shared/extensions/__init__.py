"""What the protocol's extensions add to an entry: images, videos, news, alternates (PROTOCOL C0).

Each has a `take` (any JSON value to a canonical one, or faults), a `render` (canonical value to
XML) and a `read` (that XML back to the value). Canonical values are JSON-shaped, and each leaf of
them is the very text of the XML: `600` seconds are `"600"`, True is `"yes"`.
"""
