"""Loaders of models, by the files in their directory: the interface of a loaded one is the same for all.

Code that a model brings runs here, in its owner's own sandbox, and nowhere else.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mlp.serving.errors import BadRequest, NoModel
from mlp.serving.tensors import Named, datatype_of

KNOWN = "MLmodel, saved_model.pb, .keras, .h5, .onnx, .pt or .pth (TorchScript), .skops, .joblib, .pkl"
_MLFLOW_KEYS = ("pickled_model", "data", "model_data", "saved_model_dir", "model_path")


@dataclass(frozen=True)
class Tensor:
    """An input or output as the model's metadata tells it; -1 is any length."""

    name: str
    datatype: str
    shape: tuple[int, ...]


class LoadedModel(ABC):
    """A loaded model."""

    platform: str
    inputs: list[Tensor]
    outputs: list[Tensor]

    @abstractmethod
    def predict(self, inputs: Named) -> Named:
        """Answer one request."""

    def one(self, inputs: Named) -> Any:
        """Return the only input; raises `BadRequest` where there are others."""
        if len(inputs) != 1:
            raise BadRequest(f"this model takes one input, not {len(inputs)}")
        return next(iter(inputs.values()))


class Sklearn(LoadedModel):
    """An estimator of scikit-learn, or what has `predict` as these have: xgboost's and lightgbm's too."""

    platform = "sklearn"

    def __init__(self, estimator: Any) -> None:
        if not callable(getattr(estimator, "predict", None)):
            raise NoModel(
                f"what is in it is a {type(estimator).__name__}, which has no method predict; save the estimator itself"
            )
        self._estimator = estimator
        features = getattr(estimator, "n_features_in_", -1)
        self.inputs = [Tensor("input", "FP64", (-1, int(features)))]
        classes = getattr(estimator, "classes_", None)
        kind = "FP64" if not isinstance(classes, np.ndarray) else datatype_of(classes)
        self.outputs = [Tensor("predict", kind, (-1,))]
        if isinstance(classes, np.ndarray) and hasattr(estimator, "predict_proba"):
            self.outputs.append(Tensor("predict_proba", "FP64", (-1, len(classes))))

    def predict(self, inputs: Named) -> Named:
        """Return what it predicts, and of a classifier how sure it is of each class."""
        rows = self.one(inputs)
        found: Named = {"predict": np.asarray(self._estimator.predict(rows))}
        if len(self.outputs) > 1:
            found["predict_proba"] = np.asarray(self._estimator.predict_proba(rows))
        return found


class Keras(LoadedModel):
    """A model of Keras."""

    platform = "keras"

    def __init__(self, model: Any) -> None:
        self._model = model
        self.inputs = [_tensor(each) for each in model.inputs]
        self.outputs = [_tensor(each) for each in model.outputs]

    def predict(self, inputs: Named) -> Named:
        """Ask it; inputs go by name, a single one by whatever name it has."""
        if len(self.inputs) == 1:
            given: Any = self.one(inputs)
        else:
            missing = [each.name for each in self.inputs if each.name not in inputs]
            if missing:
                raise BadRequest(f"inputs are missing: {', '.join(missing)}")
            given = [inputs[each.name] for each in self.inputs]
        answer = self._model.predict_on_batch(given)
        answers = answer if isinstance(answer, (list, tuple)) else [answer]
        return {each.name: np.asarray(one) for each, one in zip(self.outputs, answers, strict=True)}


