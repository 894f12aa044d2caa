// Click to zoom, search, details: written by noisefloor, needs nothing else.
"use strict";
(() => {
  const svg = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const left = Number(svg.dataset.left), width = Number(svg.dataset.width);
  const glyph = Number(svg.dataset.glyph);
  const frames = [...document.querySelectorAll(".frame")].map((g) => ({
    g,
    rect: g.querySelector("rect"),
    text: g.querySelector("text"),
    about: g.querySelector("title").textContent,
    name: g.dataset.name,
    depth: Number(g.dataset.depth),
    start: Number(g.dataset.start),
    end: Number(g.dataset.start) + Number(g.dataset.total),
  }));
  const all = frames[0];

  const clipped = (name, room) => {
    const fit = Math.floor((room - 6) / glyph);
    if (fit < 3) return "";
    return name.length <= fit ? name : name.slice(0, fit - 1) + "…";
  };

  const zoom = (to) => {
    const scale = width / Math.max(to.end - to.start, 1);
    for (const f of frames) {
      const from = Math.max(f.start, to.start), until = Math.min(f.end, to.end);
      const isBelow = f.depth < to.depth;
      const isShown = until > from && (!isBelow || f.start <= to.start && f.end >= to.end);
      f.g.style.display = isShown ? "" : "none";
      if (!isShown) continue;
      const x = left + (from - to.start) * scale, w = (until - from) * scale;
      f.rect.setAttribute("x", x);
      f.rect.setAttribute("width", w);
      f.text.setAttribute("x", x + 3);
      f.text.textContent = clipped(f.name, w);
      f.g.classList.toggle("below", isBelow);
    }
    byId("reset").classList.toggle("hidden", to === all);
  };

  // What matches within another match is counted once.
  const search = (term) => {
    let pattern = null;
    try {
      pattern = term ? new RegExp(term, "i") : null;
    } catch {
      return alert(`not a regular expression: ${term}`);
    }
    let matched = 0, until = -1;
    for (const f of frames) {
      const isMatch = pattern !== null && pattern.test(f.name);
      f.g.classList.toggle("found", isMatch);
      if (!isMatch || f.start < until) continue;
      matched += f.end - f.start;
      until = f.end;
    }
    const share = (100 * matched / Math.max(all.end - all.start, 1)).toFixed(1);
    byId("matched").textContent = pattern ? `matched: ${matched} (${share} %)` : "";
    byId("search").textContent = pattern ? "Reset Search" : "Search";
  };

  const ask = () => {
    const isOn = byId("search").textContent !== "Search";
    const term = isOn ? "" : prompt("Search functions (regular expression):", "");
    if (term !== null) search(term);
  };

  for (const f of frames) {
    f.g.addEventListener("click", () => zoom(f));
    f.g.addEventListener("mouseover", () => { byId("details").textContent = f.about; });
    f.g.addEventListener("mouseout", () => { byId("details").textContent = ""; });
  }
  byId("reset").addEventListener("click", () => zoom(all));
  byId("search").addEventListener("click", ask);
  byId("search").classList.remove("hidden");
  window.addEventListener("keydown", (event) => {
    if (event.key === "Escape") zoom(all);
    if (event.key !== "F3" && !(event.ctrlKey && event.key === "f")) return;
    event.preventDefault();
    ask();
  });
})();
