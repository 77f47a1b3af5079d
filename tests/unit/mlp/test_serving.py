"""The server of models: loaders, the protocol as its clients speak it, and what it refuses."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import tritonclient.http as triton
from sklearn.linear_model import LogisticRegression

from mlp.serving.errors import BadRequest, NoModel
from mlp.serving.launch import listen
from mlp.serving.loaders import LoadedModel, Tensor, load
from mlp.serving.server import ModelServer
from mlp.serving.tensors import read, write


class Echo(LoadedModel):
    """Gives back what it is given."""

    platform = "echo"

    def __init__(self) -> None:
        self.inputs = [Tensor("x", "FP32", (-1,))]
        self.outputs = [Tensor("x", "FP32", (-1,))]

    def predict(self, inputs: dict[str, Any]) -> dict[str, Any]:
        if "boom" in inputs:
            raise RuntimeError("boom")
        return inputs


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("MLP_APP_PORT", "0")
    with listen() as listener:
        port = listener.getsockname()[1]
        server = ModelServer(listener, Echo(), "echo", "3")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"127.0.0.1:{port}"
        server.shutdown()
        thread.join()


def ask(where: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(where, timeout=60)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize(
    ("datatype", "values"),
    [
        ("FP32", np.array([[1.5, -2.0]], np.float32)),
        ("INT64", np.array([[7, -8], [9, 10]], np.int64)),
        ("BOOL", np.array([True, False])),
        ("BYTES", np.array(["één", ""], dtype=object)),
        ("FP64", np.empty((0, 3))),
    ],
)
def test_triton_s_client_gets_back_what_it_sends(
    served: str, datatype: str, values: Any, binary: bool
) -> None:
    with triton.InferenceServerClient(served, network_timeout=60.0, connection_timeout=60.0) as client:
        given = triton.InferInput("x", list(values.shape), datatype)
        given.set_data_from_numpy(values, binary_data=binary)
        asked = triton.InferRequestedOutput("x", binary_data=binary)
        answer = client.infer("echo", [given], outputs=[asked], request_id="17")
        assert answer.get_response()["id"] == "17"
        got = answer.as_numpy("x")
        if datatype == "BYTES":
            got = np.array([v.decode() if isinstance(v, bytes) else v for v in got], dtype=object)
        assert got.shape == values.shape
        assert (got == values).all()


def test_triton_s_client_asks_about_server_and_model(served: str) -> None:
    with triton.InferenceServerClient(served, network_timeout=60.0, connection_timeout=60.0) as client:
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("echo")
        assert client.is_model_ready("echo", "3")
        assert not client.is_model_ready("other")
        assert client.get_server_metadata()["extensions"] == ["binary_tensor_data"]
        assert client.get_model_metadata("echo")["inputs"] == [
            {"name": "x", "datatype": "FP32", "shape": [-1]}
        ]


def test_a_packed_request_is_unpacked(served: str) -> None:
    with triton.InferenceServerClient(served, network_timeout=60.0, connection_timeout=60.0) as client:
        given = triton.InferInput("x", [1000], "FP32")
        given.set_data_from_numpy(np.zeros(1000, np.float32))
        answer = client.infer("echo", [given], request_compression_algorithm="gzip")
        assert answer.as_numpy("x").shape == (1000,)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "no JSON"),
        (b"[]", "no JSON object"),
        (b"{}", "inputs is missing"),
        (b'{"inputs": [{"name": "x", "shape": [2], "datatype": "FP32", "data": [1]}]}', "its shape"),
        (b'{"inputs": [{"name": "x", "shape": [-1], "datatype": "FP32", "data": [1]}]}', "whole numbers"),
        (b'{"inputs": [{"name": "x", "shape": [1], "datatype": "FP1", "data": [1]}]}', "FP1"),
        (b'{"inputs": [{"name": "x", "shape": [1], "datatype": ["a"], "data": [1]}]}', "datatype"),
        (b'{"inputs": [{"name": "x", "shape": [1], "datatype": "INT8", "data": [999]}]}', "not of its"),
        (b'{"inputs": [{"name": "x", "shape": [1], "datatype": "FP32"}]}', "no data"),
        (
            b'{"inputs": [{"name": "x", "shape": [9], "datatype": "FP32", "parameters": {"binary_data_size": 36}}]}',
            "are left",
        ),
    ],
)
def test_an_invalid_inference_request_is_refused_with_a_valid_form(
    served: str, body: bytes, said: str
) -> None:
    status, answer = ask(served, "POST", "/v2/models/echo/infer", body)
    assert status == 400
    assert said in answer["error"]
    assert ask(served, "GET", "/v2/health/ready")[0] == 200


def test_a_model_that_fails_and_what_is_not_there_say_so(served: str) -> None:
    body = b'{"inputs": [{"name": "boom", "shape": [1], "datatype": "FP32", "data": [1]}]}'
    assert ask(served, "POST", "/v2/models/echo/infer", body)[0] == 500
    assert ask(served, "POST", "/v2/models/other/infer", body)[0] == 404
    assert ask(served, "GET", "/v2/models/echo/versions/4")[0] == 404
    assert ask(served, "GET", "/v2/models/echo/infer")[0] == 405
    assert ask(served, "GET", "/elsewhere")[0] == 404
    chunked = {"Transfer-Encoding": "chunked"}
    assert ask(served, "POST", "/v2/models/echo/infer", b"zz\r\n", **chunked)[0] == 400


def test_a_shutdown_waits_for_the_answer_in_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLP_APP_PORT", "0")
    begun, check_cancelled = threading.Event(), threading.Event()

    class Slow(Echo):
        def predict(self, inputs: dict[str, Any]) -> dict[str, Any]:
            begun.set()
            assert check_cancelled.wait(60)
            return inputs

    said: list[tuple[int, Any]] = []
    with listen() as listener:
        where = f"127.0.0.1:{listener.getsockname()[1]}"
        server = ModelServer(listener, Slow(), "echo", "3")
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        body = json.dumps({"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [2.5]}]})
        asks = threading.Thread(target=lambda: said.append(ask(where, "POST", "/v2/models/echo/infer", body)))
        asks.start()
        assert begun.wait(60)
        server.shutdown()
        closes = threading.Thread(target=server.server_close)
        closes.start()
        closes.join(0.2)
        assert closes.is_alive(), "it went while somebody waited for an answer"
        check_cancelled.set()
        closes.join(60)
        asks.join(60)
    ((status, answer),) = said
    assert (status, answer["outputs"][0]["data"]) == (200, [2.5])


def test_binary_data_that_is_cut_or_too_much_is_refused() -> None:
    one = {"name": "x", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": 5}}
    with pytest.raises(BadRequest, match="middle of a value"):
        read({"inputs": [one]}, b"\x09\x00\x00\x00a")
    with pytest.raises(BadRequest, match="belong to no input"):
        read({"inputs": [one]}, b"\x01\x00\x00\x00aa")
    with pytest.raises(BadRequest, match="there is no output y"):
        write({}, {"x": np.zeros(1)}, {"outputs": [{"name": "y"}]})


def a_classifier(directory: Path) -> None:
    x = np.array([[0.0], [1.0], [10.0], [11.0]])
    joblib.dump(LogisticRegression().fit(x, ["low", "low", "high", "high"]), directory / "model.pkl")


def test_a_classifier_tells_its_classes_and_how_sure_it_is(tmp_path: Path) -> None:
    a_classifier(tmp_path)
    model = load(tmp_path)
    found = model.predict({"anything": np.array([[0.5], [12.0]])})
    assert found["predict"].tolist() == ["low", "high"]
    assert found["predict_proba"].shape == (2, 2)
    assert model.inputs == [Tensor("input", "FP64", (-1, 1))]
    assert [each.name for each in model.outputs] == ["predict", "predict_proba"]


def test_an_mlflow_model_is_found_by_its_description_and_nothing_outside_it_is_loaded(tmp_path: Path) -> None:
    inside = tmp_path / "run"
    inside.mkdir()
    a_classifier(inside)
    flavors = "flavors:\n  sklearn:\n    pickled_model: {}\n"
    (inside / "MLmodel").write_text(flavors.format("model.pkl"))
    assert load(inside).platform == "sklearn"
    (inside / "MLmodel").write_text(flavors.format("../model.pkl"))
    with pytest.raises(NoModel, match="outside of the model"):
        load(inside)


def a_note(directory: Path) -> None:
    (directory / "notes.txt").write_text("x")


def no_estimator(directory: Path) -> None:
    joblib.dump({"weights": [1, 2]}, directory / "model.joblib")


def broken(directory: Path) -> None:
    (directory / "model.joblib").write_bytes(b"\x80\x04broken")


def two(directory: Path) -> None:
    a_classifier(directory)
    joblib.dump({}, directory / "other.pkl")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda _: None, "but nothing"),
        (a_note, "but notes.txt"),
        (no_estimator, "has no method predict"),
        (broken, "model.joblib cannot be loaded"),
        (two, "several models"),
    ],
)
def test_an_invalid_model_is_reported_with_a_valid_form(
    tmp_path: Path, made: Callable[[Path], None], said: str
) -> None:
    made(tmp_path)
    with pytest.raises(NoModel, match=said):
        load(tmp_path)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    (tmp_path / "net.onnx").write_bytes(b"x")
    with pytest.raises(NoModel, match="needs onnxruntime"):
        load(tmp_path)
