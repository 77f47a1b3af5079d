"""Makes small real models with TensorFlow, in a process of its own, and tells what they answer; `python make_models.py DIRECTORY`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

ROWS = np.array([[1.0, 2.0], [3.0, 4.0], [-5.0, 0.5]], np.float32)


def main(root: Path) -> None:
    """Write `keras`, `two`, `saved`, what is wrong with each of some broken ones, and `told.json`."""
    import keras
    import tensorflow as tf

    from mlp.serving.errors import NoModel
    from mlp.serving.loaders import load

    keras.utils.set_random_seed(7)
    for name in ("keras", "two", "broken", "lambda", "mute"):
        (root / name).mkdir()
    one = keras.Sequential(
        [keras.Input((2,), name="rows"), keras.layers.Dense(4, "relu"), keras.layers.Dense(1, name="score")]
    )
    one.save(root / "keras" / "net.keras")
    left, right = keras.Input((2,), name="left"), keras.Input((2,), name="right")
    both = keras.layers.Concatenate()([left, right])
    two = keras.Model(
        [left, right], [keras.layers.Dense(1, name="sum")(both), keras.layers.Dense(3, name="parts")(both)]
    )
    two.save(root / "two" / "net.keras")
    one.export(root / "saved", verbose=False)
    told = {
        "keras": one.predict_on_batch(ROWS).tolist(),
        "saved": one.predict_on_batch(ROWS).tolist(),
    }
    served = load(root / "two")
    several = {
        "inputs": [each.name for each in served.inputs],
        "served": [part.tolist() for part in served.predict({"right": -ROWS, "left": ROWS}).values()],
        "own": [part.tolist() for part in two.predict_on_batch([ROWS, -ROWS])],
    }

    whole = (root / "keras" / "net.keras").read_bytes()
    (root / "broken" / "net.keras").write_bytes(whole[: len(whole) // 2])
    code = keras.Sequential([keras.Input((2,)), keras.layers.Lambda(lambda x: x * 2)])
    code.save(root / "lambda" / "net.keras")
    tf.saved_model.save(tf.Module(), str(root / "mute"))
    wrong = {}
    for name in ("broken", "lambda", "mute"):
        try:
            load(root / name)
        except NoModel as error:
            wrong[name] = str(error)
    (root / "told.json").write_text(json.dumps({"told": told, "two": several, "wrong": wrong}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
