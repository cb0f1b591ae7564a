"""Who may ask: nobody without the token, no other site, under no other name."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from polyseme.explorer.access import MAX_FIELDS, POLICY, AccessGuard
from polyseme.explorer.server import make_app
from polyseme.explorer.workspace import Workspace

from .making import HOST, PORT, make_bank_corpus

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
def guard(workspace: Workspace) -> AccessGuard:
    return make_app(workspace, port=PORT)


@pytest.fixture
def stranger(guard: AccessGuard) -> TestClient:
    """A browser that was not given the address."""
    return TestClient(guard, base_url=HOST, follow_redirects=False)


@pytest.fixture
def owner(guard: AccessGuard, stranger: TestClient) -> TestClient:
    stranger.get(f"/?token={guard.new_code()}")
    return stranger


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_page_and_no_file_is_there_without_the_token(stranger: TestClient, address: str) -> None:
    answer = stranger.get(address)
    assert answer.status_code == 403
    assert "token" in answer.text
    assert "bank" not in answer.text


def test_no_other_word_is_the_token(guard: AccessGuard, stranger: TestClient) -> None:
    code = guard.new_code()
    for other in ("", "x", code[:-1], code + "x", code.swapcase(), "%00", "é"):
        assert stranger.get("/", params={"token": other}).status_code == 403
    assert not stranger.cookies
    assert stranger.get("/", params={"token": code}).status_code == 303


def test_the_token_becomes_a_cookie_that_no_script_and_no_form_of_another_site_gets(
    guard: AccessGuard, stranger: TestClient
) -> None:
    code = guard.new_code()
    answer = stranger.get(f"/?token={code}")
    cookie = answer.headers["set-cookie"].lower()
    assert {"httponly", "samesite=lax", "path=/"} <= set(cookie.split("; "))
    assert code.lower() not in cookie
    assert stranger.get("/").status_code == 200  # by the cookie alone


@pytest.mark.parametrize(
    ("address", "leads_to"),
    [
        ("/?token=#", "/"),
        ("/word?q=bank&token=#&finer=1", "/word?q=bank&finer=1"),
        ("/word?q=%E8%B5%B0&token=#&token=x", "/word?q=%E8%B5%B0"),
        ("//evil.example/?token=#", "/evil.example/"),
    ],
)
def test_the_token_leads_to_the_address_without_it_and_works_once(
    guard: AccessGuard, stranger: TestClient, address: str, leads_to: str
) -> None:
    address = address.replace("#", guard.new_code())
    answer = stranger.get(HOST + address)
    assert (answer.status_code, answer.headers["location"]) == (303, leads_to)
    stranger.cookies.clear()
    assert stranger.get(HOST + address).status_code == 403


def test_a_token_is_used_up_also_by_a_browser_that_was_let_in_before(
    guard: AccessGuard, owner: TestClient
) -> None:
    used: list[str] = []
    code = guard.new_code(on_used=lambda: used.append("once"))
    assert owner.get(f"/?token={code}").headers["location"] == "/"
    assert owner.get(f"/?token={code}").headers["location"] == "/"  # an old bookmark still leads
    assert used == ["once"]
    owner.cookies.clear()
    assert owner.get(f"/?token={code}").status_code == 403


@pytest.mark.parametrize("method", ["HEAD", "POST"])
def test_only_opening_a_page_uses_a_token(
    guard: AccessGuard, stranger: TestClient, method: str
) -> None:
    address = f"/judge?token={guard.new_code()}"
    assert stranger.request(method, address, headers={"origin": HOST}).status_code == 403
    assert stranger.get(address).status_code == 303


@pytest.mark.parametrize(
    "others",
    [
        'prefs={"theme":"dark"}', "a[b]=1", "x", "=", ";;", "é=ü", "a=b; ; c", '"', 'q="\\',
        f"polyseme-{PORT}=of-another-program", f"polyseme-{PORT}=", "polyseme-1=x",
    ],
)  # fmt: skip
def test_cookies_of_other_programs_keep_nobody_out_and_let_nobody_in(
    owner: TestClient, others: str
) -> None:
    own = f"polyseme-{PORT}={owner.cookies[f'polyseme-{PORT}']}"
    owner.cookies.clear()
    for cookie, status in (
        (f"{others}; {own}", 200),
        (f"{own}; {others}", 200),
        (f"{others};{own}", 200),
        (others, 403),
        (f"{others}; x{own}", 403),
        (f"{others}; {own}x", 403),
    ):
        headers = {b"cookie": cookie.encode()}
        assert owner.get("/", headers=headers).status_code == status, cookie


@pytest.mark.parametrize("number", [MAX_FIELDS + 1, 10_000, 20_000])
def test_too_many_fields_are_refused_in_words_after_the_token_was_asked_for(
    owner: TestClient, number: int
) -> None:
    address = "/word?" + "a&" * number + "q=bank"
    answer = owner.get(address)
    assert answer.status_code == 400
    assert f"More than {MAX_FIELDS:,} fields" in answer.text
    assert answer.headers["content-security-policy"] == POLICY
    owner.cookies.clear()
    answer = owner.get(address)
    assert answer.status_code == 403
    assert answer.headers["content-security-policy"] == POLICY


def test_a_form_with_too_many_fields_is_refused_in_words(owner: TestClient) -> None:
    for body in ("a&" * 100_001, "view=" + "a%26" * 2_000):
        answer = owner.post("/judge", content=body, headers={"origin": HOST})
        assert answer.status_code == 400
        assert "fields were sent" in answer.text


def test_on_port_80_a_browser_leaves_the_port_out(workspace: Workspace) -> None:
    guard = make_app(workspace, port=80)
    for host in ("http://127.0.0.1", "http://localhost"):
        browser = TestClient(guard, base_url=host)
        assert browser.get(f"/?token={guard.new_code()}").status_code == 200
        sent = browser.post("/judge", content="", headers={"origin": host})
        assert sent.status_code == 400  # an empty form is read
        assert browser.get("/", headers={"host": "evil.example"}).status_code == 403


def test_a_refusal_is_told_in_the_language_of_the_browser(stranger: TestClient) -> None:
    assert "令牌" in stranger.get("/", headers={"accept-language": "zh-CN"}).text


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
