"""The map of a notebook: what is sent to it, and what a real browser makes of that."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from chromium import LONG, complaints_of, launch, needs_chromium

from polyseme.errors import InputError, MissingExtraError
from polyseme.meanings import use_map
from polyseme.meanings.concordance.uses import Uses
from polyseme.meanings.features.use_features import UseFeatures
from polyseme.meanings.groups.grouping import Grouping
from polyseme.meanings.groups.senses import Senses, name_groups

HOSTILE = "<img src=x onerror=window.isHarmed=true>\x1b[31m"
NUMBER = 60
PAGE = """async ([esm, css, state]) => {
  const style = document.createElement("style");
  style.textContent = css;
  document.head.append(style);
  const url = URL.createObjectURL(new Blob([esm], {type: "text/javascript"}));
  const {default: widget} = await import(url);
  const listeners = [];
  window.model = {
    saved: [],
    get: (name) => state[name],
    set: (name, value) => { state[name] = value; listeners.forEach((tell) => tell()); },
    save_changes: () => {
      window.model.saved.push([...state.selection]);
      window.send?.({selection: [...state.selection]});
    },
    on: (event, tell) => { if (event === "change:selection") listeners.push(tell); },
    off: (event, tell) => listeners.splice(listeners.indexOf(tell), 1),
    listeners,
  };
  window.close_ = widget.render({model, el: document.body});
}"""  # as anywidget loads and calls a module


@pytest.fixture(scope="module")
def senses() -> Senses:
    """Three groups of twenty, none of which a model has seen."""
    sentences = [["left", str(number), HOSTILE, "right"] for number in range(NUMBER)]
    years = [str(1850 + number) for number in range(NUMBER)]
    uses = Uses.of(sentences, [(2, 3)] * NUMBER, {"year": years})
    labels = np.arange(NUMBER) % 3
    random = np.random.default_rng(1)
    vectors = (np.eye(3)[labels] + random.normal(0, 0.05, (NUMBER, 3))).astype(np.float32)
    grouping = Grouping(labels, (1.0, 1.0, 1.0), vectors, 0.3)
    first, *others = name_groups(None, grouping)
    groups = (replace(first, given_name=HOSTILE), *others)
    return Senses(uses, grouping, UseFeatures(vectors, vectors, None), groups, NUMBER)


@pytest.fixture(scope="module")
def widget(senses: Senses) -> Any:
    return senses.map()


def test_a_point_is_sent_with_its_place_its_group_and_its_line(widget: Any) -> None:
    assert [len(widget.points[name]) for name in ("x", "y", "group")] == [NUMBER] * 3
    assert all(0 <= place <= use_map.SCALE for name in "xy" for place in widget.points[name])
    assert widget.points["group"] == [number % 3 for number in range(NUMBER)]
    line = {"left": "left 7", "form": HOSTILE[:-5] + r"\x1b[31m", "right": "right", "known": "1857"}
    assert widget.lines[7] == line
    assert [(group["size"], group["colour"]) for group in widget.groups] == [
        (20, 1),
        (20, 2),
        (20, 3),
    ]
    assert "\x1b" not in str(widget.groups)


def test_what_is_alike_is_near_on_the_map(widget: Any) -> None:
    sent = widget.points
    places, group = np.array([sent["x"], sent["y"]]).T, np.array(sent["group"])
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    assert (group[apart.argmin(axis=1)] == group).all()


@pytest.mark.parametrize("given", [[9, 3, 3], (3, 9), {9, 3}, np.array([9, 3]), range(3, 10, 6)])
def test_a_selection_is_set_from_python_and_has_its_uses(widget: Any, given: Any) -> None:
    widget.selection = []
    assert len(widget.selected) == 0
    told: list[Any] = []
    widget.observe(lambda change: told.append(change["new"]), "selection")
    widget.selection = given
    assert widget.selection == told[0] == [3, 9]
    assert [use.metadata["year"] for use in widget.selected] == ["1853", "1859"]
    assert repr(widget) == "<UseMapWidget: 60 uses in 3 groups, 2 selected>"
    widget.unobserve_all()


@pytest.mark.parametrize(
    ("given", "told"),
    [([NUMBER], "no use 60"), ([-1, 2], "no use -1"), ("ab", "list of numbers"), (5, "not 5"),
     ([1.5], "list of numbers")],
)  # fmt: skip
def test_a_selection_of_no_use_is_refused(widget: Any, given: Any, told: str) -> None:
    widget.selection = [1]
    with pytest.raises(InputError, match=told):
        widget.selection = given
    assert widget.selection == [1]


def test_what_is_sent_cannot_be_changed_by_mistake(widget: Any) -> None:
    import traitlets

    with pytest.raises(traitlets.TraitError, match="read-only"):
        widget.points = {}


def test_it_is_the_map_of_the_explorer(widget: Any) -> None:
    from polyseme.explorer.server import _FILES

    assert widget._esm.startswith(_FILES["map.js"].read_text(encoding="utf-8"))


def test_without_anywidget_the_extra_is_named(
    senses: Senses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "polyseme.meanings.use_map.widget", raising=False)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(MissingExtraError, match="pip install anywidget"):
        senses.map()


def test_groups_are_found_without_importing_a_widget() -> None:
    code = "import sys, polyseme.meanings.groups.senses; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"anywidget", "ipywidgets", "traitlets"} & set(done.stdout.split())


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = launch(playwright, "--disable-3d-apis")
        yield found
        found.close()


@pytest.fixture
def page(browser: Any, widget: Any) -> Iterator[Any]:
    """A page with the widget on it, and a model that behaves as a notebook's."""
    page = browser.new_page(viewport={"width": 1000, "height": 700})
    page.set_default_timeout(LONG)
    complaints, requests = complaints_of(page), []
    page.on("request", lambda request: requests.append(request.url))
    page.evaluate(PAGE, [widget._esm, widget._css, widget.get_state() | {"selection": []}])
    page.wait_for_function("document.querySelector('canvas').width > 300")
    yield page
    assert complaints == []
    assert [url for url in requests if not url.startswith(("blob:", "data:"))] == []
    page.close()


