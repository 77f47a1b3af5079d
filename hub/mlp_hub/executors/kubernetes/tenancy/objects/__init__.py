"""Objects in a tenant's namespace, each as it is wanted; pure."""
