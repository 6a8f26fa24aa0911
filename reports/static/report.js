"use strict";
// Redraws the charts of the page with a shared, zoomable step axis. Everything it shows is in the JSON block "curves";
// without this script the page shows the same charts as static drawings.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const LEFT = 66, RIGHT = 10, TOP = 18, BOTTOM = 22; // as in picture.py
  const LABEL_ROOM = 34; // pixels a mark's label needs
  const ORDER = { critical: 0, warning: 1, info: 2 };

  const data = JSON.parse(document.getElementById("curves").textContent);
  const whole = [data.first, Math.max(data.last, data.first + 1)];
  let view = whole.slice();
  let cursor = null; // a step, or null
  const number = new Intl.NumberFormat("en-US"), decimal = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 6 });

  const el = (name, attributes, parent) => {
    const node = document.createElementNS(SVG, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (parent) parent.appendChild(node);
    return node;
  };
  const text = (content, attributes, parent) => { el("text", attributes, parent).textContent = content; };
  const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

  // First index whose step is >= wanted, in pieces of ascending steps.
  const lower = (steps, wanted, from, to) => {
    while (from < to) { const middle = (from + to) >> 1; if (steps[middle] < wanted) from = middle + 1; else to = middle; }
    return from;
  };

  // ---- data: cumulative steps, numbers, and the pieces between which steps go back (attempts) ----
  const charts = data.charts.map((raw, index) => {
    const steps = new Float64Array(raw.steps.length), values = new Float64Array(raw.steps.length);
    const pieces = [];
    let step = 0, start = 0;
    raw.steps.forEach((difference, i) => {
      step += difference;
      steps[i] = step;
      values[i] = Number(raw.values[i]);
      if (i && difference < 0) { pieces.push([start, i]); start = i; }
    });
    pieces.push([start, steps.length]);
    const figure = document.getElementById("chart-" + index);
    return { name: raw.name, bands: raw.bands, level: raw.level, levelName: raw.levelName, falls: raw.falls, steps, values, pieces, figure, svg: figure.querySelector("svg"), output: figure.querySelector(".value"),
      button: figure.querySelector("button.scale"), height: Number(figure.dataset.height), log: "log" in figure.dataset, width: 0, scale: null };
  });
  const events = data.events.map((event, index) => ({ ...event, index }));

  // ---- axes ----
  const across = (chart, step) => LEFT + (step - view[0]) / (view[1] - view[0]) * (chart.width - LEFT - RIGHT);
  const stepAt = (chart, x) => view[0] + (x - LEFT) / (chart.width - LEFT - RIGHT) * (view[1] - view[0]);

  const nice = (low, high, wanted) => {
    const rough = (high / 2 - low / 2) / wanted * 2;
    if (!(rough > 0) || !isFinite(rough)) return [];
    const power = 10 ** Math.floor(Math.log10(rough));
    const unit = [1, 2, 5, 10].map((m) => m * power).find((m) => m >= rough) || 10 * power;
    const out = [];
    for (let k = Math.ceil(low / unit); k * unit <= high && out.length < 50; k++) out.push(k * unit);
    return out;
  };

  // Ticks of a log axis between two exponents: as many of 1, 2, 5 a decade as there is room for, or round values on a short axis.
  const powers = (low, high, wanted) => {
    const every = Math.max(1, Math.ceil((high - low) / wanted));
    for (const digits of [[1, 2, 5], [1, 3], [1]]) {
      const out = [];
      for (let p = Math.floor(low); p <= high; p++) {
        if (p % every === 0) for (const m of digits) { const at = p + Math.log10(m); if (at >= low && at <= high) out.push(m * 10 ** p); }
      }
      if (out.length < 2) break;
      if (out.length <= wanted + 1) return out;
    }
    return nice(10 ** low, 10 ** high, wanted).filter((v) => v > 0);
  };

  const label = (value) => {
    const size = Math.abs(value);
    if (size && (size >= 1e6 || size < 1e-4)) return value.toExponential(3).replace(/\.?0+e/, "e").replace("e+", "e");
    return decimal.format(Number(value.toPrecision(6)));
  };

  const fit = (chart) => {
    let low = Infinity, high = -Infinity;
    for (const [from, to] of chart.pieces) {
      const stop = lower(chart.steps, view[1] + 1e-9, from, to);
      for (let i = lower(chart.steps, view[0], from, to); i < stop; i++) {
        const value = chart.values[i];
        if (isFinite(value) && (!chart.log || value > 0)) { if (value < low) low = value; if (value > high) high = value; }
      }
    }
    if (low > high) { low = chart.log ? 1 : 0; high = chart.log ? 10 : 1; }
    if (chart.log) { low = Math.log10(low); high = Math.log10(high); }
    const pad = 0.12 * (high / 2 - low / 2) || Math.abs(low) * 0.05 || 0.5;
    low -= pad; high += pad;
    const room = chart.height - TOP - BOTTOM;
    const y = (value) => chart.height - BOTTOM - ((chart.log ? Math.log10(value) : value) / 2 - low / 2) / (high / 2 - low / 2) * room;
    const wanted = Math.max(2, Math.floor(room / 28));
    chart.scale = { y, ticks: chart.log ? powers(low, high, wanted) : nice(low, high, wanted) };
  };

  // ---- drawing ----
  // A polyline through the first, lowest, highest and last point of each pixel column, broken where values are missing.
  const trace = (chart) => {
    const { steps, values, scale } = chart;
    const parts = [], dots = [], broken = [];
    let columns = [];
    const flush = () => {
      if (!columns.length) return;
      const points = [];
      for (const column of columns) for (const i of [...new Set([column.a, column.lo, column.hi, column.b])].sort((p, q) => p - q)) points.push(i);
      const places = points.map((i) => across(chart, steps[i]).toFixed(1) + " " + scale.y(values[i]).toFixed(1));
      if (places.length === 1) dots.push("M" + places[0] + "h0"); else parts.push("M" + places.join("L"));
      columns = [];
    };
    for (const [from, to] of chart.pieces) {
      const start = Math.max(from, lower(steps, view[0], from, to) - 1);
      const stop = Math.min(to, lower(steps, view[1] + 1e-9, from, to) + 1);
      for (let i = start; i < stop; i++) {
        const value = values[i], x = across(chart, steps[i]);
        if (!isFinite(value)) {
          flush();
          const last = broken[broken.length - 1], word = isNaN(value) ? "NaN" : "Inf";
          if (last && last.next >= i) { last.to = x; last.next = i + 1; last.words.add(word); }
          else if (last && x - last.to < 2 && x >= last.to) { last.to = x; last.next = i + 1; last.words.add(word); }
          else broken.push({ from: x, to: x, next: i + 1, words: new Set([word]) });
          continue;
        }
        if (chart.log && value <= 0) { flush(); continue; }
        const column = Math.floor(x), top = columns[columns.length - 1];
        if (top && top.column === column) {
          top.b = i;
          if (value < values[top.lo]) top.lo = i;
          if (value > values[top.hi]) top.hi = i;
        } else columns.push({ column, a: i, b: i, lo: i, hi: i });
      }
      flush();
    }
    return { line: parts.join(""), dots: dots.join(""), broken };
  };

  const badge = (severity, x, y, parent) => {
    if (severity === "critical") el("path", { class: "badge", d: `M${x} ${y - 6}l6 6-6 6-6-6z` }, parent);
    else if (severity === "warning") el("path", { class: "badge", d: `M${x} ${y - 6}l6 11h-12z` }, parent);
    else el("circle", { class: "badge", cx: x, cy: y, r: 4.5 }, parent);
  };

  const drawMarks = (chart, svg, focusable) => {
    const taken = [];
    const seen = events.filter((e) => e.last >= view[0] && e.first <= view[1]).sort((a, b) => ORDER[a.severity] - ORDER[b.severity]);
    const groups = seen.map((event) => {
      const inside = event.first >= view[0];
      const x = Number(across(chart, clamp(event.first, view[0], view[1])).toFixed(1));
      const free = inside && taken.every((other) => Math.abs(other - x) > LABEL_ROOM);
      if (free) taken.push(x);
      const group = el("g", { class: "mark " + event.severity });
      if (inside) {
        el("path", { class: "onset", d: `M${x} ${TOP}V${chart.height - BOTTOM}` }, group);
        const link = el("a", { href: "#event-" + event.index, tabindex: focusable ? 0 : -1, "aria-label": `${event.id}, ${event.severity} ${event.kind} at step ${number.format(event.first)}` }, group);
        el("title", {}, link).textContent = `${event.id}: ${event.severity} ${event.kind}, step ${number.format(event.first)}`;
        badge(event.severity, x, 9, link);
        if (free) text(event.id, { x: x + 9, y: 13 }, link);
      }
      return group;
    });
    groups.reverse().forEach((group) => svg.appendChild(group));
  };

  const draw = (chart, number_) => {
    const { svg, height } = chart;
    chart.width = Math.max(240, Math.round(svg.getBoundingClientRect().width || svg.parentNode.clientWidth));
    const width = chart.width;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    fit(chart);
    svg.textContent = "";
    const grid = el("g", { class: "grid" }, svg);
    for (const tick of chart.scale.ticks) el("path", { d: `M${LEFT} ${chart.scale.y(tick).toFixed(1)}H${width - RIGHT}` }, grid);
    (chart.bands || []).forEach(([first, last, name], place) => {
      if (last <= view[0] || first >= view[1]) return;
      const from = across(chart, Math.max(first, view[0])), to = across(chart, Math.min(last, view[1]));
      const group = el("g", { class: place % 2 ? "band odd" : "band" }, svg);
      el("rect", { x: from.toFixed(1), y: TOP, width: Math.max(0, to - from).toFixed(1), height: height - TOP - BOTTOM }, group);
      if (to - from > 7 * name.length + 8) text(name, { x: (from + 4).toFixed(1), y: height - BOTTOM - 5 }, group);
    });
    for (const event of events) {
      if (event.last < view[0] || event.first > view[1]) continue;
      const x = across(chart, Math.max(event.first, view[0])), stop = across(chart, Math.min(event.last, view[1]));
      el("rect", { class: "span " + event.severity, x: x.toFixed(1), y: TOP, width: Math.max(1, stop - x).toFixed(1), height: height - TOP - BOTTOM }, svg);
    }
    const clip = "clip-" + number_;
    el("rect", { x: LEFT, y: TOP - 2, width: width - LEFT - RIGHT, height: height - TOP - BOTTOM + 4 }, el("clipPath", { id: clip }, svg));
    const curve = trace(chart);
    const plot = el("g", { "clip-path": `url(#${clip})` }, svg);
    for (const gap of curve.broken) {
      const group = el("g", { class: "broken" }, plot);
      const from = Math.max(gap.from - 1, LEFT), to = Math.min(gap.to + 1, width - RIGHT);
      if (to < from) continue;
      el("rect", { x: from.toFixed(1), y: TOP, width: (to - from).toFixed(1), height: height - TOP - BOTTOM }, group);
      if (to - from > 24) text([...gap.words].sort().reverse().join(" and "), { x: (from + 4).toFixed(1), y: 31 }, group);
    }
    el("path", { class: "axis", d: `M${LEFT} ${height - BOTTOM}H${width - RIGHT}` }, svg);
    const ticks = el("g", { class: "ticks" }, svg);
    for (const tick of chart.scale.ticks) text(label(tick), { class: "y", x: LEFT - 6, y: (chart.scale.y(tick) + 4).toFixed(1) }, ticks);
    for (const tick of nice(view[0], view[1], Math.max(2, Math.floor(width / 130)))) {
      if (Number.isInteger(tick)) text(number.format(tick), { class: "x", x: clamp(across(chart, tick), LEFT, width - 26).toFixed(1), y: height - 6 }, ticks);
    }
    if (chart.level !== undefined && (chart.level > 0 || !chart.log)) {
      const y = chart.scale.y(chart.level);
      if (y >= TOP && y <= height - BOTTOM) {
        const group = el("g", { class: "level" }, svg);
        el("path", { d: `M${LEFT} ${y.toFixed(1)}H${width - RIGHT}` }, group);
        text(chart.levelName, { x: width - RIGHT - 4, y: (y - 4).toFixed(1) }, group);
      }
    }
    el("path", { class: "line", d: curve.line }, plot);
    const falls = (chart.falls || []).filter((step) => step >= view[0] && step <= view[1]);
    if (falls.length) el("path", { class: "falls", d: falls.map((step) => `M${across(chart, step).toFixed(1)} ${height - BOTTOM}v-7`).join("") }, plot);
    if (curve.dots) el("path", { class: "dots", d: curve.dots }, plot);
    drawMarks(chart, svg, number_ === 0);
    chart.layer = el("g", { class: "cursor", "aria-hidden": "true" }, svg);
    drawCursor(chart);
  };

  // ---- the crosshair: the logged point nearest to the cursor, in every chart ----
  const nearest = (chart, step) => {
    let best = -1;
    for (let p = chart.pieces.length - 1; p >= 0; p--) { // the latest attempt wins where two have the step
      const [from, to] = chart.pieces[p];
      const i = lower(chart.steps, step, from, to);
      for (const candidate of [i, i - 1]) {
        if (candidate < from || candidate >= to) continue;
        if (best < 0 || Math.abs(chart.steps[candidate] - step) < Math.abs(chart.steps[best] - step)) best = candidate;
      }
    }
    return best;
  };

  const drawCursor = (chart) => {
    chart.layer.textContent = "";
    if (cursor === null) { chart.output.textContent = chart.idle; return; }
    const i = nearest(chart, cursor);
    if (i < 0) return;
    const x = across(chart, chart.steps[i]), value = chart.values[i];
    chart.output.textContent = `${value} at step ${number.format(chart.steps[i])}`;
    const at = across(chart, cursor);
    if (at >= LEFT && at <= chart.width - RIGHT) el("path", { d: `M${at.toFixed(1)} ${TOP}V${chart.height - BOTTOM}` }, chart.layer);
    if (isFinite(value) && (!chart.log || value > 0) && x >= LEFT && x <= chart.width - RIGHT) {
      el("circle", { cx: x.toFixed(1), cy: chart.scale.y(value).toFixed(1), r: 3.5 }, chart.layer);
    }
  };

  const range = document.querySelector(".range"), frame = document.querySelector("#strip .window");
  const status = () => {
    range.textContent = `Steps ${number.format(Math.ceil(view[0]))} to ${number.format(Math.floor(view[1]))}` + (isWhole() ? ", the whole run" : "");
    const size = whole[1] - whole[0];
    frame.setAttribute("x", 1000 * (view[0] - whole[0]) / size);
    frame.setAttribute("width", Math.max(3, 1000 * (view[1] - view[0]) / size));
    frame.setAttribute("visibility", isWhole() ? "hidden" : "visible");
  };
  const isWhole = () => view[0] <= whole[0] && view[1] >= whole[1];

  let pending = false, dirty = false;
  const refresh = (full) => {
    dirty = dirty || full;
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => {
      pending = false;
      if (dirty) { charts.forEach(draw); status(); } else charts.forEach(drawCursor);
      dirty = false;
    });
  };

  const show = (low, high) => {
    const size = clamp(high - low, Math.min(4, whole[1] - whole[0]), whole[1] - whole[0]);
    const middle = (low + high) / 2;
    const start = clamp(middle - size / 2, whole[0], whole[1] - size);
    view = [start, start + size];
    refresh(true);
  };
  const zoom = (factor) => {
    const middle = cursor !== null && cursor >= view[0] && cursor <= view[1] ? cursor : (view[0] + view[1]) / 2;
    show(middle - (middle - view[0]) * factor, middle + (view[1] - middle) * factor);
  };
  const move = (share) => { const by = (view[1] - view[0]) * share; show(view[0] + by, view[1] + by); };
  const around = (event) => {
    const calm = Math.max(30, (event.last - event.first) * 0.6, (whole[1] - whole[0]) * 0.01);
    cursor = event.first;
    show(event.first - calm, event.last + calm);
  };
  const walk = (chart, direction) => {
    const { steps, pieces } = chart;
    let i = cursor === null ? lower(steps, view[0], ...pieces[pieces.length - 1]) : nearest(chart, cursor);
    if (cursor !== null) i = clamp(i + direction, 0, steps.length - 1);
    cursor = steps[clamp(i, 0, steps.length - 1)];
    if (cursor < view[0] || cursor > view[1]) { const half = (view[1] - view[0]) / 2; show(cursor - half, cursor + half); } else refresh(false);
  };

  const acts = { left: () => move(-0.4), right: () => move(0.4), in: () => zoom(0.5), out: () => zoom(2), all: () => show(...whole) };
  document.querySelector(".tools").hidden = false;
  document.querySelectorAll("button[data-act]").forEach((button) => button.addEventListener("click", acts[button.dataset.act]));

  for (const chart of charts) {
    const { svg, button } = chart;
    chart.idle = chart.output.textContent;
    svg.setAttribute("role", "group");
    svg.setAttribute("tabindex", "0");
    button.hidden = false;
    button.setAttribute("aria-label", "Logarithmic axis for " + chart.name);
    button.addEventListener("click", () => {
      chart.log = !chart.log;
      button.setAttribute("aria-pressed", String(chart.log));
      refresh(true);
    });
    const place = (e) => { const box = svg.getBoundingClientRect(); return (e.clientX - box.left) * chart.width / box.width; };
    let drag = null;
    svg.addEventListener("pointerdown", (e) => {
      if (e.button !== 0 || e.target.closest("a")) return;
      drag = { from: place(e), view: view.slice(), pan: e.shiftKey, id: e.pointerId };
      svg.setPointerCapture(e.pointerId);
    });
    svg.addEventListener("pointermove", (e) => {
      const x = place(e);
      if (drag && drag.pan) {
        const by = (drag.from - x) / (chart.width - LEFT - RIGHT) * (drag.view[1] - drag.view[0]);
        show(drag.view[0] + by, drag.view[1] + by);
        return;
      }
      cursor = clamp(Math.round(stepAt(chart, x)), view[0], view[1]);
      refresh(false);
      if (drag) {
        if (!chart.brush || !chart.brush.isConnected) chart.brush = el("rect", { class: "brush", y: TOP, height: chart.height - TOP - BOTTOM }, svg);
        const low = clamp(Math.min(x, drag.from), LEFT, chart.width - RIGHT), high = clamp(Math.max(x, drag.from), LEFT, chart.width - RIGHT);
        chart.brush.setAttribute("x", low);
        chart.brush.setAttribute("width", high - low);
      }
    });
    const finish = (e) => {
      if (!drag) return;
      const from = drag.from, x = place(e), pan = drag.pan;
      drag = null;
      if (chart.brush) chart.brush.remove();
      if (!pan && e.type === "pointerup" && Math.abs(x - from) > 5) show(stepAt(chart, Math.min(x, from)), stepAt(chart, Math.max(x, from)));
    };
    svg.addEventListener("pointerup", finish);
    svg.addEventListener("pointercancel", finish);
    svg.addEventListener("pointerleave", () => { if (!drag) { cursor = null; refresh(false); } });
    svg.addEventListener("dblclick", (e) => { e.preventDefault(); acts.all(); });
    svg.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || e.target !== svg) return;
      const keys = { "+": acts.in, "=": acts.in, "-": acts.out, "0": acts.all, Home: acts.all, PageUp: acts.left, PageDown: acts.right,
        ArrowLeft: () => walk(chart, -1), ArrowRight: () => walk(chart, 1), Escape: () => { cursor = null; refresh(false); } };
      if (keys[e.key]) { e.preventDefault(); keys[e.key](); }
    });
  }

  // ---- links from findings into the charts ----
  document.querySelectorAll("a.jump").forEach((link) => link.addEventListener("click", () => {
    if (link.dataset.event !== undefined) around(events[Number(link.dataset.event)]);
    else {
      const step = Number(link.dataset.step), home = events.filter((e) => e.first - 200 <= step && step <= e.last + 200)[0];
      const half = home ? Math.max(60, (home.last - home.first) * 0.8) : Math.max(60, (whole[1] - whole[0]) * 0.02);
      cursor = step;
      show(step - half, step + half);
    }
  }));

  // On paper every explanation is open; manual pages stay folded.
  window.addEventListener("beforeprint", () => document.querySelectorAll("details:not(.manual)").forEach((d) => { d.open = true; }));
  window.addEventListener("resize", () => refresh(true));
  charts.forEach(draw);
  status();
})();
