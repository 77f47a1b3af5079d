"""`mlp-hub doctor` and its checks, one module for each subject."""
