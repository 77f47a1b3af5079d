from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlp_spawner.errors import OptionsError
from mlp_spawner.quota.options import Choice, Defaults, choose, form, from_form, repeated
from mlp_spawner.quota.service_client import Account, Room

DEFAULTS = Defaults(0.2, 1024)


def account(*tenants, **room):
    """Somebody whose last tenant is the default."""
    return Account(1, tenants, tenants[-1], room)


def test_nothing_chosen_means_the_defaults_and_the_default_tenant():
    assert choose({}, DEFAULTS, ("red", "blue"), "blue") == Choice("blue", 0.2, 1024)


def test_chosen_options_are_used():
    options = {"tenant": "red", "cpu": 2, "ram": 2048}
    assert choose(options, DEFAULTS, ("red", "blue"), "blue") == Choice("red", 2.0, 2048)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tenant": "green"}, "you are not in a team 'green'; you are in: red, blue"),
        ({"tenant": ["red"]}, "you are not in a team"),
        ({"cpu": 0}, "cpu is 0; it must be a number of cores of at least 0.1"),
        ({"cpu": "2"}, "cpu is 2; it must be a number"),
        ({"cpu": math.nan}, "cpu is nan"),
        ({"cpu": math.inf}, "cpu is inf"),
        ({"cpu": 10**400}, "cpu is 1000000000000"),
        ({"cpu": True}, "cpu is True"),
        ({"ram": 99}, "ram is 99; it must be a whole number of MiB of at least 100"),
        ({"ram": 1024.5}, "ram is 1024.5"),
        ({"ram": -1}, "ram is -1"),
        ({"ram": 10**12}, "ram is 1000000000000"),
        ({"image": "evil"}, "'image' is not an option of a notebook server; options are tenant, cpu, ram"),
    ],
)
def test_an_option_that_cannot_be_is_refused_with_value_and_limit(options, message):
    with pytest.raises(OptionsError) as error:
        choose(options, DEFAULTS, ("red", "blue"), "blue")
    assert str(error.value).startswith(message)


def test_the_forms_answer_becomes_what_the_api_takes():
    data = {"_xsrf": ["x"], "tenant": ["red"], "cpu": ["0.5"], "ram": [" 2048 "]}
    assert from_form(data) == {"tenant": "red", "cpu": 0.5, "ram": 2048}
    assert from_form({"cpu": [""], "ram": []}) == {}


def test_a_start_without_settings_is_for_once():
    assert from_form({"cpu": ["0.5"], "without_settings": ["yes"]}) == {"cpu": 0.5, "without_settings": True}
    assert choose({"without_settings": True}, DEFAULTS, ("red",), "red").without_settings
    with pytest.raises(OptionsError, match="without_settings is 'yes'; it must be true or false"):
        choose({"without_settings": "yes"}, DEFAULTS, ("red",), "red")
    assert repeated({"cpu": 2, "without_settings": True}, "red", {}) == {"cpu": 2}
    assert " checked" not in form(DEFAULTS, account("red"), {"without_settings": True})


def test_the_form_says_when_an_idle_server_is_stopped():
    assert "mlp-idle" not in form(DEFAULTS, account("red"), {})
    assert "nobody uses for 2 h is stopped. An open page" in form(DEFAULTS, account("red"), {}, idle_s=7200)


@pytest.mark.parametrize("data", [{"cpu": ["two"]}, {"ram": ["1.5"]}, {"file_file": [{"body": b""}]}])
def test_a_form_with_something_else_is_refused(data):
    with pytest.raises(OptionsError):
        from_form(data)


def test_the_tenant_is_asked_for_only_where_there_are_several():
    assert 'name="tenant"' not in form(DEFAULTS, account("default"), {})
    page = form(DEFAULTS, account("red", "blue"), {})
    assert '<option value="blue" selected>' in page
    assert '<option value="red">' in page


def test_the_free_part_of_the_quota_is_shown():
    red = Room(cpu=2, cpu_free=0.4, ram=4096, ram_free=1536)
    page = form(DEFAULTS, account("red", red=red), {})
    assert "Team <strong>red</strong>: 0.4 of 2 cpu and 1536 of 4096 MiB memory free." in page
    several = form(DEFAULTS, account("red", "blue", red=red, blue=Room()), {})
    assert ">red: 0.4 of 2 cpu and 1536 of 4096 MiB memory free</option>" in several
    assert ">blue: no separate limit, only the machine&#x27;s</option>" in several


def test_quota_that_can_be_borrowed_is_shown_separately_from_the_tenants_quota():
    red = Room(cpu=3, cpu_free=3, ram=4096, ram_free=1024, cpu_borrow=3, ram_borrow=512)
    page = form(DEFAULTS, account("red", red=red), {})
    assert (
        "Team <strong>red</strong>: 3 of 3 cpu and 1024 of 4096 MiB memory free, 3 cpu and 512 MiB memory more to "
        "borrow." in page
    )


