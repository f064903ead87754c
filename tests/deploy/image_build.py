"""Runs the steps of a Dockerfile, with this machine's file system in place of the base images."""

import os
import posixpath
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.deploy.dockerfile import Stage, Step, parse_stages, read_variables
from tests.engines import container
from tests.engines.container import Layer

# In the official images, it is in /usr/local/bin. Python finds its library by the path of its executable.
PYTHON = Path(sys.executable).resolve().with_name("python")
_BASE_PATH = f"{PYTHON.parent}:/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
# The build gets all other variables of this machine, because some may configure pip.
_REMOVED_PREFIXES = ("INBOX_", "PYTHON", "VIRTUAL_ENV", "PATH")


@dataclass
class Image:
    """A stage while it is built, and its working folder."""

    layer: Layer
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": _BASE_PATH})
    folder: str = "/"


class ImageBuild:
    """Builds the checkout's Dockerfile: `image` is the result, `stage` has the instructions for running it."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        self._context = checkout
        self._built: dict[str, Image] = {}
        for number, stage in enumerate(parse_stages((checkout / "Dockerfile").read_text())):
            self.stage, self.image = stage, Image(create_base_layer(folder / str(number)))
            self._build(stage, self.image)
            self._built[stage.name] = self.image

    def _build(self, stage: Stage, image: Image) -> None:
        for step in stage.steps:
            if step.instruction == "ENV":
                image.environment |= read_variables(step, image.environment)
            elif step.instruction == "WORKDIR":
                image.folder = step.rest
                image.layer.path(image.folder).mkdir(parents=True, exist_ok=True)
            elif step.instruction == "COPY":
                self._copy(step, image)
            elif step.instruction == "RUN":
                _run(step, image)

    def _copy(self, step: Step, image: Image) -> None:
        *sources, target = step.words
        target_path = posixpath.normpath(posixpath.join(image.folder, target))
        for source in sources:
            options: dict[str, Any]
            if "from" in step.options:
                # Hard links save time, and nothing writes to a copied file.
                origin, options = self._built[step.options["from"]].layer.path(source), {"copy_function": os.link}
            else:
                origin, options = self._context / source, {"ignore": shutil.ignore_patterns("__pycache__")}
            destination = image.layer.path(target_path)
            if origin.is_dir():
                shutil.copytree(origin, destination, symlinks=True, dirs_exist_ok=True, **options)
            else:
                destination = destination / origin.name if target.endswith("/") else destination
                destination.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(origin, destination)


def create_base_layer(folder: Path) -> Layer:
    """Returns a layer over this machine's file system that has a `python`."""
    # Folders that exist before the overlay is mounted belong to this user, so the build can write to them.
    link = folder / "upper" / PYTHON.relative_to("/")
    link.parent.mkdir(parents=True)
    link.symlink_to(Path(sys.executable).resolve())
    (folder / "upper" / "opt").mkdir(exist_ok=True)
    return Layer(folder)


def _run(step: Step, image: Image) -> None:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(_REMOVED_PREFIXES)}
    done = container.run(image.layer, step.command, variables | image.environment, image.folder)
    if done.returncode:
        raise AssertionError(f"RUN {step.rest}\n{done.stdout}{done.stderr}")
