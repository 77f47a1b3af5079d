"""GPUs of a node: the resource that pods ask for, and their kind, which nodes tell by labels."""

from __future__ import annotations

from collections.abc import Mapping

from mlp_hub.executors.nodes import kind_name

OWN_KIND = "mlp-hub/gpu-kind"
"""Contract: label by which who runs the cluster names the kind of a node's GPUs, whatever other labels say."""
_MIG = "nvidia.com/mig-"
_VENDORS = {
    "nvidia.com/gpu": ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator"),
    "nvidia.com/gpu.shared": ("nvidia.com/gpu.product",),
    "amd.com/gpu": ("amd.com/gpu.product-name", "beta.amd.com/gpu.product-name"),
}
"""Given: each resource that is a GPU, and the labels that tell its kind, the first of them that is there."""
DEVICES = tuple(_VENDORS)
"""Resources that are GPUs, but for slices, of which there are as many as there are sizes."""
USUAL = DEVICES[0]
"""Resource of GPUs where the nodes name no other."""


GPUS_SEEN = "NVIDIA_VISIBLE_DEVICES"
"""Given: variable by which NVIDIA's runtime lets a container have GPUs of its node, whatever it asked the cluster for."""


def no_gpus(gpu: float) -> list[dict[str, str]]:
    """Return the variable of a container that asked for none: images come with one that gives them all there are."""
    return [] if gpu else [{"name": GPUS_SEEN, "value": "void"}]


def is_gpu(resource: str) -> bool:
    """Whether a resource is GPUs: a vendor's, or slices of one, as `nvidia.com/mig-1g.10gb`."""
    return resource in _VENDORS or resource.startswith(_MIG)


def device_of(devices: Mapping[str, int]) -> str | None:
    """Return which resource the GPUs of a node are, None where it has none.

    A node has GPUs of one kind for the scheduler: of one with several resources, as slices of several sizes, the one that it
    has most of is given out.
    """
    return max(devices, key=lambda name: (devices[name], name), default=None)


def label_of(device: str, labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the label, with its value, that tells the kind of a node's GPUs; None where none does."""
    return next(((name, labels[name]) for name in _labels_of(device) if labels.get(name)), None)


def kind_of(device: str, labels: Mapping[str, str]) -> str | None:
    """Return the kind of a node's GPUs, written as on a single machine: `nvidia-h100-80gb-hbm3`; None where no label tells."""
    label = label_of(device, labels)
    labelled = None if label is None else label[1]
    if labelled is None and device.startswith(_MIG):
        whole = labels.get("nvidia.com/gpu.product", "nvidia")
        labelled = f"{whole}-{device.removeprefix('nvidia.com/')}"
    return None if labelled is None else kind_name(labelled) or None


def _labels_of(device: str) -> tuple[str, ...]:
    return (OWN_KIND, *_VENDORS.get(device, (f"{device}.product",)))
