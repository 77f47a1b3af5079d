"""The same seed breaks the same things at the same times, and submits the same jobs."""

from __future__ import annotations

from random import Random

from torture import plan, recipes


def faults(seed: str, *, disk: bool = True, database: bool = True) -> list[plan.Fault]:
    return plan.draw(Random(seed), 60.0, disk=disk, database=database)


def test_faults_follow_from_the_seed() -> None:
    assert faults("1:1") == faults("1:1")
    assert faults("1:1") != faults("1:2")


def test_faults_that_are_impossible_here_change_nothing_else() -> None:
    for number in range(20):
        all_of_them = faults(f"1:{number}")
        fewer = faults(f"1:{number}", disk=False, database=False)
        assert fewer == [fault for fault in all_of_them if fault.name not in ("disk", "database")]


def test_jobs_follow_from_seed_round_user_and_number() -> None:
    assert recipes.draw("1", 2, "ann", 3) == recipes.draw("1", 2, "ann", 3)
    drawn = [recipes.draw("1", n, user, i) for n in (1, 2) for user in ("ann", "bob") for i in range(5)]
    assert len({(recipe.steps, recipe.pause, recipe.after) for recipe in drawn}) == len(drawn)


def test_an_hour_has_more_than_1500_victims() -> None:
    rounds = [plan.draw(Random(f"1:{n}"), 35.0, disk=True, database=True) for n in range(55)]
    aimed = sum(len(fault.victims) or fault.name == "start" for faults in rounds for fault in faults)
    assert aimed > 1500


def test_strangers_name_either_database_empty_and_owned() -> None:
    drawn = [f for n in range(40) for f in faults(f"1:{n}") if f.name == "stranger"]
    assert {(f.variable, f.owned) for f in drawn} == {
        (v, o) for v in ("platform", "hub") for o in (True, False)
    }
