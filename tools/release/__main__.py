"""Makes the files of a release in `build/release/VERSION`, and prints the commands that publish them: `python -m release VERSION`."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from mlp_cluster import helm
from mlp_cluster.running import ClusterError
from release import checks, sbom
from release.index import UV, with_index
from release.versions import ROOT

NEEDED = (
    "mlp_hub/proxy/dist/",
    "mlp_hub/web/static/panel.js",
    "mlp_hub/web/documentation/en/index.html",
    "mlp_hub/web/documentation/zh-CN/index.html",
    "share/jupyter/labextensions/mlp-hub/package.json",
)
"""Parts that a build makes before the wheel, and that a wheel without them would lack silently."""


def main(version: str) -> int:
    """Check, build and tell; return the exit status."""
    if found := list(checks.problems(version)):
        sys.stderr.write("\n  - ".join([f"{version} is not released:", *found]) + "\n")
        return 1
    out = ROOT / "build" / "release" / version
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    packages(out, version)
    chart(out)
    parts = len(sbom.write(out / f"mlp-hub-{version}.cdx.json").components)
    (out / "NOTES.md").write_text(checks.notes(version, (ROOT / "CHANGELOG.md").read_text()) + "\n")
    files = sorted(path for path in out.iterdir() if path.is_file())
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (out / "SHA256SUMS").write_text(sums)
    sizes = [f"{path.stat().st_size / 1e6:8.2f} MB  {path.relative_to(ROOT)}" for path in files]
    told = [f"{parts} parts are listed. To publish:", *(f"  {line}" for line in to_publish(version))]
    sys.stdout.write("\n".join([*sizes, *told]) + "\n")
    return 0


def packages(out: Path, version: str) -> None:
    """Build wheel and sdist; raises SystemExit if they lack a part."""
    epoch = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    env = {**with_index(), "SOURCE_DATE_EPOCH": epoch.stdout.strip()}
    subprocess.run([UV, "build", "-q", "--wheel", "--sdist", "--out-dir", out, ROOT], env=env, check=True)
    (out / ".gitignore").unlink(missing_ok=True)
    with zipfile.ZipFile(out / f"mlp_hub-{version}-py3-none-any.whl") as wheel:
        names = wheel.namelist()
    with tarfile.open(out / f"mlp_hub-{version}.tar.gz") as sdist:
        sources = sdist.getnames()
    lost = [part for part in NEEDED if not any(part in name for name in names)]
    lost += [part for part in NEEDED[:4] if not any(part in name for name in sources)]
    if lost:
        sys.exit(f"the packages lack {', '.join(lost)}: run `make install` first")


def chart(out: Path) -> None:
    """Package the chart."""
    try:
        program = helm.build()
    except ClusterError as error:
        sys.exit(f"The chart is not packaged: {error}")
    command: list[str | Path] = [program, "package", ROOT / "helm" / "mlp-hub", "--destination", out]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def to_publish(version: str) -> list[str]:
    """Return the commands that make the release public; nothing runs them."""
    out = f"build/release/{version}"
    return [
        f'git tag -a v{version} -m "MLP Hub {version}" && git push origin v{version}',
        f"uv publish {out}/mlp_hub-{version}-py3-none-any.whl {out}/mlp_hub-{version}.tar.gz",
        f"helm push {out}/mlp-hub-{version}.tgz oci://REGISTRY/charts",
        f"sudo make images REPOSITORY=REGISTRY/mlp-hub TAG={version}, and push each of them",
        f"{out}/NOTES.md is the text of the release; attach SHA256SUMS and the .cdx.json file",
    ]


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1]:
        sys.exit("Which version? make release VERSION=1.2.3")
    sys.exit(main(sys.argv[1]))