class SavedModel(LoadedModel):
    """A SavedModel of TensorFlow, asked by its signature `serving_default`, or the only one that it has."""

    platform = "tensorflow_savedmodel"

    def __init__(self, loaded: Any) -> None:
        signatures = dict(loaded.signatures)
        if not signatures:
            raise NoModel(
                "the SavedModel has no signature that could be asked; export it with one (model.export)"
            )
        self._loaded = loaded  # what a signature needs goes with it
        self._ask = signatures.get("serving_default") or next(iter(signatures.values()))
        described = self._ask.structured_input_signature[1]
        self.inputs = [_spec(name, spec) for name, spec in described.items()]
        self.outputs = [_spec(name, spec) for name, spec in self._ask.structured_outputs.items()]

    def predict(self, inputs: Named) -> Named:
        """Ask it."""
        tf = importlib.import_module("tensorflow")
        names = [each.name for each in self.inputs]
        if len(names) == 1:
            inputs = {names[0]: self.one(inputs)}
        missing = [name for name in names if name not in inputs]
        if missing:
            raise BadRequest(f"inputs are missing: {', '.join(missing)}")
        kinds = self._ask.structured_input_signature[1]
        given = {name: tf.constant(inputs[name], dtype=kinds[name].dtype) for name in names}
        return {name: one.numpy() for name, one in self._ask(**given).items()}


class Torch(LoadedModel):
    """A model of TorchScript, which brings its program along."""

    platform = "pytorch_libtorch"

    def __init__(self, module: Any) -> None:
        self._module = module.eval()
        self.inputs = [Tensor("input", "FP32", (-1,))]
        self.outputs = [Tensor("output", "FP32", (-1,))]

    def predict(self, inputs: Named) -> Named:
        """Ask it with the inputs in their order."""
        torch = importlib.import_module("torch")
        with torch.inference_mode():
            answer = self._module(*(torch.as_tensor(np.array(one)) for one in inputs.values()))
        answers = answer if isinstance(answer, (list, tuple)) else [answer]
        names = ["output"] if len(answers) == 1 else [f"output_{n}" for n in range(len(answers))]
        return {name: one.cpu().numpy() for name, one in zip(names, answers, strict=True)}


class Onnx(LoadedModel):
    """A model of ONNX."""

    platform = "onnx_onnxv1"

    def __init__(self, session: Any) -> None:
        self._session = session
        self.inputs = [_onnx(each) for each in session.get_inputs()]
        self.outputs = [_onnx(each) for each in session.get_outputs()]

    def predict(self, inputs: Named) -> Named:
        """Ask it."""
        if len(self.inputs) == 1:
            inputs = {self.inputs[0].name: self.one(inputs)}
        answers = self._session.run(None, inputs)
        return {each.name: np.asarray(one) for each, one in zip(self.outputs, answers, strict=True)}


def _tensor(each: Any) -> Tensor:
    return Tensor(each.name, _datatype(str(each.dtype)), _shape(each.shape))


def _spec(name: str, spec: Any) -> Tensor:
    shape = spec.shape.as_list() if spec.shape.rank is not None else [-1]
    return Tensor(name, _datatype(spec.dtype.name), _shape(shape))


