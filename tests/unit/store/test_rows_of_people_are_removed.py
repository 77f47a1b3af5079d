"""Each table with a column of users says here how its rows end."""

from __future__ import annotations

from mlp_hub.store.tables import metadata

ENDS = {
    "app": "AppService.remove, when the user leaves",
    "browser_session": "purge: delete_expired",
    "environment": "belongs to its team, and stays for the other members",
    "idempotency_key": "purge: delete_before",
    "idle_server": "IdleServerStops.remove, when the user leaves",
    "job": "Offboarding, when the user leaves",
    "join_request": "TeamRequests.forget_person and forget_place",
    "ledger_span": "Accounting.forget_user removes the name",
    "member": "TenantService, with the place in the team",
    "member_cap": "same",
    "notice": "NoticeService.remove, when the user leaves",
    "notice_channel": "same",
    "notice_choice": "same",
    "quota_request": "record of its team, deleted with it",
    "resource_request": "ends with its holder",
    "secret": "DatasetService.remove, when the user leaves",
    "service_account": "belongs to its team",
    "service_token": "belongs to an account of a team",
    "stored": "ModelService.remove and DatasetService.remove, when the user leaves",
    "sweep": "SweepService.remove, when the user leaves",
    "token_use": "purge: delete_before",
    "usage_total": "Accounting.forget_user removes the name",
}


def test_each_table_with_users_says_how_its_rows_end() -> None:
    of_users = {
        table.name
        for table in metadata.sorted_tables
        if "user" in table.c
        # the database deletes such rows with their job
        and not any(
            key.ondelete == "CASCADE" and key.column.table.name == "job" for key in table.foreign_keys
        )
    }
    new, gone = sorted(of_users - ENDS.keys()), sorted(ENDS.keys() - of_users)
    assert not new, (
        f"{new}: delete these rows when their user leaves (CONTRIBUTING, A table), and say how in ENDS"
    )
    assert not gone, f"{gone}: not a table with users any more; remove it from ENDS"
