"""Open weights by the name that people give."""

from __future__ import annotations

import os
from pathlib import Path

from sopilot.messages.errors import UserMistake
from sopilot_lab.lens.open_weights import OpenWeights, load_weights


def named_weights(model: str, *, device: str = "cpu", dtype: str = "float32") -> OpenWeights:
    # The bar over a GGUF file heeds the environment alone, and only before it is imported.
    os.environ.setdefault("TQDM_DISABLE", "1")
    if model == "local":
        from sopilot.models.local import local_model_file

        name = "SmolLM2-135M-Instruct"
        return load_weights(local_model_file(), name, device=device, dtype=dtype)
    path = Path(model)
    if not path.exists():
        raise UserMistake(f"`{model}` is neither `local`, a GGUF file nor a folder")
    return load_weights(path, device=device, dtype=dtype)
