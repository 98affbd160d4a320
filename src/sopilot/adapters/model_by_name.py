"""Models by the name a person types."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from sopilot.language.diagnostics import Diagnostic, UserMistake
from sopilot.runtime.agent import Misbehaviour, PredicateJudge, Reference
from sopilot.runtime.session.protocols import Model

MODEL_HELP: Final = (
    "reference (default, needs nothing), local (SmolLM2, extra `local`), replay:FILE, "
    "http(s)://host/v1#model (any OpenAI-compatible endpoint), or provider/name (extra `hosted`)."
)
URL_VARIABLE: Final = "SOPILOT_MODEL_URL"
KEY_VARIABLE: Final = "SOPILOT_MODEL_KEY"


async def close_model(model: Model) -> None:
    """Lets go of connections, where a model holds any."""
    close = getattr(model, "close", None)
    if close is not None:
        await close()


def make_model(
    name: str,
    *,
    judge: PredicateJudge | None = None,
    misbehaviour: Misbehaviour | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Model:
    """The model of that name; nothing is imported or fetched that it does not need.

    ``openai-compatible`` takes its address from ``SOPILOT_MODEL_URL``. The key of
    an endpoint is in ``SOPILOT_MODEL_KEY``, else in ``OPENAI_API_KEY``.
    """
    if name == "reference":
        if judge is None:
            raise UserMistake("the reference executor needs a handbook to judge by")
        return Reference(judge, misbehaviour)
    if name == "local":
        from sopilot.adapters.model_local import LocalModel

        return LocalModel(environment)
    if name.startswith("replay:"):
        from sopilot.adapters.model_replay import load_replay

        return load_replay(name.removeprefix("replay:"))
    if name == "openai-compatible":
        name = environment.get(URL_VARIABLE, "")
        if not name:
            raise UserMistake(f"set {URL_VARIABLE} to http(s)://host/v1#model")
    if name.startswith(("http://", "https://")):
        return _endpoint(name, environment)
    provider, slash, model = name.partition("/")
    if slash and provider and model:
        from sopilot.adapters.model_hosted import HostedModel

        return HostedModel(provider, model)
    raise UserMistake([Diagnostic("unknown-model", f"there is no model `{name}`", help=MODEL_HELP)])


def _endpoint(name: str, environment: Mapping[str, str]) -> Model:
    from sopilot.adapters.model_http import HttpModel

    url, _, model = name.partition("#")
    if not model:
        raise UserMistake(f"name the model behind `#`: {name}#model")
    key = environment.get(KEY_VARIABLE) or environment.get("OPENAI_API_KEY")
    return HttpModel(url, model, key=key)
