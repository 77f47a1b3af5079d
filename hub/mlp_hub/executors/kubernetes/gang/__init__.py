"""Objects of a cluster that run an attempt: the executor's specification as objects of the API."""

from mlp_hub.executors.kubernetes.gang.describe import Gang, describe
from mlp_hub.executors.kubernetes.gang.pods import lacking, rank_of
from mlp_hub.executors.kubernetes.gang.shape import LONGEST_NAME

__all__ = ["LONGEST_NAME", "Gang", "describe", "lacking", "rank_of"]
