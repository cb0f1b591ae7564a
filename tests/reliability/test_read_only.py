"""Read-only folders: every command that writes ends in one sentence, and leaves nothing behind."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from required import need

TESTS = Path(__file__).parents[1]


@pytest.mark.skipif(os.name == "nt", reason="folders have no such modes there")
def test_no_command_writes_into_a_folder_that_is_read_only(tmp_path: Path) -> None:
    need(os.geteuid() != 0 or shutil.which("setpriv") is not None, "setpriv, to give up a right")
    # Root may write everywhere by these two rights; files of root keep others out without them.
    rights = "--bounding-set=-dac_override,-dac_read_search"
    first = ["setpriv", rights] if os.geteuid() == 0 else []
    place = tmp_path / "place"
    done = subprocess.run(
        [*first, sys.executable, "-m", "reliability.read_only", str(place)],
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)])},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *refused, last = map(json.loads, done.stdout.splitlines())
    locked = place / "locked"
    locked.chmod(stat.S_IRWXU)
    assert [path.name for path in locked.iterdir()] == ["mine.txt"]
    assert len(refused) == 22
    for each in refused:
        told = " ".join(each["stderr"].split()).partition("Error: ")[2]
        story = f"{each['words']}\n{each['stderr']}"
        assert each["code"] == 77, story
        assert told.startswith(str(locked)), story
        assert "cannot be read or written by this user: Permission denied." in told, story
        assert ".work" not in told, story
        assert ".lock " not in told, story
    assert last["evaluated"] == 0, last["stderr"]


def test_what_only_we_put_into_a_folder_is_not_named() -> None:
    from polyseme.cli.faults import explain

    for inside in (".work", ".work/a.lock", ".lock", ""):
        error = PermissionError(13, "Permission denied", str(Path("/mine/out") / inside))
        assert str(explain(error)).startswith("/mine/out cannot be read or written by this user")
