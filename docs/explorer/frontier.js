/* Frontiers as Frontier.to_json writes them: reading one, its two curves, and the releases between
   solved points.  No drawing here.  A classic script, as pages opened from a file load no modules. */
"use strict";

/** @typedef {Object} Picture  what frontiers/schema.json of the package says */

const cvxFrontier = (() => {
  const SCHEMA = "cvxprivacy frontier picture 1";

  // ---- reading -----------------------------------------------------------------------------

  /** Throw an Error that names what is wrong with a document, if anything is. */
  function check(document_) {
    const fail = (place, what) => { throw new Error(`${place}: ${what}`); };
    const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
    const need = (holder, place, key, test, what) => {
      if (!isObject(holder)) fail(place || "the file", "no JSON object");
      if (!(key in holder)) fail(place ? `${place}.${key}` : key, "is missing");
      if (!test(holder[key])) fail(place ? `${place}.${key}` : key, `is not ${what}`);
    };
    const text = (value) => typeof value === "string";
    const real = (value) => typeof value === "number" && Number.isFinite(value);
    const realOrNull = (value) => value === null || real(value);
    const texts = (value) => Array.isArray(value) && value.length > 0 && value.every(text);
    const vector = (size) => (value) =>
      Array.isArray(value) && value.length === size && value.every(real);
    const matrix = (rows, columns) => (value) =>
      Array.isArray(value) && value.length === rows && value.every(vector(columns));
    const stochastic = (rows, columns) => (value) => matrix(rows, columns)(value) &&
      value.every((row) => row.every((p) => p >= 0) && Math.abs(sum(row) - 1) < 1e-6);

    if (!isObject(document_)) fail("the file", "holds no JSON object");
    need(document_, "", "schema", (s) => s === SCHEMA, `"${SCHEMA}" (write it with frontier.to_json)`);
    for (const key of ["title", "latex", "parameter"]) need(document_, "", key, text, "a text");
    need(document_, "", "units", (u) => u === "bits" || u === "nats", '"bits" or "nats"');
    const kinds = ["convex", "convex in exp", "monotone"];
    need(document_, "", "kind", (k) => kinds.includes(k), `one of ${kinds.join(", ")}`);
    need(document_, "", "words", isObject, "an object");
    for (const key of ["parameter", "unit", "value", "price"]) {
      need(document_.words, "words", key, text, "a text");
    }
    need(document_, "", "model", isObject, "an object");
    const model = document_.model;
    let release, rows, columns;
    if (model.kind === "channel") {
      need(model, "model", "names", (n) => isObject(n) && text(n.w) && text(n.x), "names of w and x");
      for (const key of ["w", "x", "outputs"]) need(model, "model", key, texts, "a list of labels");
      [rows, columns, release] = [model.x.length, model.outputs.length, "channel"];
      const law = matrix(model.w.length, rows);
      need(model, "model", "joint",
        (m) => law(m) && m.flat().every((p) => p >= 0) && Math.abs(sum(m.flat()) - 1) < 1e-6,
        `a law of ${model.w.length} × ${rows} probabilities`);
      need(model, "model", "distortion", matrix(rows, columns), `a matrix ${rows} × ${columns}`);
    } else if (model.kind === "gaussian") {
      for (const key of ["w", "x"]) need(model, "model", key, texts, "a list of names");
      rows = columns = model.x.length;
      release = "error_covariance";
      const own = model.w.length;
      need(model, "model", "covariance_w", matrix(own, own), `a matrix ${own} × ${own}`);
      need(model, "model", "covariance_x", matrix(rows, rows), `a matrix ${rows} × ${rows}`);
      need(model, "model", "regression", matrix(own, rows), `a matrix ${own} × ${rows}`);
    } else if (model.kind === "categorical") {
      need(model, "model", "names", (n) => isObject(n) && text(n.w) && text(n.x), "names of w and x");
      need(model, "model", "x", texts, "a list of labels");
      need(model, "model", "pmf", (p) => vector(model.x.length)(p) && p.every((q) => q >= 0) &&
        Math.abs(sum(p) - 1) < 1e-6, `${model.x.length} probabilities`);
    } else {
      fail("model.kind", 'is not "channel", "gaussian" or "categorical"');
    }
    need(document_, "", "constraints", Array.isArray, "a list");
    document_.constraints.forEach((c, i) => {
      for (const key of ["name", "words", "each"]) need(c, `constraints[${i}]`, key, text, "a text");
    });
    need(document_, "", "points", (p) => Array.isArray(p) && p.length > 0, "a list of points");
    document_.points.forEach((point, i) => {
      const place = `points[${i}]`;
      for (const key of ["x", "bound", "slope"]) need(point, place, key, real, "a number");
      for (const key of ["lower", "upper", "price"]) {
        need(point, place, key, realOrNull, "a number or null");
      }
      need(point, place, "constraints", isObject, "an object");
      if (release && point.upper !== null) {
        const test = release === "channel" ? stochastic(rows, columns) : matrix(rows, columns);
        const what = release === "channel" ? `${rows} rows of ${columns} probabilities`
          : `a matrix ${rows} × ${columns}`;
        need(point, place, release, test, what);
      }
    });
    need(document_, "", "corners", (c) => Array.isArray(c) && c.length > 0,
      "a list of corners: nothing is feasible");
    document_.corners.forEach((corner, i) => {
      for (const key of ["x", "bound"]) need(corner, `corners[${i}]`, key, real, "a number");
      need(corner, `corners[${i}]`, "point",
        (p) => Number.isInteger(p) && document_.points[p] && document_.points[p].upper !== null,
        "the number of a solved point");
    });
    need(document_, "", "references", Array.isArray, "a list");
    document_.references.forEach((reference, i) => {
      need(reference, `references[${i}]`, "label", text, "a text");
      const size = Array.isArray(reference.x) ? reference.x.length : 0;
      for (const key of ["x", "y"]) need(reference, `references[${i}]`, key, vector(size), "numbers");
    });
    return document_;
  }

  // ---- the two curves, as frontiers/curve.py of the package has them ---------------------------

  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const perNat = (picture) => (picture.units === "bits" ? 1 / Math.LN2 : 1);

  /** The right-hand side that a number stands for. */
  const boundOf = (picture, x) =>
    picture.kind === "convex in exp" ? Math.exp(x / perNat(picture)) : x;

  const range = (picture) => [picture.corners[0].x, picture.corners[picture.corners.length - 1].x];

  /** Points a, b and the share of b whose mixture achieves the inner curve at x. */
  function mixture(picture, x) {
    const { corners, points } = picture;
    if (picture.kind === "monotone") {
      const corner = picture.falling ? corners.find((c) => c.x >= x)
        : corners.filter((c) => c.x <= x).pop();
      return { a: points[corner.point], b: points[corner.point], share: 0 };
    }
    let i = corners.findIndex((c) => c.x > x);
    i = i < 0 ? corners.length : i;
    const left = corners[i - 1], right = corners[Math.min(i, corners.length - 1)];
    const [a, b] = [points[left.point], points[right.point]];
    if (left.x === x || right.bound <= left.bound) return { a, b: a, share: 0 };
    const share = (boundOf(picture, x) - left.bound) / (right.bound - left.bound);
    return { a, b, share: Math.min(Math.max(share, 0), 1) };
  }

  /** What a release is known to achieve. */
  function inner(picture, x) {
    const { a, b, share } = mixture(picture, x);
    return (1 - share) * a.upper + share * b.upper;
  }

  const lowerEnd = (point) =>
    point.lower !== null ? point.lower : point.status === "infeasible" ? Infinity : -Infinity;

  const line = (picture, point, x) => point.lower - point.slope * (boundOf(picture, x) - point.bound);

  /** The solved point whose line is highest at x. */
  function strongest(picture, x) {
    const proved = picture.points.filter((p) => p.lower !== null);
    return proved.reduce((best, p) => (line(picture, p, x) > line(picture, best, x) ? p : best),
      proved[0]);
  }

  /** The solved point whose multipliers are shown at x: of a staircase that of the release. */
  const proof = (picture, x) =>
    (picture.kind === "monotone" ? mixture(picture, x).a : strongest(picture, x));

  /** What is proved that no release undercuts: information and distortions are never negative. */
  const outer = (picture, x) => Math.max(0, proved(picture, x));

  function proved(picture, x) {
    if (picture.kind === "monotone") {
      const looser = picture.points.filter((p) => (picture.falling ? p.x <= x : p.x >= x));
      return Math.max(-Infinity, ...looser.map(lowerEnd));
    }
    if (picture.points.some((p) => p.status === "infeasible" && x <= p.x)) return Infinity;
    const best = strongest(picture, x);
    return best ? line(picture, best, x) : -Infinity;
  }

  /** Enclose d optimum / dx: from convexity; of a staircase the multipliers' own. */
  function slopes(picture, x) {
    if (picture.kind === "monotone") {
      const known = picture.points.filter((p) => p.price !== null);
      const own = interpolated(known.map((p) => p.x), known.map((p) => p.price), x);
      return [own, own];
    }
    const bound = boundOf(picture, x), low = outer(picture, x);
    let [bottom, top] = [-Infinity, 0];
    for (const corner of picture.corners) {
      const rise = low - picture.points[corner.point].upper;
      if (corner.x < x && corner.bound < bound) {
        bottom = Math.max(bottom, rise / (bound - corner.bound));
      } else if (corner.x > x && corner.bound > bound) {
        top = Math.min(top, -rise / (corner.bound - bound));
      }
    }
    const scale = picture.kind === "convex in exp" ? bound / perNat(picture) : 1;
    return [bottom * scale, Math.min(top * scale, 0)];
  }

  function interpolated(xs, ys, x) {
    const i = xs.findIndex((place) => place >= x);
    if (i < 0) return ys[ys.length - 1];
    if (i === 0 || xs[i] === x) return ys[i];
    const share = (x - xs[i - 1]) / (xs[i] - xs[i - 1]);
    return (1 - share) * ys[i - 1] + share * ys[i];
  }

  // ---- releases --------------------------------------------------------------------------------

  const mixed = (a, b, share) =>
    a.map((row, i) => row.map((value, j) => (1 - share) * value + share * b[i][j]));
  const product = (a, b) => a.map((row) => b[0].map((_, j) => sum(row.map((v, k) => v * b[k][j]))));
  const transposed = (a) => a[0].map((_, j) => a.map((row) => row[j]));
  const plus = (a, b, sign = 1) => a.map((row, i) => row.map((value, j) => value + sign * b[i][j]));

  /** λ with Σ min(p, λ) − λ = D, of masses that sum to 1. */
  function waterLevel(pmf, budget) {
    const p = [...pmf].sort((a, b) => a - b), n = p.length;
    if (budget >= 1 - p[n - 1]) return p[n - 1];
    let tail = 0;
    for (let under = 0; under < n - 1; under += 1) {
      const level = (budget - tail) / (n - under - 1);
      if (level < p[under]) return level;
      tail += p[under];
    }
    return p[n - 1];
  }

  /** The channel that keeps x with probability (1 − λ/p(x))⁺, else draws from p(x̂) ∝ (p − λ)⁺. */
  function waterChannel(pmf, level) {
    const above = pmf.map((p) => Math.max(p - level, 0)), total = sum(above);
    const most = pmf.indexOf(Math.max(...pmf));
    const drawn = above.map((p, i) => (total > 1e-15 ? p / total : Number(i === most)));
    const kept = pmf.map((p) => (p > 0 ? Math.max(1 - level / p, 0) : 0));
    const channel = kept.map((keep, i) =>
      drawn.map((q, j) => (1 - keep) * q + (i === j ? keep : 0)));
    return { channel, drawn, kept };
  }

  /** I of a joint law, in nats. */
  function information(joint) {
    const rows = joint.map(sum), columns = transposed(joint).map(sum);
    return Math.max(0, sum(joint.map((row, i) => sum(row.map((p, j) =>
      (p > 0 ? p * Math.log(p / (rows[i] * columns[j])) : 0))))));
  }

  /** log det of a positive definite matrix. */
  function logDet(matrix) {
    const l = matrix.map((row) => row.map(() => 0));
    let found = 0;
    for (let i = 0; i < l.length; i += 1) {
      for (let j = 0; j <= i; j += 1) {
        const rest = matrix[i][j] - sum(l[i].slice(0, j).map((v, k) => v * l[j][k]));
        if (i === j) { l[i][i] = Math.sqrt(rest); found += Math.log(rest); } else l[i][j] = rest / l[j][j];
      }
    }
    return found;
  }

  /** Everything that the page computes of the release at x, in floats. */
  function releaseAt(picture, x) {
    const { model } = picture, unit = perNat(picture);
    const known = mixture(picture, x);
    if (model.kind === "gaussian") {
      const sigma = mixed(known.a.error_covariance, known.b.error_covariance, known.share);
      const b = model.regression;
      const told = product(product(b, plus(model.covariance_x, sigma, -1)), transposed(b));
      const posterior = plus(model.covariance_w, told, -1);
      const risk = (logDet(model.covariance_w) - logDet(posterior)) * unit / 2;
      return { ...known, sigma, posterior, risk };
    }
    let joint, channel, water = null;
    if (model.kind === "categorical") {
      const level = waterLevel(model.pmf, x);
      water = { level, ...waterChannel(model.pmf, level) };
      joint = model.pmf.map((p, i) => model.pmf.map((_, j) => (i === j ? p : 0)));
      channel = water.channel;
    } else {
      joint = model.joint;
      channel = mixed(known.a.channel, known.b.channel, known.share);
    }
    const told = product(joint, channel);
    const marginal = transposed(told).map(sum);
    const posteriors = transposed(told).map((column, y) =>
      column.map((p) => (marginal[y] > 1e-12 ? p / marginal[y] : NaN)));
    const mass = transposed(joint).map(sum);
    const moved = channel.map((row, i) => row.map((p) => p * mass[i]));
    const cost = model.distortion || mass.map((_, i) => mass.map((__, j) => Number(i !== j)));
    const distortion = sum(moved.map((row, i) => sum(row.map((p, j) => p * cost[i][j]))));
    return {
      ...known, channel, water, marginal, posteriors, prior: joint.map(sum), distortion,
      risk: information(told) * unit, rate: information(moved) * unit,
    };
  }

  /** The slack b − f of a constraint at x; of a mixture at least this, as f is convex. */
  function slackAt(picture, name, x, release) {
    if (release.water) return Math.max(x - release.distortion, 0);
    const [a, b] = [release.a, release.b].map((p) => (p.constraints[name] || {}).slack);
    const mix = (left, right) => (Array.isArray(left) ? left.map((v, i) => mix(v, right[i]))
      : left === null || right === null ? null : (1 - release.share) * left + release.share * right);
    if (a === undefined || b === undefined) return null;
    // the bound that moves is the one typed
    return name === picture.parameter && picture.kind === "convex" && !Array.isArray(a)
      ? x - mix(release.a.constraints[name].value, release.b.constraints[name].value) : mix(a, b);
  }

  return {
    boundOf, check, inner, line, mixture, outer, proof, range, releaseAt, slackAt, slopes, strongest, sum,
  };
})();
