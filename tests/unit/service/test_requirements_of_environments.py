"""What requirements may say, what a lock tells, and where packages come from."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.domain.errors import IllegalTransition, Reason, Refused
from mlp_hub.domain.runtime.environment import (
    Environment,
    EnvironmentPhase,
    check_environment_move,
    directory_of,
    files_uid,
    packages_of,
)
from mlp_hub.domain.runtime.requirements import MOST_LINES, MOST_TEXT, checked_requirements
from mlp_hub.executors.local.package_index import PackageIndex, index_of

P = EnvironmentPhase


def test_packages_are_kept_one_a_line_without_comments() -> None:
    text = "# all of it\n\npandas [excel] >= 2.2   # frames\r\n numpy\nwheel;python_version<'4'\n"
    assert checked_requirements(text) == 'pandas[excel]>=2.2\nnumpy\nwheel; python_version < "4"\n'


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://evil.example/simple",
        "-i https://evil.example/simple",
        "--extra-index-url https://evil.example",
        "--find-links /etc",
        "--no-binary :all:",
        "-r /etc/passwd",
        "-c other.txt",
        "-e .",
        "-e git+https://evil.example/x",
        "git+https://evil.example/x",
        "git+ssh://git@evil.example/x#egg=x",
        "file:///etc/passwd",
        "x @ file:///etc/passwd",
        "x @ https://evil.example/x-1.0-py3-none-any.whl",
        "x@git+https://evil.example/x",
        "https://evil.example/x.whl",
        "./local",
        "/etc/passwd",
        "../../x",
        "~/x",
        "numpy --hash=sha256:0",
        "numpy \\",
        "numpy; os_name",
        "numpy==",
        "a b",
        "${HOME}",
        "numpy\0",
        "\u202enumpy",
    ],
)
def test_whatever_else_a_file_may_hold_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(Refused) as refused:
        checked_requirements(f"pandas\n{line}\n")
    assert refused.value.reason is Reason.INVALID
    assert "line 2 of the requirements" in str(refused.value.message)


def test_a_comment_may_come_after_a_tab_and_a_byte_order_mark_before_all() -> None:
    assert checked_requirements("\ufeffpandas==2.2\t# frames\n") == "pandas==2.2\n"


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("numpy @ file:///croot/numpy_1708638617955/dist", "pip list --format=freeze"),
        ("numpy=1.26.4=py311h24aa872_0", "write two, such as pandas==2.2"),
        ("scikit-learn = 1.4", "write two, such as pandas==2.2"),
        ("channels:", "it is in Conda's format"),
        ("@EXPLICIT", "it is in Conda's format"),
        ("numpy==1.26.4 \\", "uv export --no-hashes"),
        ("numpy==1.26.4 --hash=sha256:aa", "uv export --no-hashes"),
        ("-r base.txt", "put its lines here"),
        ("--constraint=base.txt", "put its lines here"),
        ("--no-binary :all:", "it is an option"),
        ("-e git+https://evil.example/x", "uv export --no-emit-project"),
        ("--editable=.", "uv export --no-emit-project"),
        ("-e file:///home/ann/mine", "uv export --no-emit-project"),
        ("--extra-index-url https://evil.example", "it is an option"),
        ("x @ git+https://evil.example/x", "it is an address"),
    ],
)
def test_a_file_that_another_program_wrote_is_refused_with_how_to_have_it_written(
    line: str, remedy: str
) -> None:
    with pytest.raises(Refused) as refused:
        checked_requirements(f"{line}\n")
    assert remedy in str(refused.value.message)


@pytest.mark.parametrize("text", ["", "\n# nothing\n", "   "])
def test_none_at_all_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="name no package"):
        checked_requirements(text)


def test_too_much_is_refused_with_the_most() -> None:
    with pytest.raises(Refused, match="65,536"):
        checked_requirements("a" * (MOST_TEXT + 1))
    with pytest.raises(Refused, match="501 lines, and the limit is 500"):
        checked_requirements("".join(f"p{n}\n" for n in range(MOST_LINES + 1)))


@given(st.text(max_size=200))
def test_whatever_is_let_through_has_neither_options_nor_addresses(text: str) -> None:
    try:
        kept = checked_requirements(text)
    except Refused:
        return
    for line in kept.splitlines():
        assert not line.startswith("-")
        assert "://" not in line.partition(";")[0]
        assert "@" not in line.partition(";")[0]
    assert checked_requirements(kept) == kept


def test_a_lock_tells_its_packages() -> None:
    lock = (
        "Jinja2==3.1.6 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"
        "ruamel.yaml==0.18 ; python_version < '4' \\\n    --hash=sha256:cc\n"
    )
    assert packages_of(lock) == {"jinja2": "3.1.6", "ruamel-yaml": "0.18"}
    assert packages_of("") == {}


def test_files_are_of_a_lock_in_a_tenant_for_a_python() -> None:
    uids = {
        files_uid(tenant, base, lock)
        for tenant in ("red", "blue")
        for base in ("3.11", "3.12")
        for lock in "ab"
    }
    assert len(uids) == 8
    assert all(len(uid) == 26 for uid in uids)
    assert directory_of("Tools", "0123456789abcdef") == "tools-0123456789ab"


def test_a_move_that_is_not_in_the_table_is_refused() -> None:
    environment = Environment("u", "red", "tools", "ann", P.READY, "numpy\n", 0.0)
    check_environment_move(environment, P.DELETING)
    with pytest.raises(IllegalTransition, match="environment tools is ready and cannot become creating"):
        check_environment_move(environment, P.CREATING)


def test_the_index_is_the_settings_or_what_uv_and_pip_are_told(tmp_path: Path) -> None:
    config = tmp_path / "pip.conf"
    config.write_text(
        "[global]\nindex-url = https://conf/simple\ncert = /conf.pem\n[install]\nextra-index-url =\n  https://one\n  https://two\n"
    )
    pip = {
        "PIP_INDEX_URL": "https://pip/simple",
        "SSL_CERT_FILE": "/env.pem",
        "https_proxy": "http://proxy",
        "SECRET": "x",
    }
    assert index_of("https://set/simple", pip) == PackageIndex(
        {
            "UV_DEFAULT_INDEX": "https://set/simple",
            "HTTPS_PROXY": "http://proxy",
            "SSL_CERT_FILE": "/env.pem",
        },
        ("/env.pem",),
    )
    assert index_of("", pip, [config]).variables["UV_DEFAULT_INDEX"] == "https://pip/simple"
    assert (
        index_of("", {"UV_INDEX_URL": "https://uv/simple"} | pip).variables["UV_DEFAULT_INDEX"]
        == "https://uv/simple"
    )
    assert index_of("", {}, [tmp_path / "none", config]) == PackageIndex(
        {
            "UV_DEFAULT_INDEX": "https://conf/simple",
            "UV_INDEX": "https://one https://two",
            "SSL_CERT_FILE": "/conf.pem",
        },
        ("/conf.pem",),
    )
    assert index_of("", {}) == PackageIndex({}, ())
