"""How quick the explorer's map is with 50,000 uses: frames a second, hover, lasso.

    python benchmarks/explorer_map.py [50000]

Debian's Chromium draws src/polyseme/meanings/use_map/map.js on a page of 800 x 800 pixels, without
a graphics card. A frame is all of `drawNow` and the wait for the next frame.
"""

import json
import sys
from pathlib import Path
from typing import Any

MAP = Path(__file__).parents[1] / "src" / "polyseme" / "meanings" / "use_map" / "map.js"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-3d-apis"]
PAGE = """<!doctype html><canvas style="width:800px;height:800px"></canvas>
<script type="module">{module}
window.UseMap = UseMap;</script>"""
MEASURE = """async (number) => {
  const random = (() => { let s = 1; return () => (s = (s * 16807) % 2147483647) / 2147483647; })();
  const map = new UseMap(document.querySelector("canvas"));
  map.setColours(["#666666", "#2f66a9", "#a9500a", "#1f7a4d", "#a63d83"]);
  const normal = () => random() + random() + random() - 1.5;
  const colour = Array.from({length: number}, () => 1 + Math.floor(4 * random()));
  const x = colour.map((group) => normal() + group);
  const y = colour.map((group) => normal() + group % 2);
  const next = () => new Promise(requestAnimationFrame);
  const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
  map.setPlaces({x, y, colour});
  await next();
  const draw = [], hover = [], lasso = [];
  for (let i = 0; i < 30; i++) {
    map.centre[0] += 0.01;
    const t = performance.now(); map.drawNow(); draw.push(performance.now() - t);
    const h = performance.now(); map.nearest(100 + 20 * i, 400); hover.push(performance.now() - h);
  }
  const began = performance.now();
  for (let i = 0; i < 60; i++) { map.centre[0] -= 0.01; map.drawNow(); await next(); }
  const frames = 60000 / (performance.now() - began);
  const turn = (i) => [400 + 250 * Math.cos(i / 31.8), 400 + 250 * Math.sin(i / 31.8)];
  const ring = Array.from({length: 200}, (_, i) => turn(i));
  let chosen = 0;
  for (let i = 0; i < 9; i++) {
    const t = performance.now(); chosen = map.within(ring).length;
    lasso.push(performance.now() - t);
  }
  return {points: number, draw_ms: median(draw), frames_per_second: frames, hover_ms: median(hover),
          lasso_ms: median(lasso), chosen};
}"""


def measure(number: int) -> dict[str, Any]:
    """Medians, in milliseconds, and frames a second."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        page.set_content(PAGE.format(module=MAP.read_text(encoding="utf-8")))
        page.wait_for_function("() => window.UseMap !== undefined")
        found: dict[str, Any] = page.evaluate(MEASURE, number)
        browser.close()
    return found


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000), indent=2))
