"""The installed package: starts the application, whose packages have names that others use, too.

In a wheel they are in `_application` beside this file and not at the top of site-packages, where
PyPI's `shared` or `worker` would overwrite them. In a checkout they are at its top, which the
editable installation or PYTHONPATH puts on the path.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from pathlib import Path

PACKAGES = ("shared", "webhook", "worker", "deploy")


def activate() -> None:
    """Let this process import the application's packages, whatever else has their names.

    Importing `sitemapd` alone changes nothing for a program of others.
    """
    application = Path(__file__).with_name("_application")
    if application.is_dir():
        sys.path.insert(0, str(application))
    for name in PACKAGES:  # at once: libraries put other directories first on the path later
        import_module(name)


def main() -> None:
    """Run the command `sitemapd`; Ctrl-C before it is loaded ends the process silently."""
    interrupted = signal.getsignal(signal.SIGINT)
    if interrupted is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    activate()
    from deploy.cli.entry import main as run

    signal.signal(signal.SIGINT, interrupted)
    run()
