"""What runs inside JupyterHub: its configuration, accounts and templates."""
