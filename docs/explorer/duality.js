/* The square of channels of two values: what any multipliers bound, and what the gap is made of.
   A student predicts first, and is shown afterwards.  A channel is a point (a, b) of the square:
   a = p(positive released | negative), b = p(positive released | positive). */
"use strict";

(() => {
  const { el, percent, shown, starAt, svg, ticks } = cvxViews, S = cvxSolver;
  const CLOSED = 2e-3; // bits: a gap that a hand can reach
  const TABLES = [
    { name: "clinic", title: "The clinic", counts: [[90, 10], [10, 90]], budget: 0.2,
      about: "200 records: 90 of 100 healthy patients test negative, 90 of 100 ill ones positive. The state is "
        + "confidential, the test is released; one test result in five may be changed." },
    { name: "rare", title: "Few are ill", counts: [[70, 15], [5, 10]], budget: 0.1,
      about: "100 records: 70 of 85 healthy patients test negative, 10 of 15 ill ones positive. The state is "
        + "confidential, the test is released; one test result in ten may be changed." },
  ];
  const KNOBS = [
    ["release", "a", "a: negative is released as positive", 1],
    ["release", "b", "b: positive is released as positive", 1],
    ["multipliers", "r0", "r(ill | released negative)", 1],
    ["multipliers", "r1", "r(ill | released positive)", 1],
    ["multipliers", "lambda", "λ, bits for each record changed", 3],
  ];

  // ---- the program, in the coordinates of the square -------------------------------------------------

  const masses = ({ law }, a, b) => [[law.px[0] * (1 - a), law.px[0] * a], [law.px[1] * (1 - b), law.px[1] * b]];
  const columns = ({ r0, r1 }) => [[1 - r0, 1 - r1], [r0, r1]];
  const risk = (s, a, b) => S.told(s.law, masses(s, a, b)).risk;
  const change = ({ law }, a, b) => law.px[0] * a + law.px[1] * (1 - b);
  const bound = (s, multipliers = s) => S.bound(s.law, columns(multipliers), multipliers.lambda, s.budget);

  /** m + λ (E d − D), linear in the channel; with λ = 0 the minorant m of I(W; X̂). */
  function linear(s, a, b, lambda) {
    const G = S.costs(s.law, columns(s), lambda), Q = masses(s, a, b);
    return cvxFrontier.sum(Q.flat().map((mass, i) => mass * G.flat()[i])) - lambda * s.budget;
  }

  /** The λ that proves most for an r: the bound is concave and piecewise linear in λ. */
  function bestLambda(s, multipliers) {
    const G = S.costs(s.law, columns(multipliers), 0);
    const breaks = [0, G[0][0] - G[0][1], G[1][1] - G[1][0]].filter((lambda) => lambda >= 0);
    const value = (lambda) => bound(s, { ...multipliers, lambda });
    return breaks.reduce((best, lambda) => (value(lambda) > value(best) ? lambda : best));
  }

  /** Everything of a table that does not move. */
  function prepared(table) {
    const law = S.model(table.counts, S.hamming(2)), { budget } = table;
    const { Q, r, lambda, upper } = S.solve(law, budget);
    const best = { a: Q[0][1] / law.px[0], b: Q[1][1] / law.px[1], r0: r[1][0], r1: r[1][1], lambda, risk: upper };
    return { ...table, law, best, prior: law.pw[1], drawn: new Map() };
  }

  /** Multipliers on the way from the prior (0) to those of the optimum (1), with the best λ. */
  function between(s, share) {
    const mixed = (r) => s.prior + share * (r - s.prior);
    const multipliers = { r0: mixed(s.best.r0), r1: mixed(s.best.r1) };
    return { ...multipliers, lambda: bestLambda(s, multipliers) };
  }

  // ---- questions: asked first, shown afterwards --------------------------------------------------------

  const PARTS = ["stationarity", "masses", "budget"];
  const CALLED = {
    stationarity: "stationarity: Σ\u00a0q\u00a0KL(posterior\u00a0‖\u00a0r)",
    masses: "complementarity of Q\u00a0≥\u00a00: Σ\u00a0Q\u00a0(G\u00a0−\u00a0min\u00a0G)",
    budget: "complementarity of the budget: λ\u00a0(D\u00a0−\u00a0E\u00a0d)",
  };
  const QUESTIONS = [
    {
      ask: () => "Where is the best release? Drag the point, or use the two sliders, to where you expect it; then answer.",
      begin: () => ({ a: 0.5, b: 0.5, r0: 0.5, r1: 0.5, lambda: 0 }),
      right: (s) => Math.hypot(s.a - s.best.a, s.b - s.best.b) < 0.08,
      tell: (s) => `Yours leaves ${shown(risk(s, s.a, s.b))} bits and changes ${percent(change(s, s.a, s.b))} of the records${
        change(s, s.a, s.b) > s.budget + 1e-9 ? ", more than allowed" : ""}. The best (star) leaves ${shown(s.best.risk)}: ${
        s.best.a < 1e-3 || s.best.b > 1 - 1e-3 ? "the budget line meets the edge of the square there, and only one kind of result is ever changed."
          : "the budget line touches a level curve there, and is its tangent."}`,
    },
    {
      ask: () => "r are the posteriors of the best release. Let λ = 0, so that changes cost nothing. What is the bound then?",
      begin: ({ best }) => ({ ...best, lambda: 0 }),
      options: ({ best }) => [`the optimum, ${shown(best.risk)} bits`, "less, but more than 0", "0 or less: it says nothing"],
      truth: (s) => (bound(s) > s.best.risk - 1e-4 ? 0 : bound(s) > 1e-9 ? 1 : 2),
      tell: (s) => `The bound is ${shown(bound(s))}. The minorant m lies below I everywhere, so on the diagonal, where a constant is `
        + "released and I = 0, it is 0 or less. Without a price nothing keeps the minimum away from there. Now raise λ.",
    },
    {
      ask: ({ prior }) => `Now r is nearer to the share of ill patients, ${shown(prior, 2)}, than the best posteriors are; λ is the best for this r. `
        + "Which way must r move for the bound to rise?",
      begin: (s) => ({ ...s.best, ...between(s, 0.5) }),
      options: () => ["towards the share of ill patients", "away from it, each to its side", "neither: it falls both ways"],
      truth: (s) => {
        const [near, here, far] = [0.4, 0.5, 0.6].map((share) => bound(s, between(s, share)));
        return near > here ? 0 : far > here ? 1 : 2;
      },
      tell: (s) => `Here the bound is ${shown(bound(s, between(s, 0.5)))} bits, a little further out ${shown(bound(s, between(s, 0.6)))}, and ${
        shown(s.best.risk)} where r are the posteriors of the best release. An r too near the prior makes a minorant that is too flat. Move r, then λ.`,
    },
    {
      ask: () => "The release is the best one and r are its posteriors, but λ is twice the right price. Which part of the gap is positive?",
      begin: ({ best }) => ({ ...best, lambda: 2 * best.lambda }),
      options: () => PARTS.map((part) => CALLED[part]),
      truth: (s) => {
        const gap = gapOf(s);
        return PARTS.map((part) => gap[part]).reduce((most, value, i, all) => (value > all[most] ? i : most), 0);
      },
      tell: (s) => "r are the posteriors, so stationarity holds; the budget is spent, so its part is 0 at any price. But at this price "
        + `it is cheaper to change less, and Q still changes records: that is ${shown(gapOf(s).masses)} bits of the gap.`,
    },
    {
      ask: () => "Close the gap yourself: move the release and the multipliers until the bound touches I.",
      begin: (s) => ({ a: 0.1, b: 0.9, ...between(s, 0.3) }),
      free: true,
    },
  ];

  const gapOf = (s) => S.parts(s.law, masses(s, s.a, s.b), columns(s), s.lambda, s.budget);

  // ---- drawing -------------------------------------------------------------------------------------------

  /** Segments of the level line f = level on an n × n grid of the square, as a path. */
  function contour(f, level, n, px, py) {
    const at = Array.from({ length: n + 1 }, (_, i) => Array.from({ length: n + 1 }, (__, j) => f(i / n, j / n) - level));
    let path = "";
    for (let i = 0; i < n; i += 1) {
      for (let j = 0; j < n; j += 1) {
        const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]];
        const met = corners.flatMap(([u, v], k) => {
          const [s, t] = corners[(k + 1) % 4], [low, high] = [at[u][v], at[s][t]];
          if ((low > 0) === (high > 0)) return [];
          const share = low / (low - high);
          return [[px((u + share * (s - u)) / n), py((v + share * (t - v)) / n)]];
        });
        for (let k = 0; k + 1 < met.length; k += 2) {
          path += `M${met[k].map((z) => z.toFixed(1)).join(" ")}L${met[k + 1].map((z) => z.toFixed(1)).join(" ")}`;
        }
      }
    }
    return path;
  }

  /** The square: level curves of I and of its minorant, the budget, the release, the best one. */
  function square(place, s, pick) {
    const width = Math.max(Math.min(place.clientWidth, 430), 260), [left, right, top, bottom] = [44, 14, 12, 42];
    const size = width - left - right, height = size + top + bottom;
    const px = (a) => left + a * size, py = (b) => top + (1 - b) * size;
    const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label":
      "the square of channels: level curves of the information left, the budget line and the release" });
    const { px: [p0, p1] } = s.law, D = s.budget;
    root.append(svg("path", { class: "ex-allowed", d: `M${px(0)} ${py(1)}L${px(D / p0)} ${py(1)}L${px(0)} ${py(1 - D / p1)}Z` }));
    const curve = (level) => { // of I, which never moves: drawn once for a size
      const key = `${level} ${size}`;
      if (!s.drawn.has(key)) s.drawn.set(key, contour((a, b) => risk(s, a, b), level, 50, px, py));
      return s.drawn.get(key);
    };
    const most = risk(s, 0, 1), levels = ticks(0, most, 6).filter((level) => level > 0 && level < most);
    for (const level of levels) {
      root.append(svg("path", { class: "ex-level-curve", d: curve(level) }));
    }
    if (s.solved) {
      root.append(svg("path", { class: "ex-level-curve ex-touching", d: curve(s.best.risk) }));
    }
    if (s.open) {
      const all = [...levels.map((level) => -level), 0, ...levels];
      for (const level of all) {
        root.append(svg("path", { class: `ex-minorant${level ? "" : " ex-zero"}`, d: contour((a, b) => linear(s, a, b, 0), level, 1, px, py) }));
      }
    }
    root.append(svg("line", { class: "ex-budget", x1: px(D / p0), y1: py(1), x2: px(0), y2: py(1 - D / p1) }),
      svg("line", { class: "ex-constant", x1: px(0), y1: py(0), x2: px(1), y2: py(1) }),
      svg("rect", { class: "ex-frame", x: left, y: top, width: size, height: size }));
    // level curves are named on the left edge, where only a positive result is changed
    for (const level of levels) {
      let [low, high] = [0, 1];
      for (let i = 0; i < 30; i += 1) if (risk(s, 0, (low + high) / 2) < level) low = (low + high) / 2; else high = (low + high) / 2;
      root.append(svg("text", { class: "ex-tick ex-level-name", x: px(0) + 3, y: py(low) + 4 }, shown(level, 2)));
    }
    for (const t of [0, 0.5, 1]) {
      root.append(svg("text", { class: "ex-tick", x: px(t), y: height - bottom + 16, "text-anchor": "middle" }, String(t)),
        svg("text", { class: "ex-tick", x: left - 6, y: py(t) + 4, "text-anchor": "end" }, String(t)));
    }
    root.append(svg("text", { class: "ex-title", x: px(0.5), y: height - 6, "text-anchor": "middle" }, "a: negative is released as positive"),
      svg("text", { class: "ex-title", transform: `translate(14 ${py(0.5)}) rotate(-90)`, "text-anchor": "middle" }, "b: positive is released as positive"),
      svg("text", { class: "ex-tick", x: px(0.71), y: py(0.66), transform: `rotate(-45 ${px(0.71)} ${py(0.66)})`, "text-anchor": "middle" }, "a constant: I = 0"));
    if (s.open) {
      const least = bound(s);
      for (const [a, b] of [[0, 0], [0, 1], [1, 0], [1, 1]]) {
        const value = linear(s, a, b, s.lambda);
        root.append(svg("text", { class: `ex-corner${value < least + 1e-4 ? " ex-least" : ""}`, x: px(a) + (a ? -26 : 30), y: py(b) + (b ? 18 : -8),
          "text-anchor": a ? "end" : "start" }, shown(value, 3)));
      }
    }
    root.append(svg("circle", { class: "ex-hand", cx: px(s.a), cy: py(s.b), r: 9 }));
    if (s.solved) {
      root.append(svg("path", { class: "ex-star ex-used ex-optimum", d: starAt(px(s.best.a), py(s.best.b), 9) }));
    }
    const picked = (event) => {
      const box = root.getBoundingClientRect(), inside = (t) => Math.min(Math.max(t, 0), 1);
      pick(inside((event.clientX - box.left - left) / size), inside(1 - (event.clientY - box.top - top) / size));
    };
    place.onpointerdown = (event) => { place.setPointerCapture(event.pointerId); picked(event); };
    place.onpointermove = (event) => { if (event.buttons) picked(event); };
    place.replaceChildren(root);
  }

  /** I, its minorant and the bound along a segment of channels; `at` gives the channel of a share. */
  function section(place, s, { name, title, axis, at, axisAt, marks, tilted }) {
    const width = Math.max(place.clientWidth, 260), height = 190, [left, right, top, bottom] = [44, 18, 24, 38];
    const shares = Array.from({ length: 61 }, (_, i) => i / 60), along = shares.map((t) => at(t));
    const [low, high] = [axisAt(0), axisAt(1)], px = (x) => left + ((x - low) / (high - low)) * (width - left - right);
    const curve = along.map(([a, b]) => risk(s, a, b)), most = Math.max(...curve, 1e-3) * 1.1;
    const floor = -0.35 * most, py = (y) => top + ((most - y) / (most - floor)) * (height - top - bottom);
    const path = (ys) => ys.map((y, i) => `${i ? "L" : "M"}${px(axisAt(shares[i])).toFixed(1)} ${py(y).toFixed(1)}`).join("");
    const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
    const clip = svg("clipPath", { id: `ex-clip-${name}` });
    clip.append(svg("rect", { x: left, y: top, width: width - left - right, height: height - top - bottom }));
    root.append(clip);
    for (const y of ticks(floor, most, 4)) {
      root.append(svg("line", { class: "ex-grid", x1: left, x2: width - right, y1: py(y), y2: py(y) }),
        svg("text", { class: "ex-tick", x: left - 6, y: py(y) + 4, "text-anchor": "end" }, String(y).replace("-", "−")));
    }
    for (const x of ticks(low, high, 5)) {
      root.append(svg("text", { class: "ex-tick", x: px(x), y: height - bottom + 16, "text-anchor": "middle" }, String(x)));
    }
    const drawn = svg("g", { "clip-path": `url(#ex-clip-${name})` });
    for (const x of marks) drawn.append(svg("line", { class: "ex-budget", x1: px(x), x2: px(x), y1: top, y2: height - bottom }));
    drawn.append(svg("path", { class: "ex-inner", d: path(curve) }),
      svg("path", { class: "ex-below", d: path(along.map(([a, b]) => linear(s, a, b, 0))) }));
    if (tilted) drawn.append(svg("path", { class: "ex-below ex-tilted", d: path(along.map(([a, b]) => linear(s, a, b, s.lambda))) }));
    drawn.append(svg("line", { class: "ex-outer", x1: left, x2: width - right, y1: py(bound(s)), y2: py(bound(s)) }));
    root.append(drawn, svg("text", { class: "ex-title", x: 2, y: 14 }, title),
      svg("text", { class: "ex-title", x: width - right, y: height - 4, "text-anchor": "end" }, `${axis} →`));
    place.replaceChildren(root);
  }

  function sections(across, along, s) {
    const { px: [p0, p1] } = s.law, D = s.budget;
    section(along, s, {
      name: "along", title: "Along the budget line", axis: "a", marks: [],
      at: (t) => [(t * D) / p0, 1 - ((1 - t) * D) / p1], axisAt: (t) => (t * D) / p0,
    });
    const lost = s.a + 1 - s.b, [da, db] = lost > 1e-6 ? [s.a / lost, (1 - s.b) / lost] : [0.5, 0.5];
    section(across, s, {
      name: "across", title: "Truth → your release → a constant", axis: "records changed, E d", marks: [D], tilted: true,
      at: (t) => [t * da, 1 - t * db], axisAt: (t) => t * (p0 * da + p1 * db),
    });
  }

  function legend(place, s) {
    const items = [["inner", `I(W; X̂): its level curves, bits${s.solved ? ` (thick: ${shown(s.best.risk)})` : ""}`], ["budget", "E d = D; shaded: allowed"],
      ...(s.open ? [["below", "minorant m of r: its level lines, as far apart (thick: 0)"], ["tilted", "m + λ (E d − D); its value at each corner"],
        ["outer", "the bound: the least corner"]] : [])];
    place.replaceChildren(...items.map(([kind, words]) => el("li", {}, el("span", { class: `ex-key ex-key-${kind}` }), words)),
      ...(s.solved ? [el("li", {}, el("span", { class: "ex-key ex-key-star" }), "the best release")] : []));
  }

  function gap(find, s) {
    const values = gapOf(s), value = risk(s, s.a, s.b), lower = bound(s), broken = values.budget < -1e-9;
    find("sum").replaceChildren("I of your release ", el("output", { "data-sq": "risk", "aria-live": "off" }, shown(value)), " − bound ",
      el("output", { "data-sq": "bound", "aria-live": "off" }, shown(lower)), " = gap ",
      el("output", { "data-sq": "width", "aria-live": "off" }, shown(value - lower)),
      broken ? " (this release changes more than D: it does not compete, and the last part is negative)" : "");
    const most = Math.max(...Object.values(values), 0.05);
    find("parts").replaceChildren(...PARTS.map((part) => {
      const bar = el("span", { class: "ex-bar" });
      bar.style.setProperty("--share", Math.min(Math.max(values[part] / most, 0), 1));
      return el("li", { "data-part": part }, el("span", { class: "ex-name" }, CALLED[part]), el("span", { class: "ex-track" }, bar),
        el("output", { class: "ex-number", "aria-live": "off" }, shown(values[part])));
    }));
  }

  // ---- the page ------------------------------------------------------------------------------------------

  function play(root) {
    const find = (name) => root.querySelector(`[data-sq="${name}"]`);
    const inputs = {};
    let s = null;

    for (const [box, name, words, most] of KNOBS) {
      const input = el("input", { type: "range", min: 0, max: most, step: 0.005, id: `ex-knob-${name}` });
      const number = el("output", { for: input.id, "aria-live": "off" });
      input.addEventListener("input", () => {
        const value = Number(input.value), inside = name.startsWith("r") ? Math.min(Math.max(value, 0.001), 0.999) : value;
        set({ [name]: inside });
      });
      inputs[name] = { input, number };
      find(box).append(el("div", { class: "ex-knob" }, el("label", { for: input.id }, words), number, input));
    }
    const take = (words, change_) => {
      const button = el("button", { type: "button" }, words);
      button.addEventListener("click", () => set(change_()));
      return button;
    };
    find("multipliers").append(el("div", { class: "ex-takes" },
      take("r ← posteriors", () => {
        const { r } = S.told(s.law, masses(s, s.a, s.b)), inside = (p) => Math.min(Math.max(p, 0.001), 0.999);
        return { r0: inside(r[1][0]), r1: inside(r[1][1]) };
      }),
      take("λ ← best for r", () => ({ lambda: bestLambda(s, s) }))));
    find("release").append(el("div", { class: "ex-takes" }, take("release ← the best", () => ({ a: s.best.a, b: s.best.b }))));

    function set(change_) {
      s = { ...s, ...change_ };
      const question = QUESTIONS[s.at];
      square(find("square"), s, (a, b) => { if (!s.locked) set({ a, b }); });
      legend(find("legend"), s);
      for (const [name, { input, number }] of Object.entries(inputs)) {
        input.value = String(s[name]);
        number.textContent = shown(s[name], 3);
        input.setAttribute("aria-valuetext", shown(s[name], 3));
      }
      for (const name of ["sections", "sum", "parts", "multipliers"]) find(name).hidden = !s.open;
      find("release").querySelector(".ex-takes").hidden = !s.solved;
      find("release").hidden = s.locked;
      if (s.open) {
        sections(find("across"), find("along"), s);
        gap(find, s);
        if (question.free) {
          const closed = gapOf(s), width = PARTS.reduce((total, part) => total + closed[part], 0);
          find("told").textContent = change(s, s.a, s.b) <= s.budget + 1e-9 && width < CLOSED
            ? `Closed to ${shown(width)} bits: this release is nearly the best, and the multipliers show it.` : "";
        }
      }
    }

    /** Ask a question: what it is about stays hidden until it is answered. */
    function ask(at) {
      const question = QUESTIONS[at];
      s = { ...s, at, solved: at > 0, open: Boolean(question.free), locked: at > 0 && !question.free };
      s = { ...s, ...question.begin(s) };
      find("count").textContent = question.free ? "Freely" : `Question ${at + 1} of ${QUESTIONS.length - 1}: predict first`;
      find("question").textContent = question.ask(s);
      find("told").textContent = "";
      find("told").className = "ex-message";
      find("options").replaceChildren(...(question.options ? question.options(s) : []).map((words, i) =>
        el("label", { class: "ex-option" }, el("input", { type: "radio", name: "ex-answer", value: i, required: "" }), ` ${words}`)));
      find("answer").textContent = question.free ? "Again from the first question" : "This is my answer";
      s.answered = Boolean(question.free);
      set({});
    }

    function answer() {
      const question = QUESTIONS[s.at];
      if (s.answered) { ask((s.at + 1) % QUESTIONS.length); return; }
      const chosen = root.querySelector('[name="ex-answer"]:checked');
      const right = question.options ? Number(chosen.value) === question.truth(s) : question.right(s);
      const words = question.tell(s);
      for (const input of root.querySelectorAll('[name="ex-answer"]')) {
        input.disabled = true;
        input.parentElement.classList.toggle("ex-true", Number(input.value) === question.truth(s));
      }
      set({ answered: true, solved: true, open: s.at > 0, locked: false });
      find("told").className = right ? "ex-message" : "ex-message ex-wrong";
      find("told").textContent = `${right ? "Yes." : "Not so."} ${words}`;
      find("answer").textContent = "Go on";
    }

    find("ask").addEventListener("submit", (event) => { event.preventDefault(); answer(); });
    let width = root.clientWidth;
    new ResizeObserver(() => {
      if (root.clientWidth !== width) { width = root.clientWidth; set({}); }
    }).observe(root);

    const begin = (table) => {
      s = prepared(table);
      find("about").textContent = table.about;
      ask(0);
    };
    const radios = TABLES.map((table) => {
      const radio = el("input", { type: "radio", name: "cvx-table", value: table.name, id: `ex-table-${table.name}` });
      radio.addEventListener("change", () => begin(table));
      find("choose").append(el("span", { class: "ex-choice" }, radio, el("label", { for: radio.id }, table.title)));
      return radio;
    });
    radios[0].checked = true;
    begin(TABLES[0]);
  }

  const start = () => document.querySelectorAll(".ex-square").forEach(play);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
