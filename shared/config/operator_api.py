"""The configuration of the operator's API, which adds and removes sites."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from shared.config.console import LEAST_TOKEN
from shared.config.credentials import ConfigModel
from shared.config.notify.engines import secret_of
from shared.errors import CredentialError

_ELSEWHERE = ("env:", "file:")


def _several(value: object) -> object:
    return (value,) if isinstance(value, (str, SecretStr)) else value


def _token(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if text.startswith(_ELSEWHERE):
        return value
    if len(text) < LEAST_TOKEN or not (text.isascii() and text.isprintable()) or " " in text:
        raise ValueError(
            f"must have at least {LEAST_TOKEN} printable ASCII characters and no spaces, or be "
            "env:NAME or file:/path"
        )
    return value


class OperatorApi(ConfigModel):
    """The table `[api]`; the API answers 404 while it has no token."""

    token: Annotated[
        tuple[Annotated[SecretStr, AfterValidator(_token)], ...], BeforeValidator(_several)
    ] = Field((), description="Bearer tokens of operators: text, env:NAME or file:/path")

    web_roots: str = Field(
        "", description="directory for the web roots of new sites; empty: beside the first site's"
    )

    def tokens(self) -> list[bytes]:
        """The tokens as bytes, read now; those that cannot be read or are too short are left out.

        A token in a file can therefore be exchanged without a change of the configuration.
        """
        found = []
        for given in self.token:
            try:
                text = secret_of(given)
            except CredentialError:
                continue
            if len(text) >= LEAST_TOKEN:
                found.append(text.encode())
        return found
