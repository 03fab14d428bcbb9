"""The command `sitemapd`. Exit codes: 0 success, 1 difference or failure found, 2 usage, 78 bad
configuration.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Annotated

import typer
from typer import TyperException
from typer.main import get_command

from deploy.cli.command_tree import PLAIN, CommandTree
from deploy.cli.output import line, note, print_traceback, printable_streams
from deploy.cli.values import read_plainly
from shared.errors import ConfigError, InvalidError, SitemapdError
from shared.lean_imports import leave_out
from shared.telemetry import logs

EXIT_FAILURE = 1
EXIT_CONFIG = 78

COMPLETE = "_SITEMAPD_COMPLETE"
"""Variable by which the script of a shell asks what may stand at the cursor."""

app = typer.Typer(
    cls=CommandTree,
    no_args_is_help=True,
    context_settings={"max_content_width": 120, "help_option_names": ["-h", "--help"]},
    **PLAIN | {"add_completion": COMPLETE in os.environ},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        import platform
        from importlib.metadata import version

        line(f"sitemapd {version('sitemapd')}, Python {platform.python_version()}")
        raise typer.Exit


@app.callback()
def sitemapd(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """Event-driven sitemaps: one event in, the one right file changed."""


def main() -> None:
    """Run a command; each of our errors becomes one line and an exit code."""
    logs.configure_later(level="warning")
    printable_streams()
    # typer prints errors unescaped; with standalone_mode=False it raises them, and they are printed
    # here.
    sys.excepthook = print_traceback
    read_plainly()
    if COMPLETE in os.environ:
        leave_out("rich")  # typer folds helps by it, and fish takes the rest of one for a candidate
    try:
        _check_arguments(sys.argv)
        code = get_command(app)(prog_name="sitemapd", standalone_mode=False)
        # Flushed here, where a failure can be reported: at exit the interpreter prints a traceback.
        sys.stdout.flush()
    except (SitemapdError, OSError, TyperException, typer.Abort) as error:
        code = _failed(error)
    finally:
        _drop_unwritten()
    sys.exit(code)


def _drop_unwritten() -> None:
    """Discard what standard output does not accept, or the interpreter tries to write it again at
    exit.
    """
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)


def _check_arguments(arguments: list[str]) -> None:
    """Raise BadParameter for bytes that are not UTF-8: neither Redis nor JSON can hold their
    decoding.
    """
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise typer.BadParameter(f"{argument} is not valid UTF-8") from None


def _failed(error: Exception) -> int:
    """Print the error and return the exit code."""
    match error:
        case ConfigError():
            return _named("configuration", error.faults, EXIT_CONFIG)
        case InvalidError():
            return _named("refused", error.faults, EXIT_FAILURE)
        case TyperException():
            context = getattr(error, "ctx", None)
            if context is not None and error.format_message() == context.get_help():
                for each in context.get_help().splitlines():  # no argument was given
                    note(each)
                return error.exit_code
            if context is not None:
                note(context.get_usage())
                note(f"Try '{context.command_path} --help' for help.")
            return _named("error", [error.format_message()], error.exit_code)
        case typer.Abort():
            return _named("error", ["aborted"], EXIT_FAILURE)
        case BrokenPipeError():  # the reader closed the pipe
            return EXIT_FAILURE
        case _:
            return _named("error", [error], EXIT_FAILURE)


def _named(what: str, faults: Iterable[object], code: int) -> int:
    for fault in faults:
        note((what, "red"), f" {fault}")
    return code
