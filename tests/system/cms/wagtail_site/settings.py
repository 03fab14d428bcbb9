"""A Wagtail project as small as one can be that has pages, languages, the API and our client."""

import json
import os
from pathlib import Path

BASE = Path(os.environ["SITE_HOME"])
ROOT_URLCONF = "urls"
SECRET_KEY = "for a site on loopback that lives as long as one test"
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
INSTALLED_APPS = [
    "newsroom", "wagtail.contrib.simple_translation", "wagtail.locales", "wagtail.api.v2",
    "wagtail.contrib.settings", "wagtail.users", "wagtail.snippets", "wagtail.documents",
    "wagtail.images", "wagtail.search", "wagtail.admin", "wagtail.sites", "wagtail",
    "modelcluster", "taggit", "rest_framework", "django_filters", "django.contrib.admin",
    "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions",
    "django.contrib.messages", "django.contrib.staticfiles",
]  # fmt: skip
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": BASE / "db.sqlite3",
        "OPTIONS": {"timeout": 30},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
LANGUAGE_CODE = "en"
LANGUAGES = WAGTAIL_CONTENT_LANGUAGES = [("en", "English"), ("de", "Deutsch")]
USE_I18N = USE_TZ = WAGTAIL_I18N_ENABLED = True
TIME_ZONE = "UTC"
STATIC_URL = "/static/"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WAGTAIL_SITE_NAME = "Newsroom"
WAGTAILADMIN_BASE_URL = os.environ["SITE_URL"]
WAGTAILAPI_LIMIT_MAX = 1_000
WAGTAILADMIN_COMMENTS_ENABLED = False
WAGTAIL_ENABLE_UPDATE_CHECK = False
SITEMAPD = tuple(json.loads(os.environ["SITE_HOOK"]))
