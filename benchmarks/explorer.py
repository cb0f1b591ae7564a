"""How long the explorer's pages take for one word, from the request to the whole answer.

    python -m benchmarks.explorer CORPUS MODEL WORD [--before "year<1870" --after "year>=1900"]

First the first visit: how long until groups, the map and control words are there. Then each page,
once and `--repeats` times more: its first time, when nothing is kept for it yet, and the median of
the others in seconds, each beside the processor time of the whole process. Page *label* is asked
for right after an edit, which is when groups are put together anew.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

from starlette.testclient import TestClient

from polyseme.explorer.server import make_app
from polyseme.explorer.view import View
from polyseme.explorer.workspace import Workspace
from polyseme.meanings.use_map import lay_out_aside
from polyseme.text.corpus import Corpus

PORT = 8123
HOST = f"http://127.0.0.1:{PORT}"


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and seconds of processor."""
    began, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began, time.process_time() - used


def get(client: TestClient, address: str) -> None:
    """A page that must be there, to its last byte."""
    answer = client.get(address)
    assert answer.status_code == 200, (address, answer.text[:500])
    assert answer.content


def wait(client: TestClient, view: View) -> dict[str, float]:
    """Seconds until the lines, the groups and the map of a word are there."""
    began, found = time.perf_counter(), {}
    get(client, view.address("/word"))
    found["lines"] = time.perf_counter() - began
    while 'hx-get="/progress' in client.get(view.address("/word")).text:
        time.sleep(0.1)
    found["groups"] = time.perf_counter() - began
    while client.get(view.address("/map")).json()["state"] == "waiting":
        time.sleep(0.1)
    found["map"] = time.perf_counter() - began
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("model")
    parser.add_argument("word")
    parser.add_argument("--before", default="year<1870")
    parser.add_argument("--after", default="year>=1900")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    view = View(q=arguments.word)
    sides = view.replace(before=(arguments.before,), after=(arguments.after,))
    with TemporaryDirectory() as notes:
        workspace = Workspace(
            Corpus.open(arguments.corpus), arguments.model, Path(notes), lay_out=lay_out_aside
        )
        guard = make_app(workspace, port=PORT)
        client = TestClient(guard, base_url=HOST)
        get(client, f"/?token={guard.new_code()}")
        for what, seconds in wait(client, view).items():
            print(f"first visit, until {what}: {seconds:.1f} s")
        began = time.perf_counter()
        while "compare_progress" in (text := client.get(sides.address("/compare")).text) or (
            'hx-get="/compare' in text
        ):
            time.sleep(0.2)
        print(f"first comparison, with its control words: {time.perf_counter() - began:.1f} s")
        uses = len(workspace.word(view).uses)
        print(f"\n{uses:,} uses of {len(workspace.word(view).found):,}, {arguments.corpus}")
        edit = {"action": "label", "new_label": "one", "use": "3", "view": urlencode(view.pairs())}

        def judge() -> None:
            state = str(len(workspace.edits(view).edits))
            form = {**edit, "state": state, "use": str(3 + int(state))}
            origin = {"origin": HOST}
            answer = client.post("/judge", data=form, headers=origin, follow_redirects=False)
            assert answer.status_code == 303, answer.text[:500]
            get(client, view.address("/word"))

        def page(address: str) -> Callable[[], None]:
            return lambda: get(client, address)

        work = {
            "lines and groups": page(view.address("/word")),
            "one group": page(view.address("/word", group="1")),
            "one group, page 40": page(view.address("/word", group="1", page=40)),
            "sorted by the left": page(view.address("/word", sort="left")),
            "with a filter": page(view.address("/word", where=(arguments.before,))),
            "like a line": page(view.address("/word", like=7)),
            "map": page(view.address("/map")),
            "frequency": page(view.address("/frequency")),
            "context of a line": page(view.address("/context") + "&use=7"),
            "collocates": page(view.address("/collocates")),
            "collocates of a group": page(view.address("/collocates", group="1")),
            "collocates, filter": page(view.address("/collocates", where=(arguments.before,))),
            "keywords of the sides": page(sides.replace(q="").address("/keywords")),
            "compare": page(sides.address("/compare")),
            "label a line": judge,
            "sorted by labels": page(view.address("/word", show="labels")),
            "table as CSV": page(view.address("/export/uses.csv")),
        }
        print("\n| page | first s | processor s | again s | processor s |")
        print("|---|---:|---:|---:|---:|")
        for what, ask in work.items():
            first = timed(ask)
            again = [timed(ask) for _ in range(arguments.repeats)]
            medians = (statistics.median(each) for each in zip(*again, strict=True))
            print(f"| {what} | " + " | ".join(f"{s:.2f}" for s in (*first, *medians)) + " |")
        workspace.close()


if __name__ == "__main__":
    main()