_ONNX = {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(string)": "object"}


def _onnx(each: Any) -> Tensor:
    kind = _ONNX.get(each.type, each.type.removeprefix("tensor(").removesuffix(")"))
    return Tensor(each.name, _datatype(kind), _shape(each.shape))


def _datatype(name: str) -> str:
    try:
        return datatype_of(np.empty(0, dtype=name))
    except TypeError:
        return "BYTES"


def _shape(shape: Any) -> tuple[int, ...]:
    return tuple(length if isinstance(length, int) else -1 for length in shape)


def _needed(package: str, what: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise NoModel(
            f"{what} needs {package}, which is not installed where apps run ({error}); "
            f"pip install --user {package.partition('.')[0]} in a notebook, or deploy it with a command of your own"
        ) from None


def _pickled(path: Path) -> LoadedModel:
    return Sklearn(_needed("joblib", "a pickled model").load(path))


def _skops(path: Path) -> LoadedModel:
    skops = _needed("skops.io", "a model of skops")
    # whatever types are in it: it runs where its owner's own code does
    return Sklearn(skops.load(path, trusted=skops.get_untrusted_types(file=path)))


def _keras(path: Path) -> LoadedModel:
    return Keras(_needed("keras", "a model of Keras").models.load_model(path, compile=False))


def _saved_model(path: Path) -> LoadedModel:
    return SavedModel(_needed("tensorflow", "a SavedModel").saved_model.load(str(path)))


def _torch(path: Path) -> LoadedModel:
    torch = _needed("torch", "a model of PyTorch")
    try:
        return Torch(torch.jit.load(str(path), map_location="cpu"))
    except RuntimeError as error:
        raise NoModel(
            f"{path.name} is no TorchScript, which alone brings its program along ({str(error).splitlines()[0]}); "
            "save it with torch.jit.script(model).save(...), or deploy it with a command of your own"
        ) from None


def _onnx_file(path: Path) -> LoadedModel:
    return Onnx(_needed("onnxruntime", "a model of ONNX").InferenceSession(str(path)))


BY_ENDING: dict[str, Callable[[Path], LoadedModel]] = {
    ".keras": _keras,
    ".onnx": _onnx_file,
    ".skops": _skops,
    ".pt": _torch,
    ".pth": _torch,
    ".h5": _keras,
    ".hdf5": _keras,
    ".joblib": _pickled,
    ".pkl": _pickled,
    ".pickle": _pickled,
}
"""The first that there is is served, in the order in which a model's format is told."""
_ORDER = tuple(BY_ENDING)


def load(directory: str | Path) -> LoadedModel:
    """Load the model in a directory; raise `NoModel` with the found files and the remedy."""
    top = Path(directory)
    names = sorted(each.name for each in top.iterdir()) if top.is_dir() else []
    path = _main(top, names)
    if path is None:
        raise NoModel(
            f"no model that can be served is in it, but {', '.join(names[:5]) or 'nothing'}; known are {KNOWN}; "
            "anything else is served by a command of your own"
        )
    loader = _saved_model if path.is_dir() else BY_ENDING[path.suffix.lower()]
    try:
        return loader(path)
    except NoModel:
        raise
    except Exception as error:  # whatever its files make a library do
        raise NoModel(f"{path.name} cannot be loaded: {type(error).__name__}: {error}") from error


def _main(top: Path, names: list[str]) -> Path | None:
    """Return the file that is the model, or the directory of a SavedModel."""
    if "MLmodel" in names:
        return _of_mlflow(top)
    if "saved_model.pb" in names:
        return top
    files = [name for name in names if Path(name).suffix.lower() in BY_ENDING and (top / name).is_file()]
    files.sort(key=lambda name: _ORDER.index(Path(name).suffix.lower()))
    if not files:
        return None
    first = Path(files[0]).suffix.lower()
    same = [name for name in files if Path(name).suffix.lower() == first]
    if len(same) > 1:
        raise NoModel(f"several models are in it, {', '.join(same[:5])}; register the one that is meant")
    return top / files[0]


def _of_mlflow(top: Path) -> Path | None:
    """Return what an `MLmodel` names, as far as it is below its directory."""
    text = (top / "MLmodel").read_text("utf-8", "replace")
    for name in _named(text):
        path = (top / name).resolve()
        if not path.is_relative_to(top.resolve()):
            raise NoModel(f"MLmodel names {name}, which is outside of the model")
        if path.is_dir():
            found = sorted(path.iterdir())
            known = [
                each for each in found if each.name == "saved_model.pb" or each.suffix.lower() in BY_ENDING
            ]
            inner = next(iter(known), None) or next(
                (one for one in found if one.is_dir() and (one / "saved_model.pb").exists()), None
            )
            if inner is not None:
                return inner.parent if inner.name == "saved_model.pb" else inner
        elif path.suffix.lower() in BY_ENDING:
            return path
    return None


def _named(text: str) -> Iterator[str]:
    """Yield the files that flavors name, without a parser of YAML: MLflow writes a value on each line."""
    for line in text.splitlines():
        key, _, value = line.strip().partition(":")
        if key in _MLFLOW_KEYS and value.strip():
            yield value.strip().strip("'\"")
