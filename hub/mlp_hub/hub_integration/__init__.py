"""Parts that run inside JupyterHub: its configuration, accounts and templates."""
