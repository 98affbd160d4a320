"""A bundle as a folder, or as one archive."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sopilot.adapters.text_files import write_whole
from sopilot.language.diagnostics import Place, mistake

_MOST_TIMES, _LEAST_SUSPECT = 200, 64 << 20
"""What is written in a bundle repeats itself some ten times; a thousand times is made to fill a
disk."""


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


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The bundle as a folder, an archive for as long as it is looked at."""
    if path.is_dir():
        yield path
        return
    place, ours = Place(str(path)), "name the folder or the .zip that `sopilot export` wrote"
    if not path.is_file():
        raise mistake("no-archive", "this is no file", place, ours)
    with tempfile.TemporaryDirectory() as room:
        try:
            with zipfile.ZipFile(path) as archive:
                unpacked_bytes = sum(one.file_size for one in archive.infolist())
                if unpacked_bytes > _LEAST_SUSPECT + _MOST_TIMES * path.stat().st_size:
                    told = f"unpacked it would have {unpacked_bytes >> 20} MB"
                    raise mistake("no-archive", told, place, ours)
                if unpacked_bytes > shutil.disk_usage(room).free:
                    cure = "set TMPDIR to a place with more room"
                    raise mistake("no-room", f"unpacked it does not fit into {room}", place, cure)
                archive.extractall(room)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
            raise mistake("no-archive", f"it cannot be unpacked: {error}", place, ours) from error
        inside = list(Path(room).iterdir())
        yield inside[0] if len(inside) == 1 and inside[0].is_dir() else Path(room)
