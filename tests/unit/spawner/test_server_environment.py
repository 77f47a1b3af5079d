from __future__ import annotations

from mlp_hub.domain.resources import QUIET
from mlp_spawner.environment import Who, build, build_for_pod, pip_settings

WHO = Who(
    user="ann",
    base_url="/user/ann/",
    home="/home/ann",
    python="/opt/env/bin/python",
    service_socket="/run/tenant/mlp.sock",
)


def test_the_environment_holds_what_a_server_needs_and_nothing_of_the_hub():
    given = {
        "JUPYTERHUB_API_TOKEN": "t0ken",
        "JUPYTERHUB_SERVICE_URL": "http://127.0.0.1:0/user/ann/",
        "MEM_LIMIT": "1",
        "MLP_TENANT": "red",
        "CONFIGPROXY_AUTH_TOKEN": "secret",
        "PATH": "/hub/bin",
        "LD_PRELOAD": "x",
    }
    assert build(given, WHO) == {
        **QUIET,
        "HOME": "/home/ann",
        "JUPYTERHUB_API_TOKEN": "t0ken",
        "JUPYTERHUB_SERVICE_URL": "http+unix://x/user/ann/",
        "JUPYTER_PATH": "/mlp/env/.kernels",
        "LANG": "C.UTF-8",
        "LOGNAME": "ann",
        "MEM_LIMIT": "1",
        "MLP_API_URL": "http+unix://%2Frun%2Ftenant%2Fmlp.sock/services/mlp/api/v1",
        "MLP_DATA": "/mlp/datasets/ann",
        "MLP_TENANT": "red",
        "PATH": "/home/ann/.local/bin:/opt/env/bin:/usr/local/bin:/usr/bin:/bin",
        "SHELL": "/bin/bash",
        "TMPDIR": "/tmp",
        "USER": "ann",
        "XDG_RUNTIME_DIR": "/tmp",
    }


def test_libraries_take_as_many_threads_as_the_server_has_cores():
    names = (
        "OMP_NUM_THREADS",
        "LOKY_MAX_CPU_COUNT",
        "TF_NUM_INTRAOP_THREADS",
        "PYTHON_CPU_COUNT",
    )
    for cores, threads in (("0.2", "1"), ("1.5", "2"), ("4", "4")):
        for made in (
            build({"CPU_LIMIT": cores}, WHO),
            build_for_pod({"CPU_LIMIT": cores}, "ann", "http://hub"),
        ):
            assert [made[name] for name in names] == [threads] * len(names)
    assert not set(names) & set(build({"CPU_LIMIT": "0"}, WHO))


def test_pip_finds_the_hubs_index_but_never_its_password():
    hub = {
        "PIP_INDEX_URL": "https://me:secret@pypi.example/simple",
        "PIP_TRUSTED_HOST": "pypi.example",
        "PIP_X": "1",
    }
    assert pip_settings(hub) == {"PIP_TRUSTED_HOST": "pypi.example"}
    assert pip_settings({"PIP_INDEX_URL": "https://pypi.example/simple"}) == {
        "PIP_INDEX_URL": "https://pypi.example/simple"
    }
