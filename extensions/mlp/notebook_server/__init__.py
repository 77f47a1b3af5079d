"""Parts of the notebook server's extension, which is `mlp.bridge`."""
