"""The list of parts of a release as CycloneDX: Python packages of the installed hub, and npm packages within the bundles."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from release.index import UV, with_index
from release.versions import PACKAGES, ROOT

EXTRAS = ("hub", "spawner", "notebook", "training", "postgresql", "kubernetes", "s3", "kafka", "otlp")
"""Extras that a machine or an image of a release is made with."""
BUILD_ONLY = ("esbuild", "@esbuild/", "@types/")
"""Packages that the lock files count as dependencies, and that make bundles without being in them."""
SCHEMA = SchemaVersion.V1_6


def write(path: Path) -> Bom:
    """Write the list into a file and return it; raises ValueError if it does not keep to its schema."""
    bom = python_parts()
    for component in (*npm_parts(), of_pages()):
        bom.components.add(component)
    if bom.metadata.component is not None:
        bom.register_dependency(bom.metadata.component, bom.components)
    text = make_outputter(bom, OutputFormat.JSON, SCHEMA).output_as_string(indent=2)
    if wrong := JsonStrictValidator(SCHEMA).validate_str(text):
        raise ValueError(f"{path.name} is not valid CycloneDX: {wrong}")
    path.write_text(text + "\n")
    return bom


def python_parts() -> Bom:
    """Return the Python packages that a release installs, in the tested versions, with their checksums."""
    with TemporaryDirectory() as scratch:
        pinned = Path(scratch, "requirements.txt")
        extras = [word for extra in EXTRAS for word in ("--extra", extra)]
        command: list[str | Path] = [
            UV,
            "pip",
            "compile",
            "-q",
            "--python",
            sys.executable,
            "--generate-hashes",
            "--no-header",
            "--no-annotate",
        ]
        command += ["-c", ROOT / "constraints.txt", *extras, "-o", pinned, ROOT / "pyproject.toml"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=with_index())
        # hashes need no index in the list: a package is the same wherever it came from
        text = "".join(
            line for line in pinned.read_text().splitlines(keepends=True) if not line.startswith("--")
        )
        pinned.write_text(text)
        list_of: list[str | Path] = [
            sys.executable,
            "-m",
            "cyclonedx_py",
            "requirements",
            pinned,
            "--pyproject",
            ROOT / "pyproject.toml",
        ]
        list_of += ["--sv", SCHEMA.to_version(), "--of", "JSON", "--output-reproducible"]
        done = subprocess.run(list_of, check=True, capture_output=True, text=True, env=_plain())
    return Bom.from_json(json.loads(done.stdout))  # type: ignore[attr-defined, no-any-return]


def npm_parts() -> Iterator[Component]:
    """Yield the npm packages that are bundled, from the lock files; tools of the build are not in the bundles."""
    for folder in PACKAGES:
        lock: dict[str, Any] = json.loads((ROOT / folder / "package-lock.json").read_text())
        for place, package in lock["packages"].items():
            name = place.rpartition("node_modules/")[2]
            if name and not package.get("dev") and not name.startswith(BUILD_ONLY):
                yield _npm(name, package)


def of_pages() -> Component:
    """Return the generator of the documentation, whose scripts and styles are in the pages."""
    url = PackageURL("pypi", None, "zensical", version("zensical"))
    licence = LicenseFactory().make_from_string("MIT")
    return Component(name="zensical", version=url.version, purl=url, bom_ref=str(url), licenses=[licence])


def _npm(name: str, package: dict[str, Any]) -> Component:
    group, _, short = name.rpartition("/")
    licence = package.get("license")
    kind, _, digest = package.get("integrity", "").partition("-")
    url = PackageURL("npm", group or None, short, package["version"])
    return Component(
        type=ComponentType.LIBRARY,
        group=group or None,
        name=short,
        version=package["version"],
        purl=url,
        bom_ref=str(url),
        scope=ComponentScope.REQUIRED,
        licenses=[LicenseFactory().make_from_string(licence)] if licence else [],
        hashes=[HashType(alg=HashAlgorithm.SHA_512, content=base64.b64decode(digest).hex())]
        if kind == "sha512"
        else [],
    )


def _plain() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