def lit(page: Any) -> list[int]:
    found = page.evaluate(
        "[...document.querySelector('.polyseme-map').map.isLit].flatMap((is, at) => is ? [at] : [])"
    )
    return [int(number) for number in found]


@needs_chromium
def test_a_lasso_sets_the_selection_and_python_would_hear_of_it(page: Any, widget: Any) -> None:
    assert lit(page) == list(range(NUMBER))
    canvas = page.locator("canvas").bounding_box()
    page.click("text=Lasso")
    corners = [(0.01, 0.01), (0.99, 0.01), (0.99, 0.5), (0.01, 0.5), (0.01, 0.02)]
    for number, (x, y) in enumerate(corners):
        place = canvas["x"] + x * canvas["width"], canvas["y"] + y * canvas["height"]
        page.mouse.move(*place, steps=4)
        if number == 0:
            page.mouse.down()
    page.mouse.up()
    [saved] = page.evaluate("model.saved")
    assert 0 < len(saved) < NUMBER
    assert saved == sorted(saved) == lit(page)
    upwards = widget.points["y"]
    middle = (max(upwards) + min(upwards)) / 2
    assert saved == [number for number, y in enumerate(upwards) if y > middle]
    page.click("text=Clear selection")
    assert page.evaluate("model.saved.at(-1)") == []
    assert lit(page) == list(range(NUMBER))


@needs_chromium
def test_a_selection_set_from_python_is_lit_on_the_map(page: Any) -> None:
    page.evaluate("model.set('selection', [3, 9])")
    assert lit(page) == [3, 9]
    assert page.evaluate("model.saved") == []  # heard of, not sent back
    page.wait_for_selector(".polyseme-line:has-text('2 of 60 uses selected')")


@needs_chromium
def test_map_and_python_have_one_selection(page: Any, widget: Any) -> None:
    """What the page sends is given to the widget as a notebook's kernel does, and back."""
    page.expose_function("send", widget.set_state)
    widget.selection = []
    try:
        page.click("li:nth-child(3) button")
        page.wait_for_function("model.saved.length == 1")
        assert widget.selection == list(range(2, NUMBER, 3))
        assert len(widget.selected) == NUMBER // 3
        widget.selection = {9, 3}
        page.evaluate("chosen => model.set('selection', chosen)", widget.get_state()["selection"])
        assert lit(page) == [3, 9]
        page.click("text=Clear selection")
        page.wait_for_function("model.saved.length == 2")
        assert widget.selection == []
    finally:
        widget.selection = []


@needs_chromium
def test_a_group_is_chosen_by_its_name_and_drawn_in_its_colour(page: Any) -> None:
    page.click("li:nth-child(2) button")
    assert lit(page) == list(range(1, NUMBER, 3))
    drawn = page.evaluate(
        """() => { const map = document.querySelector('.polyseme-map').map; map.drawNow();
        const {data} = map.context.getImageData(0, 0, map.canvas.width, map.canvas.height);
        const far = (a, b) => Math.hypot(...a.map((part, at) => part - b[at]));
        const found = [0, 0, 0, 0];
        for (let at = 0; at < data.length; at += 4) {
          const pixel = [...data.slice(at, at + 3)];
          if (Math.max(...pixel) - Math.min(...pixel) < 80) continue;  // grey, or paper
          const apart = [1, 2, 3].map((colour) => far(pixel, map.colours[colour]));
          found[1 + apart.indexOf(Math.min(...apart))]++;
        }
        return found; }"""
    )
    assert drawn[2] > 20
    assert drawn == [0, 0, drawn[2], 0]
    dot = page.evaluate(
        "getComputedStyle(document.querySelector('li:nth-child(2) i')).backgroundColor"
    )
    assert dot == "rgb({}, {}, {})".format(*bytes.fromhex(use_map.palette()[0][2][1:]))


@needs_chromium
def test_who_points_at_a_use_reads_its_line_as_text(page: Any) -> None:
    page.focus("canvas")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(".polyseme-line b")
    number = page.evaluate("document.querySelector('.polyseme-map').map.pointed")
    told = page.inner_text(".polyseme-line")
    assert told.startswith(f"left {number} <img src=x")
    assert str(1850 + number) in told
    page.keyboard.press("Enter")
    assert page.evaluate("model.saved") == [[number]]
    assert page.query_selector("img") is None
    assert page.evaluate("window.isHarmed") is None


@needs_chromium
def test_a_closed_view_no_longer_listens(page: Any) -> None:
    assert page.evaluate("model.listeners.length") == 1
    page.evaluate("close_()")
    assert page.evaluate("model.listeners.length") == 0


@needs_chromium
def test_in_a_dark_notebook_colours_are_those_for_dark_paper(browser: Any, widget: Any) -> None:
    page = browser.new_page()
    page.evaluate("document.body.style.background = '#111'")
    page.evaluate(PAGE, [widget._esm, widget._css, widget.get_state()])
    first = page.evaluate("document.querySelector('.polyseme-map').map.colours[1]")
    assert bytes(first).hex() == use_map.palette()[1][1][1:]
    page.close()
