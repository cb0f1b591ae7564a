"""Who may ask: nobody without the token, no other site, under no other name."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from polyseme.explorer.access import POLICY
from polyseme.explorer.app import make_app
from polyseme.explorer.workspace import Workspace

from .making import HOST, PORT, TOKEN, make_bank_corpus

ADDRESSES = [
    "/", "/word?q=bank", "/progress?q=bank", "/context?q=bank&use=0", "/line?q=bank&use=0",
    "/frequency?q=bank", "/map?q=bank", "/compare", "/score", "/substitutes?text=a&use=0",
    "/export/uses.csv?q=bank", "/static/style.css", "/nothing",
]  # fmt: skip


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = Path(tmp_path_factory.mktemp("access"))
    return Workspace(make_bank_corpus(folder), "no model is needed", folder / "notes")


@pytest.fixture
def stranger(workspace: Workspace) -> TestClient:
    """A browser that was not given the address."""
    return TestClient(make_app(workspace, token=TOKEN, port=PORT), base_url=HOST)


@pytest.fixture
def owner(stranger: TestClient) -> TestClient:
    stranger.get(f"/?token={TOKEN}")
    return stranger


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_page_and_no_file_is_there_without_the_token(stranger: TestClient, address: str) -> None:
    answer = stranger.get(address)
    assert answer.status_code == 403
    assert "token" in answer.text
    assert "bank" not in answer.text


@pytest.mark.parametrize("token", ["", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "%00", "é"])
def test_no_other_word_is_the_token(stranger: TestClient, token: str) -> None:
    assert stranger.get("/", params={"token": token}).status_code == 403
    assert not stranger.cookies


def test_the_token_becomes_a_cookie_that_no_script_and_no_other_site_gets(
    stranger: TestClient,
) -> None:
    answer = stranger.get(f"/?token={TOKEN}")
    cookie = answer.headers["set-cookie"]
    assert answer.status_code == 200
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert stranger.get("/").status_code == 200  # by the cookie alone
    assert TOKEN not in stranger.get("/").text


def test_a_form_needs_the_cookie_even_with_the_token_in_its_address(stranger: TestClient) -> None:
    address = f"/judge?token={TOKEN}"
    assert stranger.post(address, headers={"origin": HOST}).status_code == 403


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1:80", ""])
def test_another_name_for_this_machine_is_refused(owner: TestClient, host: str) -> None:
    """DNS rebinding: a site whose name was made to point here."""
    assert owner.get("/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"},
        {
            "sec-fetch-site": "cross-site",
            "sec-fetch-mode": "navigate",
            "sec-fetch-dest": "iframe",
        },
    ],
)
def test_what_another_site_asks_for_is_refused(owner: TestClient, headers: dict[str, str]) -> None:
    assert owner.get("/", headers=headers).status_code == 403


@pytest.mark.parametrize(
    "origin", [None, "http://evil.example", "null", f"https://127.0.0.1:{PORT}"]
)
def test_a_form_of_another_site_changes_nothing(
    owner: TestClient, workspace: Workspace, origin: str | None
) -> None:
    headers = {} if origin is None else {"origin": origin}
    form = {"view": "q=bank", "action": "rename", "group": "1", "name": "x"}
    assert owner.post("/judge", data=form, headers=headers).status_code == 403
    assert not workspace.notes.exists()


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_answer_forbids_inline_scripts_frames_and_guessing(
    owner: TestClient, address: str
) -> None:
    headers = owner.get(address).headers if "word" not in address else owner.get("/").headers
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"


def test_the_policy_lets_no_inline_script_run() -> None:
    rules = dict(rule.split(" ", 1) for rule in POLICY.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert "unsafe" not in POLICY


@pytest.mark.parametrize(
    "name",
    [
        "../app.py",
        "..%2fapp.py",
        "%2e%2e/app.py",
        "vendor/htmx.min.js",
        "/etc/passwd",
        "style.css%00",
    ],
)
def test_no_address_leads_to_another_file(owner: TestClient, name: str) -> None:
    for folder in ("static", "export"):
        assert owner.get(f"/{folder}/{name}").status_code == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_pages_are_read_and_forms_sent_and_nothing_else(owner: TestClient, method: str) -> None:
    assert owner.request(method, "/").status_code == 403


def test_a_form_without_end_is_not_read(owner: TestClient) -> None:
    answer = owner.post("/judge", content=b"view=" + b"x" * (1 << 21), headers={"origin": HOST})
    assert answer.status_code == 400
    assert "more than" in answer.text