def test_lent_quota_is_shown_as_reclaimable_with_the_tenants_that_have_it():
    red = Room(cpu=4, cpu_free=0, ram=4096, ram_free=1024, cpu_back=3, ram_back=2048, back_from=("blue",))
    page = form(DEFAULTS, account("red", red=red), {})
    assert (
        "0 of 4 cpu and 1024 of 4096 MiB memory free; 3 cpu and 2048 MiB memory more of its quota, lent to team blue, "
        "can be taken back." in page
    )
    assert "It stops some of their work, and the start waits until that work has ended" in page
    two = Room(cpu=4, cpu_free=0, cpu_back=3, back_from=("blue", "<b>"))
    several = form(DEFAULTS, account("red", "teal", red=two, teal=Room()), {})
    assert (
        "; 3 cpu more of its quota, lent to teams blue and &lt;b&gt;, can be taken back</option>" in several
    )
    assert "mlp-back" in several
    assert "mlp-back" not in form(DEFAULTS, account("red", red=Room(cpu=2, cpu_free=1)), {})


def test_the_form_shows_the_last_choice_again_while_it_is_possible():
    page = form(DEFAULTS, account("red", "blue"), {"tenant": "red", "cpu": 0.5, "ram": 4096})
    assert '<option value="red" selected>' in page
    assert 'value="0.5"' in page
    assert 'value="4096"' in page
    assert '<option value="blue" selected>' in form(DEFAULTS, account("red", "blue"), {"tenant": "gone"})


def test_every_field_of_the_form_has_a_label():
    page = form(DEFAULTS, account("red", "blue"), {})
    for name in ("tenant", "cpu", "ram"):
        assert f'<label class="form-label" for="mlp-{name}">' in page
        assert f'id="mlp-{name}"' in page


def test_nothing_that_a_user_stored_is_shown_as_html():
    last = {"tenant": "<script>", "cpu": "<script>", "ram": {"a": "<script>"}}
    assert "<script>" not in form(DEFAULTS, account("<b>", "red"), last)
    assert "<b>" not in form(DEFAULTS, account("<b>", "red"), last)


@given(
    st.dictionaries(
        st.sampled_from(["tenant", "cpu", "ram", "x"]),
        st.none() | st.floats() | st.text() | st.lists(st.none()),
    )
)
def test_whatever_the_api_sends_is_a_choice_or_a_refusal(options):
    try:
        choice = choose(options, DEFAULTS, ("red",), "red")
    except OptionsError:
        return
    assert choice.tenant == "red"
    assert 0.1 <= choice.cpu <= 1_000_000
    assert choice.ram >= 100


def test_the_form_names_the_tenants_whose_jobs_and_notebooks_have_no_network():
    red, blue = Room(), Room(network="outbound", job_network="outbound")
    assert "mlp-network" not in form(DEFAULTS, account("blue", blue=blue), {}, network="none")
    said = form(DEFAULTS, account("red", "blue", red=red, blue=blue), {})
    assert "Jobs of team red have no network; an administrator of the hub can allow it." in said
    said = form(DEFAULTS, account("red", "<b>", red=red), {}, network="none")
    assert "Notebooks of teams red and &lt;b&gt; have no network; an administrator" in said


def test_gpus_are_chosen_where_servers_can_have_some():
    options = from_form({"gpu": ["2"], "gpu_kind": ["a100"]}, gpus=True)
    assert options == {"gpu": 2, "gpu_kind": "a100"}
    assert choose(options, DEFAULTS, ("red",), "red", gpus=True) == Choice("red", 0.2, 1024, 2, "a100")
    none = {"gpu": 0, "gpu_kind": "a100"}
    assert choose(none, DEFAULTS, ("red",), "red", gpus=True) == Choice("red", 0.2, 1024)


@pytest.mark.parametrize("options", [{"gpu": 1}, {"gpu": 0}, {"gpu_kind": "a100"}])
def test_where_servers_can_have_no_gpus_that_is_said(options):
    with pytest.raises(OptionsError, match="have no GPUs; submit a job instead"):
        choose(options, DEFAULTS, ("red",), "red")


@pytest.mark.parametrize(
    "options", [{"gpu": -1}, {"gpu": 0.5}, {"gpu": True}, {"gpu": 65}, {"gpu": "1"}, {"gpu_kind": 3}]
)
def test_an_invalid_number_of_gpus_is_refused_with_a_valid_form(options):
    with pytest.raises(OptionsError, match=r"whole number of GPUs, 64 at most|name of a kind of GPU"):
        choose(options, DEFAULTS, ("red",), "red", gpus=True)


def test_the_page_asks_for_gpus_where_a_tenant_may_use_some():
    some = Room(gpu=8, gpu_free=6, gpu_kinds=("a100", "<b>"))
    page = form(DEFAULTS, account("red", red=some), {"gpu": 2, "gpu_kind": "a100"}, gpus=True)
    assert 'name="gpu" type="number" value="2"' in page
    assert '<option value="a100" selected>a100</option>' in page
    assert "<b>" not in page
    assert "6 of 8 gpu" in page
    assert 'name="gpu"' not in form(DEFAULTS, account("red", red=some), {})
    assert 'name="gpu"' not in form(DEFAULTS, account("red", red=Room(gpu=0)), {}, gpus=True)


@pytest.mark.parametrize("left", [10**400, -1, math.nan, math.inf, True, "2", [2], {}])
def test_unusable_options_left_by_the_api_do_not_prevent_the_form(left):
    given = dict.fromkeys(("cpu", "ram", "gpu", "gpu_kind", "environment", "tenant"), left)
    red = Room(gpu=2, gpu_free=2, gpu_kinds=("a100",))
    fresh = form(DEFAULTS, account("red", red=red), {}, gpus=True)
    there = form(DEFAULTS, account("red", red=red), {**given, "environment": None}, gpus=True)
    assert there == fresh
    form(DEFAULTS, account("red", red=red), given, gpus=True).encode()
