"""Open weights by the name that people give."""

from __future__ import annotations

import os
from pathlib import Path

from sopilot.lab.lens._open_weights import OpenWeights, load_weights
from sopilot.language.diagnostics import UserMistake


def named_weights(model: str) -> OpenWeights:
    # The bar over a GGUF file heeds the environment alone, and only before it is imported.
    os.environ.setdefault("TQDM_DISABLE", "1")
    if model == "local":
        from sopilot.adapters.model_local_file import local_model_file

        return load_weights(local_model_file(), "SmolLM2-135M-Instruct")
    path = Path(model)
    if not path.exists():
        raise UserMistake(f"`{model}` is neither `local`, a GGUF file nor a folder")
    return load_weights(path)
