"""`mlp-hub up`, `down`, `status` and `logs`."""
