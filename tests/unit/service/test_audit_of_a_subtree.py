"""From when on teams are below another one, by the changes of their parents."""

from __future__ import annotations

import random

from mlp_hub.service.audit.subtree import below_since
from mlp_hub.store.records import ParentMove


def test_a_team_that_was_always_below_has_all_its_entries() -> None:
    assert below_since("top", {"a": "top", "b": "a"}, []) == {"top": 0, "a": 0, "b": 0}


def test_a_team_that_moved_in_brings_no_past_and_neither_do_those_below_it() -> None:
    moves = [ParentMove(9, "a", "else"), ParentMove(5, "b", None), ParentMove(2, "c", "else")]
    assert below_since("top", {"a": "top", "b": "a", "c": "top"}, moves) == {"top": 0, "a": 9, "b": 9, "c": 2}


def test_a_move_within_the_subtree_hides_nothing_and_the_last_of_several_moves_in_counts() -> None:
    parents = {"a": "top", "b": "a", "c": "b"}
    moves = [
        ParentMove(9, "c", "a"),
        ParentMove(8, "a", "else"),
        ParentMove(7, "a", "top"),
        ParentMove(3, "a", None),
    ]
    assert below_since("top", parents, moves) == {"top": 0, "a": 8, "b": 8, "c": 8}
    assert below_since("top", parents, [ParentMove(9, "c", "a"), ParentMove(8, "b", "top")]) == {
        "top": 0, "a": 0, "b": 0, "c": 0,
    }  # fmt: skip


def test_moves_of_others_and_of_the_top_itself_change_nothing() -> None:
    moves = [ParentMove(9, "top", "above"), ParentMove(8, "other", "top")]
    assert below_since("top", {"a": "top"}, moves) == {"top": 0, "a": 0}


def test_a_log_that_somebody_changed_opens_nothing() -> None:
    """Parents in a circle, as only a log has that somebody wrote by hand."""
    moves = [ParentMove(9, "a", "b"), ParentMove(8, "a", "a")]
    assert below_since("top", {"a": "top", "b": "a"}, moves) == {"top": 0, "a": 9, "b": 9}


def test_it_is_what_a_replay_of_all_moves_says() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        names = [f"t{n}" for n in range(6)]
        now: dict[str, str | None] = dict.fromkeys(names)
        history, moves = [dict(now)], []
        for entry in range(1, 25):
            name, parent = rng.choice(names), rng.choice([*names, None])
            if parent == name or (parent and below(now, parent, name)) or now[name] == parent:
                history.append(dict(now))
                continue
            moves.append(ParentMove(entry, name, now[name]))
            now[name] = parent
            history.append(dict(now))
        top = "t0"
        mine = {name: now[name] for name in names[1:] if below(now, name, top)}
        found = below_since(top, mine, moves[::-1])
        for name in mine:
            # former parents that are not below any more count as outside
            outside = [
                entry
                for entry, then in enumerate(history[:-1], start=1)
                if not below({n: p for n, p in then.items() if n in (*mine, top)}, name, top)
            ]
            last = max((entry for entry in outside), default=0)
            assert found[name] == last, (seed, name)


def below(parents: dict[str, str | None], name: str, top: str) -> bool:
    above: str | None = name
    while above is not None and above != top:
        above = parents.get(above)
    return above == top
