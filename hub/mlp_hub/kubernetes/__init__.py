"""The API of a Kubernetes cluster: asked, changed, and watched. What is made there, and why, is others' to say."""
