"""Where the files of each tenant lie, and who may change them now.

All processes of the platform that touch tenants' files ask here: the service, the one that serves datasets, and the one that starts
notebook servers. The tenant is that of the object, as the service knows it: no header and no path of a request says which.
"""

from mlp_hub.domain.errors import OutOfReach
from mlp_hub.isolation.gocryptfs import lacking
from mlp_hub.isolation.keys import KeyStore, KeyUnknownError
from mlp_hub.isolation.mounts import Mounts
from mlp_hub.isolation.roots import RootEntry, TenantRoots, roots_of, tenant_roots

__all__ = [
    "KeyStore",
    "KeyUnknownError",
    "Mounts",
    "OutOfReach",
    "RootEntry",
    "TenantRoots",
    "lacking",
    "roots_of",
    "tenant_roots",
]
