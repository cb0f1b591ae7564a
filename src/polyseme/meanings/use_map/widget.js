// The map in a notebook. It follows map.js in one module, and is loaded by anywidget.
// All text from the corpus is put in as text (textContent), never as HTML.

function render({model, el}) {
  const root = element("div", "polyseme-map");
  const canvas = element("canvas");
  const {x, y, group} = model.get("points"), groups = model.get("groups"), lines = model.get("lines");
  const shown = element("p", "polyseme-line");
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", `Map of ${x.length} uses. Arrow keys move from use to use, Enter selects one.`);
  shown.setAttribute("aria-live", "polite");
  const map = new UseMap(canvas, {
    onPoint: (index) => {
      if (index < 0) shown.replaceChildren(tell(model, x.length));
      else shown.replaceChildren(...lineParts(lines[index], map.colours[map.colour[index]]));
    },
    onChoose: (numbers) => choose(model, numbers),
  });
  root.map = map; // for whoever tests or writes an extension
  const side = element("div", "polyseme-side");
  side.append(legend(model, groups, group), buttons(model, map), shown);
  root.append(canvas, side);
  el.append(root);

  const colours = model.get("colours")[isDark(root) ? "dark" : "light"];
  map.setColours(colours);
  side.querySelectorAll("[data-colour]").forEach((dot) => (dot.style.background = colours[dot.dataset.colour]));
  map.setPlaces({x, y, colour: group.map((number) => groups[number].colour)});
  const light = () => {
    const selection = model.get("selection");
    map.setLit(selection.length ? selection : null);
    shown.replaceChildren(tell(model, x.length));
    side.querySelector("[data-clear]").disabled = !selection.length;
  };
  light();
  model.on("change:selection", light);
  return () => model.off("change:selection", light);
}

function choose(model, numbers) {
  model.set("selection", [...numbers].sort((a, b) => a - b));
  model.save_changes();
}

function tell(model, number) {
  const chosen = model.get("selection").length;
  return chosen ? `${chosen} of ${number} uses selected.` : `${number} uses. Point at one to read it; draw a lasso, or click a group, to select.`;
}

/** The groups by name: pressed, all uses of one are chosen. */
function legend(model, groups, group) {
  const list = element("ul");
  groups.forEach(({name, size, colour}, number) => {
    const item = element("li"), button = element("button"), dot = element("i");
    dot.dataset.colour = colour;
    button.type = "button";
    button.append(dot, `${size} `, name);
    button.title = name;
    button.addEventListener("click", () => choose(model, [...group.keys()].filter((use) => group[use] === number)));
    item.append(button);
    list.append(item);
  });
  return list;
}

function buttons(model, map) {
  const row = element("div", "polyseme-buttons");
  for (const [what, text, label] of [["lasso", "Lasso", "Lasso"], ["in", "+", "Zoom in"], ["out", "−", "Zoom out"], ["whole", "Whole map", "Whole map"]]) {
    const button = element("button");
    Object.assign(button, {type: "button", textContent: text, ariaLabel: label});
    button.dataset.map = what;
    button.addEventListener("click", () => map.press(button));
    row.append(button);
  }
  const clear = element("button");
  Object.assign(clear, {type: "button", textContent: "Clear selection"});
  clear.dataset.clear = "";
  clear.addEventListener("click", () => choose(model, []));
  row.append(clear);
  return row;
}

/** Whether the notebook is dark, whatever the system is. */
function isDark(root) {
  const [red, green, blue] = paperBehind(root);
  return 0.3 * red + 0.6 * green + 0.1 * blue < 110;
}

function element(name, className = "") {
  return Object.assign(document.createElement(name), {className});
}

export default {render};
