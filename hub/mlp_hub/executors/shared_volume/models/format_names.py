"""Names of formats of models."""

PREFERRED = ("keras", "safetensors", "onnx", "skops", "torch", "hdf5", "pickle")
"""Of several in one directory the first is told. Apps serve the first that they can load, in the same order (`mlp/serving/loaders.py`): no safetensors."""
KNOWN_FORMATS = ("mlflow", "tensorflow-savedmodel", *PREFERRED)
