"""The stand-in's environments, as pages ask for them."""

from __future__ import annotations

from typing import Any

from support.front.shapes import when

Json = dict[str, Any]
LOCK = "ab" * 32


def environment(name: str, **change: Any) -> Json:
    """An environment of default that is ready."""
    return {
        "name": name, "tenant": "default", "user": "ann", "state": "ready", "size": 310 << 20,
        "packages": {"pandas": "3.0.2", "numpy": "2.4.1", "python-dateutil": "2.9.0", "six": "1.17.0", "tzdata": "2026.1"},
        "lock": LOCK, "shared_with": [], "jobs": [], "servers": [], "message": "", "created_at": when(-86_400), "image": None, **change,
    }  # fmt: skip


class FrontEnvironments:
    """All environments, of default alone."""

    def __init__(self) -> None:
        self.asked: Json = {}
        self.rows = [
            environment("vision", jobs=["digits"], shared_with=["same"]),
            environment("fresh", state="creating", packages={}, lock="", size=0),
            environment(
                "people2", user="bob", state="error", packages={}, lock="", size=0,
                message="No solution found when resolving dependencies\n  cause: there is no version of humanize==99",
            ),
        ]  # fmt: skip

    def of_images(self) -> None:
        """Have what a team has where jobs run in containers."""
        images = {
            "vision": f"registry.example.org/ml/vision@sha256:{LOCK}",
            "speech": "registry.example.org/ml/speech:1",
        }
        self.rows = [
            environment(name, image=image, packages={}, size=0, lock=LOCK if "@" in image else "")
            for name, image in images.items()
        ]

    def answer(self, method: str, parts: list[str], body: Json) -> tuple[int, Any]:
        """Answer a request to the API."""
        mine = [row for row in self.rows if row["tenant"] == parts[1]]
        if method == "POST":
            self.asked = body
            image = body.get("image")
            state = "ready" if image else "creating"
            made = environment(
                body["name"], tenant=parts[1], state=state, packages={}, lock="", size=0, image=image
            )
            self.rows.append(made)
            return 201, made
        if len(parts) == 3:
            return 200, mine
        found = next((row for row in mine if row["name"] == parts[3]), None)
        if found is None:
            return 403, {"msg": f"environment {parts[3]} does not exist", "reason": "NotFound"}
        if method == "DELETE":
            if found["image"]:
                self.rows.remove(found)
                return 200, {**found, "state": "deleting"}
            found["state"] = "deleting"
            return 200, found
        lock = "".join(
            f"{name}=={version} \\\n    --hash=sha256:{LOCK}\n" for name, version in found["packages"].items()
        )
        if found["image"]:
            return 200, {"environment": found, "requirements": "", "lock": "", "log": ""}
        log = "Resolved 5 packages in 62ms\nInstalled 5 packages in 31ms\n + pandas==3.0.2"
        return 200, {"environment": found, "requirements": "pandas>=2.2\n", "lock": lock, "log": log}
