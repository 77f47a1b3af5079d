"""Models as they cross the wire, and as MLflow describes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from mlp_api.localized import Text
from mlp_api.stored import models as api
from mlp_hub.domain.jobs import names
from mlp_hub.domain.stored.model import ModelPhase, ModelStage, ModelVersion
from mlp_hub.service.models.lineage import lineage_from, text_of
from mlp_hub.service.support.units import when

_STATES: Mapping[ModelPhase, api.ModelState] = {
    ModelPhase.CREATING: "creating",
    ModelPhase.READY: "ready",
    ModelPhase.ERROR: "error",
    ModelPhase.DELETING: "deleting",
}
_STAGES: Mapping[ModelStage, api.ModelUse] = {
    ModelStage.NONE: "none",
    ModelStage.STAGING: "staging",
    ModelStage.PRODUCTION: "production",
    ModelStage.ARCHIVED: "archived",
}
_FLAVORS: Mapping[str, tuple[str, str]] = {
    "tensorflow-savedmodel": ("tensorflow", "saved_model_dir"),
    "keras": ("keras", "data"),
    "hdf5": ("keras", "data"),
    "onnx": ("onnx", "data"),
    "torch": ("pytorch", "model_data"),
    "pickle": ("sklearn", "pickled_model"),
}
"""MLflow's flavor of each format that it has one of, and how that names the file; others are named as they are here."""

_PYTHON_FUNCTIONS = {"sklearn": "model_path", "onnx": "data"}
"""Flavors that MLflow loads as a function of Python too, and how that names the file."""


def to_wire(model: ModelVersion) -> api.Model:
    """Return a version as it crosses the wire."""
    item = model.item
    return api.Model(
        name=model.model,
        version=model.version,
        user=item.user,
        tenant=item.tenant,
        uid=item.uid,
        size=item.charged,
        files=model.files,
        src=text_of(model.source),
        state=_STATES[model.phase],
        stage=_STAGES[model.stage],
        format=model.format.name,
        main=model.format.main,
        pickled=model.format.pickled,
        facts=dict(model.format.facts),
        message=Text(model.message),
        lineage=lineage_from(model.lineage),
        created_at=when(item.made_at),
    )


def mlmodel(model: ModelVersion) -> str:
    """Write the `MLmodel` file that MLflow reads, for a version that has none; every value is JSON, which is YAML."""
    flavor, key = _FLAVORS.get(model.format.name, (model.format.name or "files", "data"))
    data = "." if model.format.name == "tensorflow-savedmodel" else model.format.main or "."
    made = datetime.fromtimestamp(model.item.made_at, UTC)
    lineage = lineage_from(model.lineage)
    about = {
        "model_uuid": model.item.uid,
        "run_id": lineage.job_uid,
        "utc_time_created": f"{made:%Y-%m-%d %H:%M:%S.%f}",
        "model_size_bytes": model.item.charged,
        "metadata": {
            "mlp_model": names.reference(model.model, model.version),
            "mlp_src": text_of(model.source),
            "metrics": dict(lineage.metrics),
        },
    }
    lines = ["artifact_path: model", "flavors:", f"  {flavor}:", f"    {key}: {json.dumps(data)}"]
    if flavor in _PYTHON_FUNCTIONS:
        module, path = f"mlflow.{flavor}", _PYTHON_FUNCTIONS[flavor]
        lines += [
            "  python_function:",
            f"    loader_module: {json.dumps(module)}",
            f"    {path}: {json.dumps(data)}",
        ]
    return "\n".join([*lines, *(f"{name}: {json.dumps(value)}" for name, value in about.items()), ""])
