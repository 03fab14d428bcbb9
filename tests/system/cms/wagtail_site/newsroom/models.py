"""One kind of page."""

from django.http import HttpRequest, HttpResponse
from wagtail.models import Page


class Article(Page):
    """A page that shows its title."""

    def serve(self, request: HttpRequest, *_: object, **__: object) -> HttpResponse:  # noqa: ARG002
        """No template needed."""
        return HttpResponse(self.title)
