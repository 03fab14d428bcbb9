"""Documents name files, tests and commands that exist, and the README stays short."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from deploy.cli.program import app

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = sorted(
    ROOT / name
    for name in subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    if name != "CHANGELOG.md"
)
MOST_LINES = 250


def _commands() -> list[tuple[str, str]]:
    """Each line of a shell block that runs sitemapd: document and line."""
    found = []
    for path in DOCUMENTS:
        for block in re.findall(r"```sh\n(.*?)```", path.read_text(), re.DOTALL):
            lines = block.replace("\\\n", " ").splitlines()
            found += [
                (str(path.relative_to(ROOT)), line)
                for line in lines
                if re.match(r"\s*(?:as +)?(?:/\S+/)?sitemapd\s", line)
            ]
    return found


@pytest.mark.parametrize(("document", "line"), _commands())
def test_a_command_in_a_document_is_one(document: str, line: str) -> None:
    """Its words, options and number of arguments; tests/system/test_documents.py runs it."""
    said = re.split(r"[|;>]", re.sub(r"^.*?sitemapd\s", "", line))[0]
    words = shlex.split(said, comments=True)
    assert words, document
    command, context = get_command(app), None
    while hasattr(command, "get_command"):
        context = command.make_context(
            "sitemapd", words[:1], parent=context, resilient_parsing=True
        )
        name, found, words = command.resolve_command(context, words)
        assert found is not None, (document, name)
        command = found

    try:
        command.make_context(command.name, list(words), parent=context)
    except typer.BadParameter as error:
        if "does not exist" not in str(error):  # a file of the reader's
            raise


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_a_document_names_exists(path: Path) -> None:
    text = path.read_text()
    links = set(re.findall(r"\]\(([^)#:]+)[^):]*\)", text))
    tests = set(re.findall(r"`(tests/[\w/*]+\.py)", text))

    missing = [name for name in links if not list(path.parent.glob(name))]
    missing += [name for name in tests if not list(ROOT.glob(name))]
    assert missing == []


def test_the_readme_is_read_in_five_minutes() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= MOST_LINES
