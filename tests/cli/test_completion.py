"""What a shell is told when Tab is pressed, and the script that asks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from command_line import polyseme
from required import need

POLYSEME = f"{sys.executable} -m polyseme"


def completed(line: str) -> list[str]:
    """What bash is offered for the last word of a line."""
    environment = {
        "_POLYSEME_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }
    done = polyseme(environment=environment)
    assert not done.stderr
    return done.stdout.split()


def in_bash(command: str, home: Path) -> str:
    """What a command prints in bash, by which the shell is recognised."""
    bash = shutil.which("bash")
    need(bash is not None, "bash")
    assert bash is not None
    # `; true`: bash would let the last command take its place.
    done = subprocess.run(
        [bash, "--norc", "-c", f"{command}; true"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HOME": str(home)},
    )
    return done.stdout


def test_commands_are_completed_in_working_order() -> None:
    assert completed("polyseme pre") == ["prepare", "pretrain", "predict"]
    assert completed("polyseme ")[8:12] == ["generate", "compare-models", "embed", "vectors"]


def test_options_of_a_command_are_completed() -> None:
    assert completed("polyseme prepare --l") == ["--language", "--layout"]
    assert completed("polyseme prepare --language en --o") == ["--out"]


def test_sub_commands_and_their_options_are_completed() -> None:
    assert completed("polyseme convert ") == ["import", "export"]
    assert completed("polyseme convert import --op") == ["--options"]
    assert completed("polyseme vectors info --v") == ["--verify"]


def test_values_of_a_setting_are_completed() -> None:
    assert completed("polyseme prepare --backend ") == ["local", "ray"]


def test_where_a_path_belongs_the_shell_completes_files() -> None:
    """Nothing is offered, and the script has bash complete files then."""
    assert completed("polyseme prepare no") == []
    assert completed("polyseme prepare x --out ") == []


def test_the_script_is_shown_and_asks_polyseme(tmp_path: Path) -> None:
    script = in_bash(f"{POLYSEME} --show-completion", tmp_path)
    assert "complete -o default -F _polyseme_completion polyseme" in script
    assert "_POLYSEME_COMPLETE=complete_bash" in script


def test_the_installed_script_completes_in_bash(tmp_path: Path) -> None:
    in_bash(f"{POLYSEME} --install-completion", tmp_path)
    [script] = (tmp_path / ".bash_completions").iterdir()
    assert str(script) in (tmp_path / ".bashrc").read_text(encoding="utf-8")
    (tmp_path / "polyseme").write_text(f'#!/bin/sh\nexec {POLYSEME} "$@"\n', encoding="utf-8")
    (tmp_path / "polyseme").chmod(0o755)
    lines = [
        f"PATH={tmp_path}:$PATH",
        f"source {script}",
        "COMP_WORDS=(polyseme ins)",
        "COMP_CWORD=1",
        "_polyseme_completion polyseme",
        "echo ${COMPREPLY[@]}",
    ]
    assert in_bash("; ".join(lines), tmp_path).split() == ["inspect"]
