"""What is stored is told by the names that people gave it, and only where somebody asks for storage."""

from __future__ import annotations

from pathlib import Path

from mlp_hub.domain.resources import Resources
from mlp_hub.domain.runtime.environment import directory_of
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.workload.ledger import OF_STORAGE, RequestPhase, ResourceRequest
from mlp_hub.domain.workload.workload import SERVER
from mlp_hub.service.admission.snapshot import read_holders
from mlp_hub.service.quota.wire import holding_to
from mlp_hub.store import Database
from mlp_language.render import plain


def stores(holder: str) -> ResourceRequest:
    return ResourceRequest(
        "s1", OF_STORAGE, "red", Resources(rom=5000), RequestPhase.CONFIRMED, 1.0, holder=holder, user="mia"
    )


def test_the_files_of_an_environment_are_called_by_its_name() -> None:
    found = holding_to(stores(f"environment {directory_of('my-tabular', '0123456789abcdef')}"))
    assert plain(found.holder.message) == "environment my-tabular, made by mia"


def test_a_holder_of_storage_alone_is_not_listed_as_a_holder_of_cores(tmp_path: Path) -> None:
    db = Database(str(tmp_path / "mlp.sqlite"))
    db.create_schema()
    with db.begin() as tx:
        tx.tenants.insert(Tenant("red"), 0)
        tx.ledger.put(stores("home mia"))
        held = Resources(cpu=200, ram=512)
        tx.ledger.put(
            ResourceRequest("n1", SERVER.applier, "red", held, RequestPhase.CONFIRMED, 1.0, user="mia")
        )
    with db.reading() as tx:
        holders = read_holders(tx, 2.0)
    assert [str(who.name) for who in holders.names["red"]] == ["notebook"]
    assert holders.used["red"] == Resources(cpu=200, ram=512, rom=5000)
