"""A bundle as a folder, or as one archive."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

from sopilot.adapters.text_files import write_whole
from sopilot.language.diagnostics import Place, mistake


def write_bundle(path: Path, files: Mapping[str, str]) -> None:
    """Its owner's alone; nothing that is there is overwritten. An empty folder is as good as
    none."""
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        cure = "name a folder that is empty or not there yet, or NAME.zip"
        raise mistake("exists", "there is something already", Place(str(path)), cure)
    for name in files:
        # Ids of sessions are whatever a program gave them.
        if "\\" in name or "\0" in name or {"", ".", ".."} & set(name.split("/")):
            raise mistake(
                "unsafe-name",
                f"`{name}` cannot name a file of a bundle",
                help="export a time in which this session has no part",
            )
    if path.suffix == ".zip":
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with (
            os.fdopen(handle, "wb") as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            for name, text in files.items():
                archive.writestr(f"{path.stem}/{name}", text.encode("utf-8", "surrogatepass"))
        return
    for name, text in files.items():
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(target, text, private=True)
