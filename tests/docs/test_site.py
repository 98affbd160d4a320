"""The documentation site builds without a warning and loads nothing over the network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"<(?:script|img|iframe)[^>]*\ssrc=[\"']?(https?:[^\"'\s>]+)")
LINKED = re.compile(
    r"<link(?=[^>]*rel=[\"']?(?:stylesheet|preconnect|icon))[^>]*href=[\"']?(https?:)"
)


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="needs the extra `docs`")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stderr) == (0, "")
    pages = {
        page.relative_to(tmp_path): page.read_text("utf-8") for page in tmp_path.rglob("*.html")
    }
    assert len(pages) > 50
    outside = [(name, *LOADED.findall(text), *LINKED.findall(text)) for name, text in pages.items()]
    assert [found for found in outside if len(found) > 1] == []
    assert "sopilot gateway" in pages[Path("reference/cli.html")]
    assert "sopilot guard serve|hook</code>" in pages[Path("reference/commands.html")]
    assert "Conversation.tell" in pages[Path("reference/api.html")]
