"""The command `completion`: lines that let a shell complete the command line of sitemapd."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from deploy.cli.examples import examples
from deploy.cli.output import JsonOption, print_json, raw
from deploy.cli.program import COMPLETE

_AUTOLOADED = """
# zsh runs a file of its fpath at the first TAB, which is to be completed, too.
[[ $funcstack[1] != _sitemapd ]] || _sitemapd_completion "$@"
"""


@examples(
    "sitemapd completion bash > ~/.local/share/bash-completion/completions/sitemapd",
    "sitemapd completion fish > ~/.config/fish/completions/sitemapd.fish",
)
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="bash|zsh|fish")],
    as_json: JsonOption = False,
) -> None:
    """Print the lines that let a shell complete commands, options and names of sites.

    Each new shell reads them from the file of the example; zsh from _sitemapd in a directory of its
    fpath. For the present one alone: source <(sitemapd completion bash)
    """
    from typer._completion_shared import get_completion_script

    # B604 takes the name of a shell for an order to start one.
    asked = {"prog_name": "sitemapd", "complete_var": COMPLETE, "shell": shell}
    script = get_completion_script(**asked) + (_AUTOLOADED if shell == "zsh" else "")
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        raw(script)
