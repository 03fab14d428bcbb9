"""Read the bodies of vendors' deliveries; shared/cms/fields.py reads what is in them. Pure."""

from __future__ import annotations

from shared.cms.fields import Fields, mapping
from webhook import request_body


def document(content: bytes) -> Fields:
    """Return the object of a JSON body, empty if it is another value. Raises RefusedError if not
    strict.
    """
    return mapping(request_body.foreign(content))
