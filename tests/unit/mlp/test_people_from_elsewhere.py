"""What people type who come from Slurm, MPI, a shell or Windows is understood, or says what it is called here."""

from __future__ import annotations

import subprocess
import sys
import unicodedata

import pytest

from mlp import cli
from mlp.errors import UsageError
from mlp.grammar.elsewhere import FLAGS, SENTENCES, VERBS, option_hint
from mlp.grammar.parsing import parse, script_after_hyphens
from mlp.grammar.verbs import COMMAND, MAGIC, find, options_of, verbs_of
from mlp.submitting import program

SUBMIT = {flag: o for o in options_of(find("submit", COMMAND), COMMAND) for flag in o.flags}


def test_a_number_after_n_is_not_a_name():
    with pytest.raises(
        UsageError, match=r"did you mean --workers 4\? A name that is a number is written --name 4"
    ):
        parse(["submit", "ok.py", "-n", "4"], COMMAND)
    with pytest.raises(UsageError, match="--name 4"):
        parse(["apps", "deploy", "m", "-n", "4"], COMMAND)
    assert parse(["submit", "ok.py", "--name", "4"], COMMAND).given["name"] == "4"
    assert parse(["submit", "ok.py", "-n", "digits"], MAGIC).given["name"] == "digits"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["submit", "a.py", "--time", "10"], "Use --time-limit 30m instead"),
        (["submit", "a.py", "--mem=4G"], "Use --ram 4G instead"),
        (["submit", "a.py", "--partition", "gpu"], "The hub has no partitions"),
        (["submit", "a.py", "-p", "gpu"], "The hub has no partitions"),
        (["submit", "a.py", "--dependency=afterok:1"], "Jobs do not wait for each other"),
        (["submit", "a.py", "--image", "x"], "--env-name"),
        (["submit", "a.py", "--ntasks", "4"], "Use --workers 4 instead"),
        (["nodes"], "Use mlp quota or mlp offer instead"),
        (["ps"], "Use mlp jobs instead"),
        (["sbatch", "job.sh"], "Use mlp submit instead"),
        (["submti"], "Did you mean submit?"),
        (["submit", "a.py", "--worker", "4"], "Did you mean --workers?"),
    ],
)  # fmt: skip
def test_words_from_elsewhere_say_what_they_are_here(words, said):
    with pytest.raises(UsageError) as refused:
        parse(words, COMMAND)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("python train.py --epochs 3", "write the script without python, as in mlp submit train.py."),
        ("-- python -u src/train.py", "write the script without python, as in mlp submit src/train.py."),
        ("--name a /usr/bin/python3.11 train.py", "without /usr/bin/python3.11, as in mlp submit train.py."),
        ("bash job.sh", "write the script without bash, as in mlp submit job.sh."),
        ("mpirun -n 4 python train.py", "as in mlp submit train.py --runtime mpi --workers N."),
        ("torchrun --nproc_per_node 2 train.py", "as in mlp submit train.py --runtime torch --workers N."),
        ("python -m pkg.train --lr 1", "write python -m pkg.train into a file such as run.sh"),
        ("-m pkg.train", "write python -m PACKAGE.MODULE into a file such as run.sh"),
        ("a.py --nproc_per_node 2", "Use --workers 4 instead"),
    ],
)  # fmt: skip
def test_a_whole_command_says_how_its_script_is_submitted(words, said):
    with pytest.raises(UsageError) as refused:
        parse(["submit", *words.split()], COMMAND)
    assert said in str(refused.value)
    with pytest.raises(UsageError):
        parse(["sweep", *words.split()], MAGIC)


def test_a_command_in_one_word_is_understood_too_and_a_script_may_be_called_as_a_command():
    with pytest.raises(
        UsageError, match=r"as in %mlp submit train\.py\. Arguments of the script go after --"
    ):
        parse(["submit", "python train.py --epochs 3"], MAGIC)
    assert parse(["submit", "python.py"], COMMAND).names == ["python.py"]
    assert parse(["submit", "./sh"], COMMAND).names == ["./sh"]
    assert parse(["submit", "a.py", "--", "python", "-m"], COMMAND).rest == ["python", "-m"]


