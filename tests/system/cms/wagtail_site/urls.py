"""The admin, the API that says what is public, and the pages with a prefix for each language."""

from django.conf.urls.i18n import i18n_patterns
from django.urls import include, path
from wagtail import urls as pages
from wagtail.admin import urls as admin
from wagtail.api.v2.router import WagtailAPIRouter
from wagtail.api.v2.views import PagesAPIViewSet


class Pages(PagesAPIViewSet):
    """The API of pages, with the date that the reader of sitemapd asks for."""

    body_fields = [*PagesAPIViewSet.body_fields, "last_published_at"]


api = WagtailAPIRouter("api")
api.register_endpoint("pages", Pages)

urlpatterns = [
    path("admin/", include(admin)),
    path("api/v2/", api.urls),
    *i18n_patterns(path("", include(pages)), prefix_default_language=False),
]
