"""API of a Kubernetes cluster: read, changed and watched; other modules decide on its objects."""
