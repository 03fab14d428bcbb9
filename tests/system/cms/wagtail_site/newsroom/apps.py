"""Where a project plugs in the client."""

from django.apps import AppConfig


class Newsroom(AppConfig):
    """The one app of the project."""

    name = "newsroom"

    def ready(self) -> None:
        """Connect the signals."""
        import sitemapd_client  # noqa: F401
