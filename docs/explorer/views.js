/* What the Explorer draws: each view fills an element from a picture and the release at x.
   All text goes in as text, never as markup. */
"use strict";

const cvxViews = (() => {
  const F = cvxFrontier;
  const SVG = "http://www.w3.org/2000/svg";
  const CIVIDIS = ["#00224e", "#1a386f", "#434e6c", "#61656f", "#7d7c78", "#9b9476", "#bcae6c",
    "#dec958", "#fee838"];
  const REFERENCE = ["#D55E00", "#009E73", "#CC79A7", "#E69F00"];
  const FEW = 10; // letters up to which entries are written out

  // ---- elements and numbers --------------------------------------------------------------------

  /** Make an element; `text` is its text, further arguments its children. */
  function el(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  function svg(tag, attributes = {}, text) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  const minus = (text) => text.replace("-", "−");

  /** A number to four digits behind the point, or as few as say it. */
  function shown(value, digits = 4) {
    if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "–";
    const size = Math.abs(value);
    const places = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? Math.min(2, digits) : digits;
    const text = value.toFixed(places);
    return minus(Number(text) === 0 ? text.replace("-", "") : text);
  }

  /** Ends of an enclosure, rounded outwards: further than the page's own arithmetic is off. */
  function outwards(low, high) {
    const digits = Math.max(Math.abs(low) || 0, Math.abs(high) || 0) >= 10 ? 3 : 4;
    const power = 10 ** digits, cut = (value, round, away) =>
      (Number.isFinite(value)
        ? minus((round((value + away * 1e-12 * Math.abs(value)) * power) / power).toFixed(digits))
        : shown(value));
    return [cut(low, Math.floor, -1), cut(high, Math.ceil, 1)];
  }

  const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)}\u202f%`;

  function colour(value) {
    const place = Math.min(Math.max(value, 0), 1) * (CIVIDIS.length - 1);
    const i = Math.min(Math.floor(place), CIVIDIS.length - 2), t = place - i;
    const parts = [CIVIDIS[i], CIVIDIS[i + 1]].map((hex) =>
      [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16)));
    return `rgb(${parts[0].map((c, k) => Math.round((1 - t) * c + t * parts[1][k])).join(",")})`;
  }

  /** Black or white on a colour, whichever is read more easily (contrast by WCAG 2.2). */
  function ink(background) {
    const [r, g, b] = background.match(/\d+/g).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return (0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05) ** 2 > 1.05 * 0.05 ? "#000" : "#fff";
  }

  /** Round places of an axis. */
  function ticks(low, high, count) {
    const raw = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw * 0.999);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) {
      found.push(Number((k * step).toPrecision(12)));
    }
    return found;
  }

  // ---- the curve ---------------------------------------------------------------------------------

  /** Draw the frontier; returns what moves the mark to an x. `pick` is called with an x. */
  function curve(place, picture, pick) {
    const width = Math.max(place.clientWidth, 260), height = Math.round(Math.min(0.62 * width, 340));
    const [left, right, top, bottom] = [48, 12, 26, 40];
    const [low, high] = F.range(picture), span = high - low || 1;
    const grid = Array.from({ length: 401 }, (_, i) => low + (span * i) / 400);
    const places = [...new Set([...grid, ...picture.corners.map((c) => c.x)])].sort((a, b) => a - b);
    const inner = places.map((x) => F.inner(picture, x));
    const outer = places.map((x) => F.outer(picture, x)).map((y) => (Number.isFinite(y) ? y : NaN));
    const most = Math.max(...inner, ...picture.references.flatMap((r) => r.y)) || 1;
    const least = Math.min(0, ...outer.filter(Number.isFinite));
    const px = (x) => left + ((x - low) / span) * (width - left - right);
    const py = (y) => height - bottom - ((y - least) / (1.06 * (most - least))) * (height - top - bottom);
    const path = (xs, ys) => xs.map((x, i) => [px(x), py(ys[i])]).filter((p) => !p.some(Number.isNaN))
      .map((p, i) => `${i ? "L" : "M"}${p[0].toFixed(2)} ${p[1].toFixed(2)}`).join("");

    const root = svg("svg", {
      width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label":
        `${picture.words.value}, by ${picture.words.parameter}: the frontier and its band`,
    });
    const clip = svg("clipPath", { id: "ex-clip" });
    clip.append(svg("rect", { x: left, y: top - 8, width: width - left - right, height: height - top - bottom + 8 }));
    root.append(clip);
    for (const y of ticks(least, most, height < 260 ? 4 : 5)) {
      root.append(svg("line", { class: "ex-grid", x1: left, x2: width - right, y1: py(y), y2: py(y) }));
      root.append(svg("text", { class: "ex-tick", x: left - 6, y: py(y) + 4, "text-anchor": "end" },
        minus(String(y))));
    }
    for (const x of ticks(low, high, width < 420 ? 4 : 7)) {
      root.append(svg("line", { class: "ex-axis", x1: px(x), x2: px(x), y1: height - bottom, y2: height - bottom + 5 }));
      root.append(svg("text", { class: "ex-tick", x: px(x), y: height - bottom + 18, "text-anchor": "middle" },
        minus(String(x))));
    }
    root.append(svg("line", { class: "ex-axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }));
    const unit = picture.words.unit ? `, ${picture.words.unit}` : "";
    root.append(svg("text", { class: "ex-title", x: 2, y: 14 }, picture.words.value));
    root.append(svg("text", { class: "ex-title", x: width - right, y: height - 4, "text-anchor": "end" },
      `${picture.words.parameter}${unit} →`));

    const drawn = svg("g", { "clip-path": "url(#ex-clip)" });
    const known = places.map((_, i) => i).filter((i) => Number.isFinite(outer[i]));
    const over = known.map((i) => places[i]);
    const back = path([...over].reverse(), known.map((i) => outer[i]).reverse());
    drawn.append(svg("path", { class: "ex-band",
      d: `${path(over, known.map((i) => inner[i]))}${back.replace(/^M/, "L")}Z` }));
    picture.references.forEach((reference, i) => drawn.append(svg("path", {
      class: "ex-reference", stroke: REFERENCE[i % REFERENCE.length], d: path(reference.x, reference.y),
    })));
    drawn.append(svg("path", { class: "ex-outer", d: path(over, known.map((i) => outer[i])) }));
    drawn.append(svg("path", { class: "ex-inner", d: path(places, inner) }));
    const support = svg("path", { class: "ex-support" });
    drawn.append(support);
    root.append(drawn);
    const points = picture.points.filter((p) => p.upper !== null).map((point) => {
      const star = svg("path", { class: "ex-star", d: starAt(px(point.x), py(point.upper), 6) });
      root.append(star);
      return { point, star };
    });
    const stem = svg("line", { class: "ex-stem", y2: height - bottom });
    const mark = svg("circle", { class: "ex-mark", r: 7 });
    root.append(stem, mark);

    const picked = (event) => {
      const share = (event.clientX - root.getBoundingClientRect().left - left) / (width - left - right);
      pick(low + Math.min(Math.max(share, 0), 1) * span);
    };
    root.addEventListener("pointerdown", (event) => {
      root.setPointerCapture(event.pointerId);
      picked(event);
    });
    root.addEventListener("pointermove", (event) => { if (event.buttons) picked(event); });
    place.replaceChildren(root);

    return (x) => {
      const y = F.inner(picture, x), { a, b, share } = F.mixture(picture, x);
      for (const [name, value] of [["cx", px(x)], ["cy", py(y)]]) mark.setAttribute(name, value);
      for (const [name, value] of [["x1", px(x)], ["x2", px(x)], ["y1", py(y)]]) stem.setAttribute(name, value);
      const used = [a, ...(share > 0 ? [b] : [])];
      for (const { point, star } of points) star.classList.toggle("ex-used", used.includes(point));
      if (picture.kind !== "monotone") {
        const best = F.strongest(picture, x);
        support.setAttribute("d", best ? path(grid, grid.map((at) => F.line(picture, best, at))) : "");
      }
    };
  }

  function starAt(x, y, size) {
    const corners = Array.from({ length: 10 }, (_, i) => {
      const radius = i % 2 ? 0.45 * size : size, angle = (Math.PI * i) / 5;
      return `${(x + radius * Math.sin(angle)).toFixed(2)} ${(y - radius * Math.cos(angle)).toFixed(2)}`;
    });
    return `M${corners.join("L")}Z`;
  }

  /** Say what each line of the curve is. */
  function legend(place, picture) {
    const [by, star, bounds] = picture.computed
      ? ["computed", "solved by this page", "the line that bounds it here"]
      : ["proved", "solved and proved", "the line that proves it here"];
    const items = [
      ["inner", picture.kind === "monotone" ? `achieved by a solved release (${by})`
        : `achieved: mixing solved releases (${by})`],
      ["outer", `no release lies below (${by})`],
      ["band", "in between: the optimum"],
      ["star", star],
      ...(picture.kind === "monotone" ? [] : [["support", bounds]]),
    ].map(([kind, words]) => el("li", {}, el("span", { class: `ex-key ex-key-${kind}` }), words));
    picture.references.forEach((reference, i) => {
      const key = el("span", { class: "ex-key ex-key-reference" });
      key.style.borderTopColor = REFERENCE[i % REFERENCE.length];
      items.push(el("li", {}, key, reference.label));
    });
    place.replaceChildren(...items);
  }

  // ---- discrete releases -----------------------------------------------------------------------

  const labels = (picture) => {
    const { model } = picture, own = model.x;
    const called = (key) => (model.names[key] === "X" ? "value" : model.names[key]);
    return { w: model.w || own, x: own, out: model.outputs || own,
      names: model.kind === "gaussian" ? {} : { w: called("w"), x: called("x") } };
  };

  const remembered = new WeakMap();

  /** What is the same at every x is computed once for a picture. */
  function once(picture, name, compute) {
    if (!remembered.has(picture)) remembered.set(picture, new Map());
    const known = remembered.get(picture);
    if (!known.has(name)) known.set(name, compute());
    return known.get(name);
  }

  /** The channel as a table whose cells are coloured. */
  function channel(place, picture, release) {
    const { x, out, names } = labels(picture), few = out.length <= FEW;
    const kind = few ? (out.length > 5 ? "ex-channel ex-tall" : "ex-channel") : "ex-channel ex-many";
    const head = el("tr", {}, el("th", { scope: "col" }, `${names.x} ↓ released →`),
      ...out.map((letter) => el("th", { scope: "col" }, el("span", {}, few ? letter : ""))));
    const rows = release.channel.map((row, i) => el("tr", {}, el("th", { scope: "row" }, x[i]),
      ...row.map((p, j) => {
        const cell = el("td", { title: `${x[i]} → ${out[j]}: ${shown(p)}` }, few ? shown(p, 2) : "");
        cell.style.background = colour(p);
        cell.style.color = ink(colour(p));
        return cell;
      })));
    const caption = el("caption", {}, "each row: what is released in place of this value, with which probability");
    place.replaceChildren(el("table", { class: kind }, caption,
      el("thead", {}, head), el("tbody", {}, ...rows)));
  }

  /** Posteriors p(w | x̂) as bars against the prior. */
  function posteriors(place, picture, release) {
    const { w, out, names } = labels(picture);
    const most = once(picture, "posteriors", () => Math.max(...picture.corners.flatMap(({ x }) => {
      const known = F.releaseAt(picture, x);
      const met = known.posteriors.filter((_, y) => known.marginal[y] > 1e-3);
      return [...known.prior, ...met.flat()];
    })));
    const said = el("p", { class: "ex-note" },
      `Bars: ${names.w} among the records released so. Black ticks: ${names.w} in the whole table. `
      + "The nearer bars are to ticks, the less a release tells.");
    const cards = out.map((letter, y) => y).filter((y) => release.marginal[y] > 1e-6).map((y) => {
      const title = el("h4", {}, el("strong", {}, out[y]), ` is released for ${percent(release.marginal[y])}`);
      const bars = w.map((value, i) => {
        const p = release.posteriors[y][i], prior = release.prior[i];
        const bar = el("span", { class: "ex-bar" }), tick = el("span", { class: "ex-prior" });
        bar.style.setProperty("--share", Math.min(p / most, 1));
        tick.style.setProperty("--share", prior / most);
        return el("li", { title: `${value}: ${shown(p, 3)}, in the whole table ${shown(prior, 3)}` },
          el("span", { class: "ex-name" }, value), el("span", { class: "ex-track" }, bar, tick),
          el("span", { class: "ex-number" }, shown(p, 3)));
      });
      return el("div", { class: "ex-card", "data-letter": out[y] }, title, el("ul", {}, ...bars));
    });
    const never = out.filter((_, y) => !(release.marginal[y] > 1e-6));
    const lost = never.length ? [el("p", { class: "ex-note" }, `Never released: ${never.join(", ")}.`)] : [];
    const kind = w.length > 5 ? "ex-cards ex-columns" : "ex-cards";
    place.replaceChildren(said, el("div", { class: kind }, ...cards), ...lost);
  }

  /** The water level of a categorical source. */
  function water(place, picture, release) {
    const { pmf, x } = picture.model, { level, drawn, kept } = release.water;
    const width = Math.max(place.clientWidth, 260), step = (width - 8) / pmf.length, tilt = step < 62;
    const height = tilt ? 240 : 200, base = height - (tilt ? 66 : 24), top = 16, most = Math.max(...pmf);
    const py = (p) => base - (p / most) * (base - top);
    const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `water level ${shown(level)} over ${pmf.length} probabilities` });
    pmf.forEach((p, i) => {
      const at = { x: 4 + i * step + 0.14 * step, width: 0.72 * step };
      const rect = (kind, low, high) => root.append(svg("rect",
        { ...at, class: kind, y: py(high), height: Math.max(py(low) - py(high), 0) }));
      rect("ex-under", 0, Math.min(p, level));
      if (p > level) rect("ex-above", level, p);
      const middle = at.x + at.width / 2;
      root.append(svg("text", { class: "ex-tick", x: tilt ? middle + 4 : middle, y: base + (tilt ? 8 : 15), "text-anchor": tilt ? "end" : "middle",
        ...(tilt ? { transform: `rotate(-90 ${middle + 4} ${base + 8})` } : {}) }, x[i]));
      if (kept[i] > 0 && step >= 36) {
        root.append(svg("text", { class: "ex-tick", x: middle, y: py(p) - 4, "text-anchor": "middle" },
          percent(kept[i])));
      }
    });
    root.append(svg("rect", { class: "ex-water", x: 0, width, y: py(level), height: base - py(level) }));
    root.append(svg("line", { class: "ex-level", x1: 0, x2: width, y1: py(level), y2: py(level) }));
    const lost = x.filter((_, i) => !(drawn[i] > 0)).join(", ");
    place.replaceChildren(root, el("p", { class: "ex-note" }, "The water level is ",
      el("output", { class: "ex-level-number", "aria-live": "off" }, shown(level)),
      ". A value above the water is kept with the share of its bar that is dry (the numbers); all "
      + `other records get one that is drawn anew from the dry parts. ${
        lost ? `Never released: ${lost}.` : "Every value is still released."}`));
  }

  // ---- Gaussian releases -----------------------------------------------------------------------

  /** Points of the ellipse of one standard deviation. */
  function ellipse([[a, b], [, c]]) {
    const half = (a + c) / 2, apart = Math.hypot((a - c) / 2, b), angle = Math.atan2(2 * b, a - c) / 2;
    return { rx: Math.sqrt(Math.max(half + apart, 0)), ry: Math.sqrt(Math.max(half - apart, 0)), angle };
  }

  /** The ellipses of X and of the error, where X is of two variables; the variances in `numbers`. */
  function gaussian(place, numbers, picture, release) {
    const { x, w, covariance_x: whole, covariance_w: before } = picture.model;
    const parts = [], variances = [];
    if (x.length === 2) {
      const size = Math.min(Math.max(place.clientWidth, 260), 310), middle = size / 2;
      const scale = (0.42 * size) / Math.sqrt(Math.max(whole[0][0], whole[1][1]));
      const root = svg("svg", { width: size, height: size, viewBox: `0 0 ${size} ${size}`, role: "img",
        "aria-label": "ellipse of the error inside the ellipse of X" });
      root.append(svg("line", { class: "ex-axis", x1: 8, x2: size - 8, y1: middle, y2: middle }),
        svg("line", { class: "ex-axis", x1: middle, x2: middle, y1: 8, y2: size - 8 }),
        svg("text", { class: "ex-tick", x: size - 8, y: middle + 16, "text-anchor": "end" }, x[0]),
        svg("text", { class: "ex-tick", x: middle + 6, y: 18 }, x[1]));
      for (const [covariance, kind] of [[whole, "ex-whole"], [release.sigma, "ex-error"]]) {
        const { rx, ry, angle } = ellipse(covariance);
        root.append(svg("ellipse", { class: kind, rx: Math.max(rx * scale, 1), ry: Math.max(ry * scale, 1),
          transform: `translate(${middle} ${middle}) rotate(${(-angle * 180) / Math.PI})` }));
      }
      picture.model.regression.forEach((row) => {
        const size_ = Math.hypot(...row) || 1, [dx, dy] = row.map((v) => (0.46 * size * v) / size_);
        root.append(svg("line", { class: "ex-direction", x1: middle - dx, y1: middle + dy,
          x2: middle + dx, y2: middle - dy }));
      });
      parts.push(root, el("ul", { class: "ex-legend" },
        el("li", {}, el("span", { class: "ex-key ex-key-whole" }), "X, one standard deviation"),
        el("li", {}, el("span", { class: "ex-key ex-key-inner" }), "error X − X̂, one standard deviation"),
        el("li", {}, el("span", { class: "ex-key ex-key-direction" }), `what tells ${w.join(", ")}`)));
    }
    const row = (name, part, all) => {
      const bar = el("span", { class: "ex-bar" }), track = el("span", { class: "ex-track" }, bar);
      bar.style.setProperty("--share", Math.min(part / all, 1));
      return el("li", {}, el("span", { class: "ex-name" }, name), track,
        el("span", { class: "ex-number" }, `${shown(part, 3)} of ${shown(all, 3)}`));
    };
    variances.push(el("h4", {}, "Variance of the error, of all that there is"),
      el("ul", { class: "ex-wide" }, ...x.map((name, i) => row(name, release.sigma[i][i], whole[i][i]))),
      el("h4", {}, "Variance of what is confidential, for one who sees the release"),
      el("ul", { class: "ex-wide" }, ...w.map((name, i) => row(name, release.posterior[i][i], before[i][i]))));
    place.replaceChildren(...parts);
    numbers.replaceChildren(...variances);
  }

  // ---- constraints -----------------------------------------------------------------------------

  /** The slack of every constraint, against the greatest of each over the frontier. */
  function constraints(place, picture, release, x) {
    const own = labels(picture), mixed = release.share > 0 && !release.water;
    const proof = F.proof(picture, x);
    const items = picture.constraints.map((constraint) => {
      const name = constraint.name, slack = F.slackAt(picture, name, x, release);
      const rows = [];
      if (slack !== null) {
        const multiplier = (proof.constraints[name] || {}).multiplier;
        if (constraint.each === "letter") {
          slack.forEach((value, y) => rows.push([own.out[y], value / Math.max(release.marginal[y], 1e-300),
            Array.isArray(multiplier) ? multiplier[y] : null, release.marginal[y] > 1e-6]));
        } else if (constraint.each === "entry") {
          slack.forEach((row, i) => row.forEach((value, j) => {
            if (value !== null) {
              rows.push([own.x[i] === own.out[j] ? own.x[i] : `${own.x[i]} → ${own.out[j]}`, value,
                Array.isArray(multiplier) ? multiplier[i][j] : null, true]);
            }
          }));
        } else {
          rows.push(["", slack, multiplier, true]);
        }
      }
      return oneConstraint(constraint, rows, greatest(picture, constraint), mixed);
    });
    place.replaceChildren(...items);
  }

  /** The greatest slack of a constraint at solved points: what its bars are drawn against. */
  function greatest(picture, constraint) {
    const { name, each } = constraint;
    return once(picture, `slack of ${name}`, () => {
      const bounds = picture.points.map((p) => Math.abs((p.constraints[name] || {}).bound));
      const size = each === "release" ? bounds.filter(Number.isFinite) : [];
      return Math.max(1e-12, ...size, ...picture.corners.flatMap(({ x }) => {
        const release = F.releaseAt(picture, x), slack = F.slackAt(picture, name, x, release);
        const values = [slack].flat(2).map((value, y) => (each === "letter"
          ? value / Math.max(release.marginal[y], 1e-6) : value));
        return values.filter(Number.isFinite);
      }));
    });
  }

  function oneConstraint(constraint, rows, most, mixed) {
    const met = rows.filter((row) => row[3]), least = Math.min(...met.map((row) => row[1]));
    const equal = constraint.sense === "==", tight = least < 1e-4 * Math.max(most, 1e-2);
    const state = equal ? "kept exactly" : tight ? "tight" : "has slack";
    const item = el("li", { class: "ex-constraint", "data-name": constraint.name },
      el("p", {}, constraint.words, " ",
        el("span", { class: `ex-state ${equal || tight ? "ex-tight" : "ex-slack"}` }, state)));
    if (equal || !met.length) return item;
    const list = met.length <= 2 * FEW ? met : [met.reduce((a, b) => (a[1] <= b[1] ? a : b))];
    item.append(el("ul", { class: "ex-wide" }, ...list.map(([letter, slack, multiplier]) => {
      const bar = el("span", { class: "ex-bar ex-room" });
      bar.style.setProperty("--share", Math.min(Math.max(slack / most, 0), 1));
      const numbers = el("span", { class: "ex-number" }, `slack ${mixed ? "≥ " : ""}`,
        el("output", { "aria-live": "off" },
          mixed ? outwards(Math.max(slack, 0), Infinity)[0] : shown(Math.max(slack, 0), 3)));
      if (multiplier !== null && multiplier !== undefined) {
        numbers.append(el("span", { class: "ex-multiplier" }, `λ ${shown(multiplier, 3)}`));
      }
      return el("li", {}, el("span", { class: "ex-name" }, letter || "slack"),
        el("span", { class: "ex-track" }, bar), numbers);
    })));
    return item;
  }

  return {
    channel, constraints, curve, el, gaussian, legend, outwards, percent, posteriors, shown, starAt, svg, ticks, water,
  };
})();
