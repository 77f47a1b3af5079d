"""Lines of CSV are texts and numbers in every spreadsheet, wherever that begins a cell."""

from __future__ import annotations

import re
import time

import pytest

from mlp_hub.service.support.csv_text import csv_bytes


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\N{FULLWIDTH EQUALS SIGN}"])
@pytest.mark.parametrize("end", [";", "; ", ';"', ';" "', "\t", "\n", "\r\n", ";\t"])
def test_attack_a_formula_behind_what_ends_a_cell_elsewhere_is_a_text(start: str, end: str) -> None:
    line = csv_bytes([["digits", f"x{end}{start}1+1;y"]]).decode()
    assert not re.search(rf'[;\t\n]["\s]*{re.escape(start)}', line)
    assert f"'{start}1+1" in line


def test_a_list_is_a_text_too() -> None:
    assert csv_bytes([[["x;=1+1;y"]]]) == b"['x;'=1+1;y']\r\n"


def test_numbers_and_plain_texts_stay() -> None:
    line = [-1.5, 3, None, True, "a;b", "a - b; c = d", "1;2"]
    assert csv_bytes([line]) == b"-1.5,3,,True,a;b,a - b; c = d,1;2\r\n"


def test_a_text_of_ends_alone_takes_no_time() -> None:
    begun = time.process_time()
    csv_bytes([["\t" * 1_000_000]])
    assert time.process_time() - begun < 2
