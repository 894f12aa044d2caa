// Click to zoom, search, details: written by noisefloor, needs nothing else.
"use strict";
for (const svg of document.querySelectorAll("svg.chart")) {
  const one = (name) => svg.querySelector("." + name);
  if (!one("frame")) continue;
  const glyph = 7.83;
  const frames = [...svg.querySelectorAll(".frame")].map((g) => ({
    g,
    rect: g.querySelector("rect"),
    text: g.querySelector("text"),
    about: g.querySelector("title").textContent,
    name: g.dataset.name,
    depth: Number(g.dataset.depth),
    start: Number(g.dataset.from),
    end: Number(g.dataset.to),
  }));
  const all = frames[0];
  const left = Number(all.rect.getAttribute("x"));
  const width = Number(all.rect.getAttribute("width"));

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
      f.rect.setAttribute("width", Math.max(w - 0.6, 0.8));
      f.text.setAttribute("x", x + 3);
      f.text.textContent = clipped(f.name, w);
      f.g.classList.toggle("below", isBelow);
    }
    one("reset").classList.toggle("hidden", to === all);
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
    one("matched").textContent = pattern ? `matched: ${matched} (${share} %)` : "";
    one("search").textContent = pattern ? "Reset Search" : "Search";
  };

  const ask = () => {
    const isOn = one("search").textContent !== "Search";
    const term = isOn ? "" : prompt("Search functions (regular expression):", "");
    if (term !== null) search(term);
  };

  for (const f of frames) {
    f.g.addEventListener("click", () => zoom(f));
    f.g.addEventListener("mouseover", () => { one("details").textContent = f.about; });
    f.g.addEventListener("mouseout", () => { one("details").textContent = ""; });
  }
  one("reset").addEventListener("click", () => zoom(all));
  one("search").addEventListener("click", ask);
  one("search").classList.remove("hidden");
  window.addEventListener("keydown", (event) => {
    if (event.key === "Escape") zoom(all);
    // On a page, these are the browser's own.
    if (document.documentElement !== svg) return;
    if (event.key !== "F3" && !(event.ctrlKey && event.key === "f")) return;
    event.preventDefault();
    ask();
  });
}
