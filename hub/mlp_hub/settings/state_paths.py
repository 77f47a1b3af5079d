"""Where things lie in a state directory, said once, so that all processes agree on it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

SOCKET_PATH_MAX = 107  # bytes in sockaddr_un.sun_path, less its final NUL
LONGEST_SOCKET = "private/proxy-api.sock"


class StatePaths:
    """Paths below `home`."""

    __slots__ = ()

    home: Path

    @property
    def files_dir(self) -> Path:
        """The tree that holds homes and jobs' files."""
        return self.home

    @property
    def run_dir(self) -> Path:
        """Sockets and pid files. Below `home` unless socket paths would be too long there."""
        wanted = self.home / "run"
        if len(os.fsencode(wanted / LONGEST_SOCKET)) <= SOCKET_PATH_MAX:
            return wanted
        short = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:12]
        return Path("/tmp") / f"mlp-{short}-{os.getuid()}"  # noqa: S108 - the name is checked for its owner when made

    @property
    def private_dir(self) -> Path:
        """Sockets that only the platform may reach; mode 0700."""
        return self.run_dir / "private"

    @property
    def tenant_dir(self) -> Path:
        """Sockets that are bound into sandboxes."""
        return self.run_dir / "tenant"

    @property
    def proxy_api_socket(self) -> Path:
        """Where the proxy takes its routes from the hub."""
        return self.private_dir / "proxy-api.sock"

    @property
    def service_socket(self) -> Path:
        """The service's socket that the proxy sends to: of the one that leads."""
        return self.private_dir / "mlp.sock"

    @property
    def data_socket(self) -> Path:
        """Where datasets' files are served, for the proxy."""
        return self.private_dir / "data.sock"

    @property
    def tenant_data_socket(self) -> Path:
        """Where sandboxes reach datasets' files."""
        return self.tenant_dir / "data.sock"

    def replica_socket(self, replica: int) -> Path:
        """Tell where one of the services listens for the platform, whether it leads or not."""
        return self.private_dir / f"mlp-{replica}.sock"

    def replica_tenant_socket(self, replica: int) -> Path:
        """Tell what becomes `tenant_service_socket` when this service leads."""
        return self.private_dir / f"tenant-{replica}.sock"

    @property
    def tenant_service_socket(self) -> Path:
        """The service's socket that sandboxes reach: of the one that leads."""
        return self.tenant_dir / "mlp.sock"

    @property
    def hub_socket(self) -> Path:
        """The hub's socket, for the proxy and the service."""
        return self.private_dir / "hub.sock"

    @property
    def tenant_hub_socket(self) -> Path:
        """The hub's socket that sandboxes reach."""
        return self.tenant_dir / "hub.sock"

    @property
    def reserve_file(self) -> Path:
        """Room that is kept for the platform itself, for when the disk is full."""
        return self.home / "reserve"

    @property
    def backup_record(self) -> Path:
        """Record of the last backup: when it was made, and its size."""
        return self.home / "backup.json"

    @property
    def secrets_dir(self) -> Path:
        """Secrets, one a file; mode 0700."""
        return self.home / "secrets"

    @property
    def db_dir(self) -> Path:
        """SQLite databases; mode 0700."""
        return self.home / "db"

    @property
    def service_db_file(self) -> Path:
        """The platform's own database, unless a setting names another."""
        return self.db_dir / "mlp.sqlite"

    @property
    def homes_dir(self) -> Path:
        """Users' home directories, one a user."""
        return self.files_dir / "homes"

    @property
    def data_dir(self) -> Path:
        """The storage tree `/mlp` of the contract: jobs, datasets, models."""
        return self.files_dir / "mlp"

    @property
    def jobs_dir(self) -> Path:
        """Jobs' output directories, `{user}/{job}`."""
        return self.data_dir / "jobs"

    @property
    def isolation_dir(self) -> Path:
        """Where tenants' files are kept, their wrapped keys and their mounts; mode 0711."""
        return self.home / "isolation"

    @property
    def master_key_file(self) -> Path:
        """Key that wraps the keys of tenants; it is made with the first of them."""
        return self.secret_file("isolation_key")

    @property
    def jobs_run_dir(self) -> Path:
        """Run directories of job attempts."""
        return self.home / "jobs-run"

    @property
    def servers_run_dir(self) -> Path:
        """Run directories of notebook servers."""
        return self.home / "servers-run"

    @property
    def log_dir(self) -> Path:
        """Logs of the components."""
        return self.home / "log"

    def secret_file(self, name: str) -> Path:
        """Tell where a secret is: cookie_secret, crypt_key, secrets_key, {proxy,service,spawner,operator}_token, admin-password."""
        return self.secrets_dir / name

    def secret(self, name: str) -> str:
        """Read a secret; OSError when `mlp-hub up` has not made it yet."""
        return self.secret_file(name).read_text().strip()

    def secret_if_made(self, name: str) -> str:
        """Read a secret; empty where the hub was never started with one."""
        try:
            return self.secret(name)
        except FileNotFoundError:
            return ""

    @property
    def uid_file(self) -> Path:
        """Where the first of the users' system uids is kept."""
        return self.home / "first-uid"

    @property
    def recorded_uid(self) -> int | None:
        """The first of the users' system uids as kept in the state directory; None before the first `up`, or where that cannot be read."""
        try:
            text = self.uid_file.read_text()
            return int(text) if text.endswith("\n") else None  # half a number is another one
        except (OSError, ValueError):
            return None
