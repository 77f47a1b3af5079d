"""The control plane of MLP Hub."""
