"""Records a small model of each format, written by the library that the format is of; `python record_models.py FORMAT...`.

They lie in `recorded_models`, so that tests need none of these libraries. Each is made where its library is:

    pip install safetensors skops mlflow-skinny scikit-learn pandas
    python tests/support/files/record_models.py safetensors skops mlflow
    .venv/bin/python tests/support/files/record_models.py pickle onnx keras hdf5 tensorflow-savedmodel
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

TO = Path(__file__).parent / "recorded_models"
W, B = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros(3, np.float32)


def _linear() -> Any:
    from sklearn.linear_model import LinearRegression

    return LinearRegression().fit(W, W.sum(axis=1))


def _net() -> Any:
    import keras

    keras.utils.set_random_seed(7)
    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])


def safetensors(to: Path) -> None:
    """A library of Hugging Face's."""
    from safetensors.numpy import save_file

    save_file({"w": W, "b": B}, to / "model.safetensors")
    (to / "config.json").write_text("{}")


def skops(to: Path) -> None:
    """What scikit-learn's own are shared as."""
    from skops.io import dump

    dump(_linear(), to / "net.skops")


def mlflow(to: Path) -> None:
    """A directory of MLflow's."""
    import mlflow.sklearn

    to.rmdir()
    mlflow.sklearn.save_model(
        _linear(), to, pip_requirements=["scikit-learn"], serialization_format="cloudpickle"
    )


def pickle(to: Path) -> None:
    """A file of joblib's, which scikit-learn advises."""
    import joblib

    joblib.dump(_linear(), to / "net.joblib")


def onnx(to: Path) -> None:
    """A graph of one sum."""
    import onnx as library
    from onnx import TensorProto, helper

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "twice", [x], [y])
    library.save(helper.make_model(graph), to / "net.onnx")


def keras(to: Path) -> None:
    """Keras' own."""
    _net().save(to / "net.keras")


def hdf5(to: Path) -> None:
    """Keras' former one."""
    _net().save(to / "net.h5")


def savedmodel(to: Path) -> None:
    """TensorFlow's directory."""
    import tensorflow as tf

    module = tf.Module()
    module.w = tf.Variable(W)
    spec = tf.TensorSpec([None, 2], tf.float32)
    module.run = tf.function(lambda x: x @ module.w, input_signature=[spec])
    tf.saved_model.save(module, str(to), signatures=module.run)


MAKERS = {
    "mlflow": mlflow,
    "tensorflow-savedmodel": savedmodel,
    "keras": keras,
    "safetensors": safetensors,
    "onnx": onnx,
    "skops": skops,
    "hdf5": hdf5,
    "pickle": pickle,
}

if __name__ == "__main__":
    for name in sys.argv[1:]:
        shutil.rmtree(TO / name, ignore_errors=True)
        (TO / name).mkdir(parents=True)
        MAKERS[name](TO / name)
