"""Sentences in the language of this process: the language of the service's answers.

Requests ask for the language of JupyterLab if one was chosen there, else `MLP_LANGUAGE`, else that
of the environment. A permanent choice of the user has precedence over all of these, and the service
knows it. So a notebook's magics, its commands and its monitor, which asks the same way, use one
language.

The code that makes the sentences is loaded with the first one. So a plain import of this package
does not pay for it.
"""

from __future__ import annotations

from typing import Any

_LAB_CHOSEN = "@jupyterlab/translation-extension/plugin.jupyterlab-settings"


def say(template: str, /, **args: Any) -> str:
    """Return a sentence; the values of its {holes} are text, whatever they are."""
    from mlp_language import render  # noqa: PLC0415 - see above

    return render.say(template, **args)


def says(one: str, several: str, /, n: int, **args: Any) -> str:
    """Return a sentence with a separate form for one."""
    from mlp_language import render  # noqa: PLC0415 - see above

    return render.says(one, several, n, **args)


def headers() -> dict[str, str]:
    """Return the headers about a request's reader: the language, and the time zone if its name is known."""
    zone = zone_name()
    return {"Accept-Language": asked_for(), **({"Time-Zone": zone} if zone else {})}


def asked_for() -> str:
    """Return the language that the service is asked to answer in."""
    from mlp_language.catalogue import language_of, of_environment  # noqa: PLC0415 - see above

    return language_of(_of_lab()) or of_environment()


def answered_in(tag: str | None) -> None:
    """Speak the language of an answer from now on."""
    from mlp_language.catalogue import speak  # noqa: PLC0415 - see above

    speak(tag or "")


def _of_lab() -> str:
    """Return the language that was chosen in this notebook server's JupyterLab, nothing where none was."""
    import os  # noqa: PLC0415 - see above
    import re  # noqa: PLC0415 - see above
    from pathlib import Path  # noqa: PLC0415 - see above

    if "JUPYTERHUB_USER" not in os.environ:
        return ""
    config = os.environ.get("JUPYTER_CONFIG_DIR") or Path.home() / ".jupyter"
    settings = os.environ.get("JUPYTERLAB_SETTINGS_DIR") or Path(config, "lab", "user-settings")
    try:
        text = Path(settings, _LAB_CHOSEN).read_text()
    except (OSError, ValueError):
        return ""
    # JSON with comments; in the shipped ones no locale is named
    found = re.search(r'^\s*"locale"\s*:\s*"(\w+)"', text, re.MULTILINE)
    return found[1] if found and found[1] != "default" else ""


def zone_name() -> str:
    """Return the name of this machine's time zone, as in Europe/Berlin; empty where it has none."""
    import os  # noqa: PLC0415 - see above
    from pathlib import Path  # noqa: PLC0415 - see above

    if named := os.environ.get("TZ"):
        return named.removeprefix(":")
    try:
        return str(Path("/etc/localtime").resolve(strict=True)).rpartition("/zoneinfo/")[2]
    except OSError:
        return ""
