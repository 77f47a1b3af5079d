"""TorchScript is served as PyTorch answers itself; what else PyTorch saves is refused with what would be right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlp.serving.errors import NoModel
from mlp.serving.loaders import load

torch: Any = pytest.importorskip(
    "torch", reason="PyTorch is not installed: 3 GB, which this suite does not bring"
)
pytestmark = pytest.mark.filterwarnings(
    "ignore:`torch.jit.*deprecated:FutureWarning"
)  # what there is to serve is made by it
ROWS = np.array([[1.0, 2.0], [3.0, -4.0]], np.float32)


def a_network() -> Any:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout(0.5), torch.nn.Linear(3, 1)).eval()


def test_a_scripted_model_answers_as_pytorch_does(tmp_path: Path) -> None:
    network = a_network()
    torch.jit.script(network).save(str(tmp_path / "net.pt"))
    served = load(tmp_path)
    assert served.platform == "pytorch_libtorch"
    with torch.inference_mode():
        own = network(torch.as_tensor(ROWS)).numpy()
    found = served.predict({"any": ROWS})
    np.testing.assert_allclose(found["output"], own, rtol=1e-6)


def test_several_inputs_go_in_their_order_and_several_outputs_have_numbers(tmp_path: Path) -> None:
    class Two(torch.nn.Module):  # type: ignore[misc]  # it is not installed everywhere
        def forward(self, a, b):  # type: ignore[no-untyped-def]  # TorchScript takes tensors for granted
            return a - b, a * b

    torch.jit.trace(Two(), (torch.zeros(2, 2), torch.zeros(2, 2))).save(str(tmp_path / "two.pth"))
    found = load(tmp_path).predict({"a": ROWS, "b": ROWS * 2})
    np.testing.assert_array_equal(found["output_0"], -ROWS)
    np.testing.assert_array_equal(found["output_1"], ROWS * ROWS * 2)


@pytest.mark.parametrize("what", ["weights", "a module", "half"])
def test_a_torch_file_without_a_program_is_refused(tmp_path: Path, what: str) -> None:
    path, network = tmp_path / "net.pt", a_network()
    if what == "half":
        torch.jit.script(network).save(str(path))
        path.write_bytes(path.read_bytes()[:200])
    else:
        torch.save(network.state_dict() if what == "weights" else network, path)
    with pytest.raises(NoModel, match=r"net\.pt is no TorchScript.*torch\.jit\.script"):
        load(tmp_path)
