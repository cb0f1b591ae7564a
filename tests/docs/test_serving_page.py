"""Every fence of the page on serving, run against a real server: as written, but for the model,
which is a tiny one here, and the address, since the port 8080 may be taken."""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from required import need, need_package
from serving.making import save_tiny, serving

from polyseme.embedding.embedder import Embedder

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/serve-a-model.md").read_text(encoding="utf-8")
FENCES: list[tuple[str, str]] = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
ADDRESS = "http://127.0.0.1:8080"
TEXT = "She sat on the bank."


def fences(language: str, having: str) -> list[str]:
    return [code for kind, code in FENCES if kind == language and having in code]


INSTALL = fences("sh", "pip install")
SERVE = fences("sh", "polyseme serve en-base\n")
TOLD = fences("text", "Serving")
CURL = fences("sh", f"curl {ADDRESS}/v1/embeddings")
HTTPX = fences("python", "httpx")
NODE = fences("js", "fetch")
OPENAI = fences("python", "openai")
KEYS = fences("sh", "secrets.token_urlsafe")
WITH_KEY = fences("sh", "curl http://SERVER")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("page") / "tiny")


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[str]:
    """The address of what the page starts."""
    command, served, *options = shlex.split(SERVE[0])[1:]
    assert (command, served) == ("serve", "en-base")
    with serving(str(model), *options) as (address, _):
        assert f" at {ADDRESS}. Stop it with Ctrl-C." in TOLD[0]
        yield address


def test_every_fence_is_one_that_is_run_here() -> None:
    known = (INSTALL, SERVE, TOLD, CURL, HTTPX, NODE, OPENAI, KEYS, WITH_KEY)
    assert [len(each) for each in known] == [1] * len(known)
    assert {code for (code,) in known} == {code for _, code in FENCES}


def test_the_chinese_page_asks_the_same_of_a_chinese_model() -> None:
    page = (ROOT / "docs/zh/serve-a-model.md").read_text(encoding="utf-8")
    for chinese, english in {"zh-base": "en-base", "她坐在河边。": TEXT, "包袱": "bank"}.items():
        page = page.replace(chinese, english)
    assert re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL) == FENCES


def test_the_extra_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (extra,) = re.findall(r"\[(\w+)\]", INSTALL[0])
    assert extra in extras["optional-dependencies"]


def shell(code: str, folder: Path) -> str:
    programs = str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]
    done = subprocess.run(
        ["bash", "-euc", code],
        cwd=folder,
        env={**os.environ, "PATH": programs},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def vector_in(text: str) -> list[float]:
    (found,) = re.findall(r'"embedding":\[([^\]]+)\]', text)
    return [float(number) for number in found.split(",")]


def test_curl_has_the_librarys_vector(server: str, model: Path, tmp_path: Path) -> None:
    need(shutil.which("curl") is not None, "curl")
    found = vector_in(shell(CURL[0].replace(ADDRESS, server), tmp_path))
    expected = Embedder.load(model, device="cpu").encode(TEXT)
    assert np.allclose(found, expected, atol=1e-5)


def test_httpx_prints_words_and_shapes(server: str, model: Path) -> None:
    code = HTTPX[0].replace(ADDRESS, server)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "page", "exec"), {})
    dim = Embedder.load(model, device="cpu").dim
    assert printed.getvalue() == f"['She', 'sat', 'on', 'the', 'bank', '.'] (6, {dim})\n"


def test_javascript_has_the_librarys_vector(server: str, model: Path) -> None:
    node = shutil.which("node") or ""
    need(bool(node), "node, which runs JavaScript")
    code = NODE[0].replace(ADDRESS, server) + "\nconsole.log(JSON.stringify(data[0]));"
    done = subprocess.run(
        [node, "--input-type=module", "-e", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    expected = Embedder.load(model, device="cpu").encode(TEXT)
    assert np.allclose(vector_in(done.stdout), expected, atol=1e-5)


def test_openais_package_has_the_librarys_vector(server: str, model: Path) -> None:
    need_package("openai")
    *lines, call = OPENAI[0].replace(ADDRESS, server).splitlines()
    names: dict[str, object] = {}
    exec(compile("\n".join([*lines, f"found = {call}"]), "page", "exec"), names)
    expected = Embedder.load(model, device="cpu").encode(TEXT)
    found = names["found"].data[0].embedding  # type: ignore[attr-defined]
    assert np.allclose(found, expected, atol=1e-5)


def test_other_machines_are_let_in_with_the_key_that_was_made(model: Path, tmp_path: Path) -> None:
    need(shutil.which("curl") is not None, "curl")
    make_keys, serve, *others = KEYS[0].splitlines()
    assert not others
    shell(make_keys, tmp_path)
    options = shlex.split(serve.replace("keys.txt", str(tmp_path / "keys.txt")))[3:]
    with serving(str(model), *options) as (address, _):
        here = address.replace("0.0.0.0", "127.0.0.1")
        code = WITH_KEY[0].replace("http://SERVER:8080", here)
        assert len(vector_in(shell(code, tmp_path))) == Embedder.load(model, device="cpu").dim
        without = re.sub(r'-H "Authorization[^"]*"', "", code.replace("$(cat keys.txt)", ""))
        assert '"unauthorized"' in shell(without, tmp_path)
