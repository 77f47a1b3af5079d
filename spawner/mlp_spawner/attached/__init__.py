"""Quota of servers whose hub is another's, such as a Zero-to-JupyterHub: its own spawner starts them as before."""
