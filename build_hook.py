"""Build the template of the model into an installation, so that the first command need not (`model/template.py`).

Hatchling calls the hook for a wheel and for an editable installation. Without DuckDB it does nothing: then the first
command builds the template.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class TemplateHook(BuildHookInterface[Any]):
    """Write the template and its manifest into the package's folder, and add them to the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the template before the files of the wheel are collected."""
        sys.path.insert(0, self.root)
        try:
            from nsys_insight.model import template
        except ImportError as error:
            self.app.display_warning(f"{error}: the first command will build the model")
            return
        finally:
            sys.path.remove(self.root)
        package = Path(self.root) / "nsys_insight"
        file, manifest = package / template.PACKAGED_FILE, package / template.PACKAGED_MANIFEST
        file.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as folder:
            template.write_template(Path(folder) / file.name)
            (Path(folder) / file.name).replace(file)
        manifest.write_text(template.describe_package(has_times=version == "editable"), encoding="utf-8")
        build_data["artifacts"] += [
            f"/nsys_insight/{path}" for path in (template.PACKAGED_FILE, template.PACKAGED_MANIFEST)
        ]
