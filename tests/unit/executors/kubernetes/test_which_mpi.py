"""Whose mpirun an image has, told by what its name leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlp_hub.executors.kubernetes.rank import mpi


@pytest.mark.parametrize(
    ("program", "says", "is_hydra"),
    [
        ("orterun", "", False),
        ("mpirun.openmpi", "", False),
        ("mpiexec.hydra", "", True),
        ("mpirun.mpich", "", True),
        ("mpirun", "HYDRA build details:", True),
        ("mpirun", "mpirun (Open MPI) 4.1.4", False),
    ],
)
def test_its_name_tells_and_only_where_it_does_not_it_is_asked(
    tmp_path: Path, program: str, says: str, is_hydra: bool
) -> None:
    real, link = tmp_path / program, tmp_path / "link"
    real.write_text(f"#!/bin/sh\n{f'echo {says!r}' if says else f'touch {tmp_path}/asked'}\n")
    real.chmod(0o755)
    link.symlink_to(real)
    assert mpi._is_hydra(str(link)) is is_hydra
    assert not (tmp_path / "asked").exists()
