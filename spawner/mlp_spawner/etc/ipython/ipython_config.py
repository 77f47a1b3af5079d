# ruff: noqa: F821, INP001 - executed by IPython, which puts get_config here
# Every IPython kernel of the hub: the mlp extension is there without %load_ext, and modules beside a notebook are found.
# `extra_extensions`, because a profile's own `extensions` would replace the list.
import importlib.util

if importlib.util.find_spec("mlp") is not None:
    c = get_config()  # type: ignore[name-defined]
    # an environment may have an IPython that does not know -P, and would load what lies beside the notebook while it starts
    c.InteractiveShellApp.ignore_cwd = True
    c.InteractiveShellApp.extra_extensions = ["mlp", "mlp.beside", "mlp.floods"]