def test_every_hint_is_of_something_that_is_there():
    for flag, here in FLAGS.items():
        assert flag not in SUBMIT
        assert here.partition(" ")[0] in SUBMIT, flag
        assert option_hint(flag, SUBMIT)
    assert not set(SENTENCES) & set(SUBMIT)
    known = {verb.name for verb in verbs_of(COMMAND)}
    assert not set(VERBS) & known
    assert {here for several in VERBS.values() for here in several} <= known


def test_a_hint_of_an_option_that_the_verb_lacks_is_not_given():
    with pytest.raises(UsageError, match="has no option --mem"):
        parse(["logs", "digits", "--mem", "4"], COMMAND)


def test_help_of_a_verb_is_that_verbs(capsys):
    assert cli.main(["help", "submit"]) == 0
    asked = capsys.readouterr().out
    assert cli.main(["submit", "--help"]) == 0
    assert asked == capsys.readouterr().out
    assert cli.main(["help", "nothing"]) == cli.USAGE


def test_a_script_with_a_leading_hyphen_follows_a_double_hyphen():
    call = parse(["submit", "--", "-x.py", "--epochs", "5"], COMMAND)
    script_after_hyphens(call)
    assert (call.names, call.rest) == (["-x.py"], ["--epochs", "5"])
    call = parse(["submit", "a.py", "--", "-x.py"], COMMAND)
    script_after_hyphens(call)
    assert (call.names, call.rest) == (["a.py"], ["-x.py"])


def build(path):
    return program.build({}, entry=path, env={}, clock=lambda: 0)


def test_a_script_that_is_sent_along_and_leaves_its_last_command_behind_is_refused(tmp_path):
    path = tmp_path / "job.sh"
    path.write_text("#!/bin/bash\nnohup python train.py &\n")
    with pytest.raises(UsageError, match="remove the & at its end, or add the line `wait`"):
        build(path)
    path.write_text("#!/bin/bash\nnohup python train.py &\nwait\n")
    assert build(path)["code"]


def test_a_shells_script_that_is_sent_along_runs_as_such(tmp_path):
    script = tmp_path / "job.sh"
    script.write_text('#!/bin/bash\nset -euo pipefail\nwords=(a \'b "c\')\necho ${#words[@]} "$1"\n')
    code = build(script)["code"]
    done = subprocess.run([sys.executable, "-c", code, "é"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2 é\n", "")


def test_a_script_whose_interpreter_is_missing_says_so_as_a_shell_does(tmp_path):
    script = tmp_path / "it's.sh"
    script.write_text("#!/no/such/bash\n")
    done = subprocess.run(
        [sys.executable, "-c", build(script)["code"]], capture_output=True, text=True, check=False
    )
    said = "it's.sh: /no/such/bash: bad interpreter: No such file or directory\n"
    assert (done.returncode, done.stderr) == (126, said)


def test_a_script_from_windows_is_sent_along_only_where_it_can_run(tmp_path):
    (tmp_path / "win.sh").write_bytes(b"#!/bin/bash\r\nset -e\r\n")
    (tmp_path / "bom.sh").write_bytes(b"\xef\xbb\xbf#!/bin/bash\n")
    (tmp_path / "train.py").write_bytes(b"\xef\xbb\xbfprint(1)\r\nprint(2)\r\n")
    with pytest.raises(UsageError, match="Windows line ends in line 1"):
        build(tmp_path / "win.sh")
    with pytest.raises(UsageError, match="byte order mark"):
        build(tmp_path / "bom.sh")
    assert build(tmp_path / "train.py")["code"] == "print(1)\nprint(2)\n"


def test_a_name_that_looks_the_same_is_offered(tmp_path):
    there = tmp_path / unicodedata.normalize("NFD", "träin.py")
    there.touch()
    with pytest.raises(UsageError, match=r"did you mean .*\.py\?"):
        build(tmp_path / unicodedata.normalize("NFC", "träin.py"))
    with pytest.raises(UsageError, match=r"did you mean .*\.py\?"):
        build(tmp_path / unicodedata.normalize("NFD", "Träin.py"))
