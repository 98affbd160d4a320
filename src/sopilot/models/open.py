"""Models by name, as people type it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sopilot.agent.reference.executor import Reference
from sopilot.agent.reference.judging import PredicateJudge
from sopilot.messages.errors import UserMistake, mistake
from sopilot.protocols import Model, User

MODEL_HELP: Final = (
    "reference (default, needs nothing), local (SmolLM2, extra `local`), replay:FILE, "
    "http(s)://host/v1#model (any OpenAI-compatible endpoint), mailbox:DIR (a program that "
    "answers files in DIR), or provider/name (extra `hosted`)."
)

URL_VARIABLE: Final = "SOPILOT_MODEL_URL"
KEY_VARIABLE: Final = "SOPILOT_MODEL_KEY"
MAILBOX: Final = "mailbox:"


async def close_model(model: Model | User | None) -> None:
    """Close the connections of a model, or of a user that a model plays."""
    close = getattr(model, "close", None)
    if close is not None:
        await close()


def make_model(
    name: str,
    *,
    judge: PredicateJudge | None = None,
    key_variable: str | None = None,
    served: str | None = None,
    about: Mapping[str, str] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Model:
    """Make the model of that name. Import and fetch only what it needs.

    ``openai-compatible`` takes its address from ``SOPILOT_MODEL_URL``. The key of an endpoint is
    in ``key_variable``, else in ``SOPILOT_MODEL_KEY``, else in ``OPENAI_API_KEY``. A provider's
    library has its own variable. If ``served`` is set, answers by other models are refused.
    ``about`` describes the run to a mailbox.
    """
    if key_variable is not None and not environment.get(key_variable):
        message = f"the key of `{public_name(name)}` belongs in {key_variable}, which isn't set"
        raise mistake("no-key", message, help=f"export {key_variable}=…")
    if name == "reference":
        if judge is None:
            raise UserMistake("the reference executor needs a handbook to judge by")
        return Reference(judge)
    if name == "local":
        from sopilot.models.local import LocalModel

        return LocalModel(environment)
    if name.startswith("replay:"):
        from sopilot.models.replay import load_replay

        return load_replay(name.removeprefix("replay:"))
    if name.startswith(MAILBOX):
        from sopilot.models.mailbox import MailboxModel

        return MailboxModel(name.removeprefix(MAILBOX), about=about)
    if name == "openai-compatible":
        name = environment.get(URL_VARIABLE, "")
        if not name:
            raise UserMistake(f"set {URL_VARIABLE} to http(s)://host/v1#model")
    if name.startswith(("http://", "https://")):
        return _endpoint(name, environment, key_variable, served)
    provider, slash, model = name.partition("/")
    if slash and provider and model:
        from sopilot.models.hosted import HostedModel

        key = environment[key_variable] if key_variable is not None else None
        return HostedModel(provider, model, key=key, served=served)
    raise mistake("unknown-model", f"there is no model `{name}`", help=MODEL_HELP)


def public_name(name: str) -> str:
    """A model's name for publication, without its address or folder."""
    if name.startswith(("http://", "https://")):
        return name.partition("#")[2] or "endpoint"
    for scheme in (MAILBOX, "replay:"):
        if name.startswith(scheme):
            return scheme + Path(name.removeprefix(scheme)).name
    return name


def asked_model(name: str) -> str | None:
    """The model that an answer should name, where the answer names one."""
    if name.startswith(("http://", "https://")):
        return name.partition("#")[2] or None
    _, slash, model = name.removeprefix("inspect:").partition("/")
    return model if slash and ":" not in name.removeprefix("inspect:").partition("/")[0] else None


def _endpoint(
    name: str, environment: Mapping[str, str], key_variable: str | None, served: str | None
) -> Model:
    from sopilot.files.addresses import require_url
    from sopilot.models.http import HttpModel

    url, _, model = name.partition("#")
    if not model:
        raise UserMistake(f"name the model behind `#`: {name}#model")
    variables = (key_variable,) if key_variable else (KEY_VARIABLE, "OPENAI_API_KEY")
    key = next((environment[variable] for variable in variables if environment.get(variable)), None)
    return HttpModel(require_url(url), model, key=key, served=served)
