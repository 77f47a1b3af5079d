"""Texts of JupyterHub's templates for people, for the catalogue; another version can have others.

By template: the original text, and its replacement; `>` and `<` around it stay. A test finds every
text in the installed JupyterHub.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlp_language.message import Message, msg

TEXTS: Mapping[str, Mapping[str, Message]] = {
    "page.html": {
        "JupyterHub requires JavaScript.": msg("These pages need JavaScript."),
        "Please enable it to proceed.": msg("Please enable it to continue."),
        "The error": msg("The error"),
        "Home": msg("Home"),
        "Close": msg("Close"),
        "Toggle navigation": msg("Toggle navigation"),
        "Toggle dark mode": msg("Toggle dark mode"),
        "Logout": msg("Log out"),
        "Login": msg("Log in"),
    },
    "login.html": {
        "Sign in": msg("Log in"),
        "Warning: JupyterHub seems to be served over an unsecured HTTP connection.": msg(
            "Warning: this hub is served over an unsecured HTTP connection."
        ),
        "We strongly recommend enabling HTTPS for JupyterHub.": msg("We strongly recommend HTTPS."),
        "Username:": msg("Username:"),
        "Password:": msg("Password:"),
        "Show password": msg("Show password"),
        "Hide password": msg("Hide password"),
    },
    "home.html": {
        "JupyterHub home page": msg("Home page"),
        "Stop My Server": msg("Stop My Server"),
    },
    "spawn.html": {
        "Server Options": msg("Server Options"),
        "Start": msg("Start"),
    },
    "spawn_pending.html": {
        "Complete": msg("complete"),
        "Event log": msg("Event log"),
        "Stop Server": msg("Stop Server"),
        "Stopping...": msg("Stopping..."),
        "Error stopping server": msg("The server could not be stopped"),
        "Stopping server...": msg("Stopping the server..."),
        "Server stopped successfully!": msg("The server has stopped."),
    },
    "stop_pending.html": {">refresh<": msg("refresh")},
    "not_running.html": {
        "Spawn failed": msg("The start failed"),
        "Server not running": msg("The server is not running"),
        "Would you like to retry starting it?": msg("Would you like to try again?"),
        "It will be restarted automatically.": msg("It will be restarted automatically."),
        "If you are not redirected in a few seconds, click below to launch your server.": msg(
            "If you are not redirected in a few seconds, click below to start it."
        ),
        "Would you like to start it?": msg("Would you like to start it?"),
        "Relaunch": msg("Relaunch Server"),
        "Launch": msg("Launch Server"),
    },
    "404.html": {"Jupyter has lots of moons, but this is not one...": msg("This page does not exist.")},
    "logout.html": {"Successfully logged out.": msg("You are logged out.")},
}
RAW: Mapping[str, Mapping[str, str]] = {
    "page.html": {
        '<html lang="en">': '<html lang="{{ language }}">',
        "modal('Error', btn_label='OK')": "modal(_('Error'), btn_label=_('OK'))",
        'id="logout"\n                           role="button"': 'id="logout"',
        'id="login"\n                           role="button"': 'id="login"',
    },
    "spawn.html": {"Error: {{ error_message }}": "{{ error_message }}"},
    "login.html": {
        "{{ login_error }}": "{{ _(login_error) }}",
        '<a role="button"\n               class="btn btn-jupyter': '<a class="btn btn-jupyter',
    },
    "stop_pending.html": {'<a role="button" id="refresh"': '<a id="refresh"'},
    "error.html": {"{{ status_message }}": "{{ _(status_message) }}", "{{ message }}": "{{ _(message) }}"},
    "home.html": {
        "{% if not default_server.active %}Start{% endif %}\n          My Server": (
            '{{ _("My Server") if default_server.active else _("Start My Server") }}'
        ),
        # a link that leads nowhere is passed over by Tab
        '<a id="stop"\n   role="button"\n   class="btn btn-lg btn-danger">Stop My Server</a>': (
            '<button type="button" id="stop" class="btn btn-lg btn-danger">Stop My Server</button>'
        ),
        '<a role="button"\n                   {# stop is available': (
            '<button type="button"\n                   {# stop is available'
        ),
        'id="stop-{{ spawner.name }}">stop</a>': 'id="stop-{{ spawner.name }}">stop</button>',
        # and one that says to be a button has to do what Space does to buttons
        'id="start"\n           role="button"': 'id="start"',
        '<a role="button"\n                   class="start-server': '<a class="start-server',
    },
    "not_running.html": {
        "The latest attempt to start your server {{ server_name }} has failed.": (
            '{{ _("The latest attempt to start your server {name} failed.", name=server_name) }}'
        ),
        "Your server {{ server_name }} is not running.": (
            '{{ _("Your server {name} is not running.", name=server_name) }}'
        ),
        "Server {{ server_name }}": "{{ server_name }}",
        'id="start"\n             role="button"': 'id="start"',
    },
}
"""Parts of a template's source that are replaced as they are, with their replacements."""

OF_JUPYTERHUB = (
    msg("Error"),
    msg("OK"),
    msg("My Server"),
    msg("Start My Server"),
    msg("The latest attempt to start your server {name} failed."),
    msg("Your server {name} is not running."),
    msg("Invalid username or password"),
    msg("Bad Request"),
    msg("Forbidden"),
    msg("Not Found"),
    msg("Method Not Allowed"),
    msg("Too Many Requests"),
    msg("Internal Server Error"),
    msg("Service Unavailable"),
    msg("Server Error"),
)
"""Texts of the templates above, and those that JupyterHub gives to its templates."""
