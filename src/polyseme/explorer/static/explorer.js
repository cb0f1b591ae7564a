// What the pages do beyond links and forms: the map, keys, ticked lines.
// All text from the corpus is put in as text (textContent), never as HTML.
import {UseMap, lineParts} from "/static/map.js";

// The token has become a cookie; it need not stay in the address, the history or a screenshot.
const here = new URL(location.href);
if (here.searchParams.has("token")) {
  here.searchParams.delete("token");
  history.replaceState(history.state, "", here);
}

let map = null;

function startMap() {
  const section = document.querySelector("#map");
  if (!section || section.dataset.isStarted) return;
  section.dataset.isStarted = "yes";
  const canvas = section.querySelector("canvas");
  map = new UseMap(canvas, {onPoint: (index) => showLine(section, index), onChoose: choose});
  section.map = map; // for whoever tests or writes an extension
  setColours();
  loadPlaces(section, 0);
  for (const button of document.querySelectorAll("[data-map]")) button.addEventListener("click", () => (button.dataset.map === "png" ? savePng() : map.press(button)));
}

function setColours() {
  const style = getComputedStyle(document.documentElement);
  map?.setColours([...Array(11).keys()].map((number) => style.getPropertyValue(`--g${number}`)));
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", setColours);

async function loadPlaces(section, tries) {
  const answer = await fetch(section.dataset.places);
  const places = await answer.json();
  if (!section.isConnected) return;
  if (places.state === "done") {
    map.setPlaces(places);
    section.classList.add("ready");
  } else if (places.state === "waiting") {
    setTimeout(() => loadPlaces(section, tries + 1), Math.min(2000, 300 + 100 * tries));
  }
}

const lines = new Map();

async function showLine(section, index) {
  for (const line of document.querySelectorAll(".line.at")) line.classList.remove("at");
  const shown = section.querySelector(".pointed");
  shown.hidden = index < 0; // the help stands there instead
  section.querySelector(".help").hidden = index >= 0;
  if (index < 0) return shown.replaceChildren();
  document.querySelector(`.line[data-use="${index}"]`)?.classList.add("at");
  const address = `${section.dataset.line}&use=${index}`;
  if (!lines.has(address)) {
    if (lines.size > 500) lines.clear();
    lines.set(address, fetch(address).then((answer) => answer.json()));
  }
  const line = await lines.get(address);
  if (map.pointed === index) shown.replaceChildren(...lineParts(line, map.colours[map.colour[index]]));
  return null;
}

function choose(numbers) {
  const section = document.querySelector("#map");
  map.setLit(numbers);
  const address = new URL(section.dataset.word, location.href);
  address.searchParams.set("uses", pack(numbers));
  location.assign(address);
}

/** As `pack` in view.py: each number as its distance from the one before, in base 36. */
function pack(numbers) {
  let before = 0;
  return [...numbers].sort((a, b) => a - b).map((number) => {
    const distance = number - before;
    before = number;
    return distance.toString(36);
  }).join(".");
}

function savePng() {
  map.pointAt(-1);
  map.drawNow();
  map.canvas.toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${document.querySelector("#map").dataset.name}-map.png`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}

function countTicked() {
  const shown = document.querySelector(".judge .ticked");
  if (shown) shown.textContent = shown.dataset.text.replace("#", String(document.querySelectorAll(".tick input:checked").length));
}

document.addEventListener("change", (event) => {
  const {target} = event;
  if (target.matches(".tick input")) countTicked();
  if (target.matches("[data-layers]")) {
    const hidden = target.parentElement.querySelector("input[type=hidden]");
    hidden.value = target.value === target.dataset.layers ? "" : target.value;
  }
  const form = target.closest("form[data-submit]");
  if (form) form.requestSubmit();
});

// An empty value is the usual one: it has no place in an address.
document.addEventListener("submit", (event) => {
  if (event.target.method !== "get") return;
  for (const field of event.target.querySelectorAll("input, select")) {
    if (field.value === "" || (field.name === "finer" && field.value === "0")) field.disabled = true;
  }
});
// A page that comes back from the history may have been left like that.
addEventListener("pageshow", () => {
  for (const field of document.querySelectorAll("form[method=get] :disabled")) field.disabled = false;
});

// A second press on a word closes its context.
document.addEventListener("htmx:beforeRequest", (event) => {
  const word = event.target.closest?.("a.word");
  if (!word) return;
  const open = word.closest("tbody").querySelector(".context");
  word.setAttribute("aria-expanded", String(!open));
  if (open) {
    open.remove();
    event.preventDefault();
  }
});

document.addEventListener("keydown", (event) => {
  // Enter in a field means the button beside it.
  if (event.key === "Enter" && event.target.matches(".judge input:not([type=checkbox])")) {
    event.preventDefault();
    event.target.closest("span").querySelector("button").click();
  }
  const isTyping = event.target.matches("input:not([type=checkbox]), select, textarea, canvas");
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
  if (event.key === "/") {
    document.querySelector("#q").select();
    document.querySelector("#q").focus();
    event.preventDefault();
  }
  const words = [...document.querySelectorAll(".lines a.word")];
  const at = words.indexOf(document.activeElement.closest?.("tbody")?.querySelector("a.word"));
  if (event.key === "j" || event.key === "k") words[Math.max(0, Math.min(words.length - 1, at + (event.key === "j" ? 1 : -1)))]?.focus();
  if (event.key === "x" && at >= 0) words[at].closest("tr").querySelector(".tick input")?.click();
});

document.addEventListener("htmx:afterSettle", startMap);
document.addEventListener("DOMContentLoaded", startMap);
startMap();
