"""Parameters of a program: how people write them, and how the program reads them."""

from __future__ import annotations

import copy
import math
import pickle

import pytest

from mlp.errors import UsageError
from mlp.grammar.job_options import BY_NAME
from mlp.inputs.parameters import Params

PARAMS = BY_NAME["params"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("3", 3),
        ("-3", -3),
        ("0.10", 0.1),
        (".5", 0.5),
        ("1e-3", 0.001),
        ("true", True),
        ("False", False),
        ("nan", "nan"),
        ("inf", "inf"),
        ("adam", "adam"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_a_written_value_is_parsed_as_a_number_a_boolean_or_text(written, meant):
    (value,) = PARAMS.value([f"x={written}"]).values()
    assert (value, type(value)) == (meant, type(meant))


@pytest.mark.parametrize("wrong", [{"a": [1]}, {"a": math.nan}, {"a": math.inf}, {"a b": 1}, {"a": None}])
def test_an_impossible_parameter_is_refused(wrong):
    with pytest.raises(UsageError, match="--param"):
        PARAMS.value(wrong)


def test_a_program_reads_them_by_name_and_is_told_which_is_missing():
    params = Params.of({"MLP_PARAMS": '{"lr": 0.1, "deep": true}'})
    assert (params.lr, params["deep"], params.get("batch", 32)) == (0.1, True, 32)
    with pytest.raises(KeyError, match="--param batch=VALUE"):
        params["batch"]
    with pytest.raises(AttributeError, match="--param batch=VALUE"):
        _ = params.batch
    assert copy.deepcopy(params) == pickle.loads(pickle.dumps(params)) == {"lr": 0.1, "deep": True}  # noqa: S301 - its own


@pytest.mark.parametrize("env", [{}, {"MLP_PARAMS": ""}, {"MLP_PARAMS": "["}, {"MLP_PARAMS": "[1]"}])
def test_outside_of_a_job_there_are_none(env):
    assert Params.of(env) == {}
