"""JupyterHub's configuration file of the embedded hub: ours first, the operator's `MLP_CONFIG` last."""

import os

from mlp_hub.hub_integration.config_check import check
from mlp_hub.hub_integration.configure import configure
from mlp_hub.settings import Settings

# both functions are put here by traitlets, which executes this file
c = get_config()  # type: ignore[name-defined]  # noqa: F821
settings = Settings.load(os.environ)
configure(c, settings)
if settings.config is not None:
    load_subconfig(str(settings.config))  # type: ignore[name-defined]  # noqa: F821
check(c)
