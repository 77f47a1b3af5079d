"""Real models of each format, made by their own libraries, are registered, deployed and asked by Triton's client: they answer as there."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlp_hub.domain.tenants.tenant_context import SYSTEM
from support.files import make_models
from support.rigs.app_rig import door, running_apps

ROWS = make_models.ROWS
MAKER = Path(make_models.__file__)


def infer(where: str, model: str, *inputs: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Ask a model with inputs in the order of its own description; return all outputs."""
    import tritonclient.http as triton

    with triton.InferenceServerClient(where, network_timeout=120.0, connection_timeout=120.0) as client:
        described = client.get_model_metadata(model)
        asked = []
        for each, rows in zip(described["inputs"], inputs, strict=True):
            one = triton.InferInput(each["name"], list(rows.shape), each["datatype"])
            one.set_data_from_numpy(rows)
            asked.append(one)
        answer = client.infer(model, asked)
        return {each["name"]: answer.as_numpy(each["name"]) for each in described["outputs"]}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What TensorFlow made."""
    root = Path(tmp_path_factory.mktemp("made"))
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "TF_NUM_INTRAOP_THREADS": "1"}
    subprocess.run([sys.executable, str(MAKER), str(root)], check=True, env={**os.environ, **quiet})
    return root


def write_onnx(directory: Path) -> None:
    """Write a layer of a network: relu(xW + b), and the largest of each row."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    w = numpy_helper.from_array(np.array([[1.0, -1.0], [0.5, 2.0]], np.float32), "w")
    b = numpy_helper.from_array(np.array([0.25, -0.5], np.float32), "b")
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["y"]),
        helper.make_node("ArgMax", ["y"], ["best"], axis=1, keepdims=0),
    ]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])]
    answers = [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2]),
        helper.make_tensor_value_info("best", TensorProto.INT64, ["n"]),
    ]
    graph = helper.make_graph(nodes, "layer", given, answers, [w, b])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    onnx.checker.check_model(model)
    onnx.save(model, directory / "layer.onnx")


def write_mlflow(directory: Path) -> None:
    """Write a classifier as MLflow does."""
    import joblib
    from sklearn.linear_model import LogisticRegression

    joblib.dump(LogisticRegression().fit(ROWS, ["a", "b", "a"]), directory / "model.pkl")
    (directory / "MLmodel").write_text(
        "flavors:\n  python_function:\n    loader_module: mlflow.sklearn\n    model_path: model.pkl\n"
        "  sklearn:\n    pickled_model: model.pkl\n    serialization_format: cloudpickle\n"
    )


async def test_a_model_of_each_format_answers_as_its_own_library_does(tmp_path: Path, made: Path) -> None:
    import joblib
    import onnxruntime

    told = json.loads((made / "told.json").read_text())["told"]

    async with running_apps(tmp_path) as rig:

        async def ask(name: str, *inputs: np.ndarray[Any, Any]) -> dict[str, Any]:
            found = await rig.endpoint(lambda e: bool(e.replicas), name)
            async with door(found.replicas[0]) as where:
                return await asyncio.to_thread(infer, where, name, *inputs)

        for name in ("keras", "saved"):
            await rig.model(name, lambda to, name=name: shutil.copytree(made / name, to, dirs_exist_ok=True))
        await rig.model("layer", write_onnx)
        await rig.model("flow", write_mlflow)
        formats = {}
        for name in ("keras", "saved", "layer", "flow"):
            formats[name] = (await rig.platform.models.get(SYSTEM, "ann", name)).format
            await rig.deploy(name, name, ram=4096)
        assert formats == {
            "keras": "keras",
            "saved": "tensorflow-savedmodel",
            "layer": "onnx",
            "flow": "mlflow",
        }

        home = rig.directories.homes / "ann"
        session = onnxruntime.InferenceSession(str(home / "layer" / "layer.onnx"))
        for rows in (ROWS, ROWS[:1]):
            found = await ask("layer", rows)
            y, best = session.run(None, {"x": rows})
            np.testing.assert_array_equal(found["best"], best)
            np.testing.assert_allclose(found["y"], y, rtol=1e-6)
        flow = await ask("flow", ROWS.astype(np.float64))
        own = joblib.load(home / "flow" / "model.pkl")
        assert [one.decode() for one in flow["predict"]] == own.predict(ROWS).tolist()
        np.testing.assert_allclose(
            flow["predict_proba"], own.predict_proba(ROWS.astype(np.float64)), rtol=1e-9
        )
        for name in ("keras", "saved"):
            (answer,) = (await ask(name, ROWS)).values()
            np.testing.assert_allclose(answer, told[name], rtol=1e-5)


def test_inputs_and_outputs_of_a_model_with_several_go_by_their_names(made: Path) -> None:
    two = json.loads((made / "told.json").read_text())["two"]
    assert sorted(two["inputs"]) == ["left", "right"]
    assert len(two["served"]) == 2
    for served, own in zip(two["served"], two["own"], strict=True):
        np.testing.assert_allclose(served, own, rtol=1e-5)


def test_a_model_that_is_none_is_broken_or_brings_code_says_what_would_be_right(made: Path) -> None:
    wrong = json.loads((made / "told.json").read_text())["wrong"]
    assert set(wrong) == {"broken", "lambda", "mute"}
    assert wrong["broken"].startswith("net.keras cannot be loaded: ")
    assert wrong["lambda"].startswith("net.keras cannot be loaded: ")
    assert "Lambda" in wrong["lambda"]
    assert "no signature that could be asked; export it with one (model.export)" in wrong["mute"]


async def test_a_model_that_is_cut_off_or_fills_the_memory_leaves_its_app_in_error_with_the_cause(
    tmp_path: Path,
) -> None:
    async with running_apps(tmp_path) as rig:

        def cut(directory: Path) -> None:
            write_onnx(directory)
            whole = (directory / "layer.onnx").read_bytes()
            (directory / "layer.onnx").write_bytes(whole[: len(whole) // 2])

        def swells(directory: Path) -> None:
            import joblib

            joblib.dump(np.zeros(1 << 26), directory / "swells.joblib", compress=("zlib", 1))

        await rig.model("cut", cut)
        await rig.model("swells", swells)
        await rig.deploy("cut", "cut")
        await rig.deploy("swells", "swells", ram=256)
        told = await rig.app(lambda a: a.state == "error", "cut")
        assert "layer.onnx cannot be loaded" in told.tail
        swollen = await rig.app(lambda a: a.state == "error", "swells")
        assert "memory" in str(swollen.message) + swollen.tail
