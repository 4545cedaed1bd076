/* min I(W; X̂) subject to E d(X, X̂) ≤ D, for small tables, in floating point: what multipliers bound,
   the parts of the gap, and a barrier method that stops when its own bound says so.  No drawing.
   Unknowns are the joint masses Q(x, x̂) = p(x) p(x̂|x).  In bits, unless it says nats. */
"use strict";

const cvxSolver = (() => {
  const { sum } = cvxFrontier;
  const GAP = 2e-7; // bits: where the barrier method stops
  const ACCEPTED = 1e-6; // bits: a greater gap is an error
  const POINTS = 24;

  /** The laws of a table of counts, rows w and columns x, with a distortion d(x, x̂). */
  function model(counts, d) {
    const total = sum(counts.flat());
    const joint = counts.map((row) => row.map((count) => count / total));
    const px = joint[0].map((_, x) => sum(joint.map((row) => row[x])));
    return { joint, d, px, pw: joint.map(sum), given: px.map((p, x) => joint.map((row) => row[x] / p)) };
  }

  const hamming = (n) => square(n, (i, j) => Number(i !== j));
  const distance = (n) => square(n, (i, j) => Math.abs(i - j));
  const square = (n, entry) => Array.from({ length: n }, (_, i) => Array.from({ length: n }, (__, j) => entry(i, j)));

  // ---- a release, and what multipliers say of it -------------------------------------------------

  /** J(w, x̂), its column sums q, the posteriors r(w|x̂), the information and the mean distortion. */
  function told({ given, pw, d }, Q) {
    const J = pw.map((_, w) => Q[0].map((__, y) => sum(Q.map((row, x) => given[x][w] * row[y]))));
    const q = Q[0].map((_, y) => sum(J.map((row) => row[y])));
    const r = J.map((row, w) => row.map((mass, y) => (q[y] > 0 ? mass / q[y] : pw[w])));
    const risk = sum(J.map((row, w) => sum(row.map((mass, y) =>
      (mass > 0 ? mass * Math.log2(mass / (pw[w] * q[y])) : 0)))));
    return { J, q, r, risk, cost: sum(Q.map((row, x) => sum(row.map((mass, y) => mass * d[x][y])))) };
  }

  /** G(x, x̂) = Σ p(w|x) log r(w|x̂)/p(w) + λ d(x, x̂). */
  function costs({ given, pw, d }, r, lambda) {
    return d.map((row, x) => row.map((cost, y) => lambda * cost
      + sum(pw.map((p, w) => (given[x][w] > 0 ? given[x][w] * Math.log2(r[w][y] / p) : 0)))));
  }

  /** Σ p(x) min G(x, x̂) − λ D: no release that keeps the budget D leaves less, whatever r and λ ≥ 0. */
  function bound(law, r, lambda, budget) {
    const G = costs(law, r, lambda);
    return sum(law.px.map((p, x) => p * Math.min(...G[x]))) - lambda * budget;
  }

  /** The gap between a release and multipliers: three parts, which sum to I(W; X̂) − bound. */
  function parts(law, Q, r, lambda, budget) {
    const { J, q, cost } = told(law, Q), G = costs(law, r, lambda);
    return {
      stationarity: sum(J.map((row, w) => sum(row.map((mass, y) =>
        (mass > 0 ? mass * Math.log2(mass / q[y] / r[w][y]) : 0))))),
      masses: sum(Q.map((row, x) => sum(row.map((mass, y) => mass * (G[x][y] - Math.min(...G[x])))))),
      budget: lambda * (budget - cost),
    };
  }

  // ---- solving -------------------------------------------------------------------------------------

  /** Solve A z = b by elimination with row pivots; A and b are overwritten. */
  function linear(A, b) {
    const n = b.length;
    for (let k = 0; k < n; k += 1) {
      let pivot = k;
      for (let i = k + 1; i < n; i += 1) if (Math.abs(A[i][k]) > Math.abs(A[pivot][k])) pivot = i;
      [A[k], A[pivot]] = [A[pivot], A[k]];
      [b[k], b[pivot]] = [b[pivot], b[k]];
      for (let i = k + 1; i < n; i += 1) {
        const factor = A[i][k] / A[k][k];
        if (!factor) continue;
        for (let j = k; j < n; j += 1) A[i][j] -= factor * A[k][j];
        b[i] -= factor * b[k];
      }
    }
    for (let i = n - 1; i >= 0; i -= 1) {
      for (let j = i + 1; j < n; j += 1) b[i] -= A[i][j] * b[j];
      b[i] /= A[i][i];
    }
    return b;
  }

  /** Newton's step, relative to Q, to the least of t I − Σ log Q (nats) with rows p(x) and E d = D. */
  function step(law, Q, t, budget) {
    const { given, pw, px, d } = law, { J, q, cost } = told(law, Q);
    const n = px.length, m = Q[0].length, size = n * m, last = size + n;
    const A = Array.from({ length: last + 1 }, () => new Float64Array(last + 1));
    const b = new Float64Array(last + 1);
    for (let x = 0; x < n; x += 1) {
      for (let y = 0; y < m; y += 1) {
        const i = x * m + y;
        const slope = sum(pw.map((p, w) => (given[x][w] > 0 ? given[x][w] * Math.log(J[w][y] / (p * q[y])) : 0)));
        b[i] = 1 - t * Q[x][y] * slope;
        for (let u = 0; u < n; u += 1) { // I is curved within each x̂ only
          const curved = sum(pw.map((_, w) => (given[x][w] * given[u][w]) / J[w][y])) - 1 / q[y];
          A[i][u * m + y] = t * Q[x][y] * Q[u][y] * curved;
        }
        A[i][i] += 1;
        A[i][size + x] = A[size + x][i] = Q[x][y];
        A[i][last] = A[last][i] = Q[x][y] * d[x][y];
      }
      b[size + x] = px[x] - sum(Q[x]);
    }
    b[last] = budget - cost;
    const gradient = b.slice(0, size), z = linear(A, b);
    const decrement = Math.sqrt(Math.max(0, sum([...gradient].map((g, i) => g * z[i]))));
    return { move: (x, y) => z[x * m + y], decrement, lambda: Math.max(z[last] / (t * Math.LN2), 0) };
  }

  /** A release whose rows sum to p(x) and which keeps the budget: a little more of the truth. */
  function repaired(law, Q, budget) {
    const rows = Q.map((row, x) => { const total = sum(row); return row.map((mass) => (mass / total) * law.px[x]); });
    const share = Math.min(1, budget / told(law, rows).cost);
    return rows.map((row, x) => row.map((mass, y) => share * mass + (x === y ? (1 - share) * law.px[x] : 0)));
  }

  /** The least information at a budget between 0 and the greatest, where it is spent: all of a solution. */
  function solve(law, budget) {
    const n = law.px.length, even = sum(law.d.map((row, x) => (law.px[x] * sum(row)) / n));
    const spread = budget / even; // a start that spends the budget
    let Q = law.px.map((p, x) => law.px.map((_, y) => p * ((1 - spread) * Number(x === y) + spread / n)));
    let best = null;
    for (let t = 10; t < 1e13; t *= 8) {
      let multiplier = 0;
      for (let round = 0; round < 80; round += 1) {
        const { move, decrement, lambda } = step(law, Q, t, budget);
        const size = decrement > 0.25 ? 1 / (1 + decrement) : 1; // damped: it stays positive
        Q = Q.map((row, x) => row.map((mass, y) => mass * (1 + size * move(x, y))));
        multiplier = lambda;
        if (decrement < 1e-3) break;
      }
      Q = repaired(law, Q, budget);
      const { r, risk } = told(law, Q), lower = bound(law, r, multiplier, budget);
      if (!best || risk - lower < best.upper - best.lower) best = { Q, r, lambda: multiplier, lower, upper: risk, budget };
      if (best.upper - best.lower <= GAP) return best;
    }
    return best;
  }

  /** The least mean distortion of a constant: from there on nothing is told. */
  const greatest = ({ px, d }) => Math.min(...px.map((_, y) => sum(px.map((p, x) => p * d[x][y]))));

  /** The releases at both ends: the truth, and the best constant. */
  function ends(law) {
    const { px, pw, d } = law, most = greatest(law);
    const truth = px.map((p, x) => px.map((_, y) => (x === y ? p : 0))), whole = told(law, truth);
    const r = whole.r.map((row, w) => row.map((p) => p + 1e-9 * (pw[w] - p))); // log 0 has no slope
    const G = costs(law, r, 0);
    const lambda = Math.max(0, ...d.flatMap((row, x) => row.map((cost, y) => (cost > 0 ? (G[x][x] - G[x][y]) / cost : 0))));
    const constant = px.findIndex((_, y) => sum(px.map((p, x) => p * d[x][y])) <= most * (1 + 1e-12));
    const Q = px.map((p) => px.map((_, y) => (y === constant ? p : 0)));
    return [
      { Q: truth, r, lambda, lower: bound(law, r, lambda, 0), upper: whole.risk, budget: 0 },
      { Q, r: told(law, Q).r, lambda: 0, lower: 0, upper: 0, budget: most },
    ];
  }

  /** The frontier of a table, as a picture that Frontier.to_json might write, but computed. */
  function picture(table, d, words) {
    const law = model(table.counts, d), [first, last] = ends(law);
    const solved = [first];
    for (let k = 1; k < POINTS; k += 1) solved.push(solve(law, last.budget * (k / POINTS) ** 1.5));
    solved.push(last);
    for (const { lower, upper, budget } of solved) {
      if (!(upper - lower <= ACCEPTED)) {
        throw new Error(`The solver of this page stopped ${upper - lower} bits from its own bound, at budget ${
          budget}. Give this table to the package: cvxprivacy.frontier.`);
      }
    }
    const points = solved.map(({ Q, lambda, lower, upper, budget }) => ({
      x: budget, bound: budget, lower, upper, slope: lambda, price: -lambda,
      channel: Q.map((row) => row.map((mass) => mass / sum(row))),
      constraints: { budget: { value: told(law, Q).cost, bound: budget, slack: budget - told(law, Q).cost, multiplier: lambda } },
    }));
    return {
      computed: true, title: words.title, words: words.words, kind: "convex", units: "bits", parameter: "budget",
      latex: "\\min_{p(\\hat x \\mid x)} \\quad I(W; \\hat X) \\quad \\text{s.t.} \\quad \\mathrm{E}\\, d(X, \\hat X) \\le D",
      model: { kind: "channel", names: { w: "W", x: "X" }, w: table.w, x: table.x, outputs: table.x, joint: law.joint, distortion: d },
      constraints: [{ name: "budget", words: "E d(X, X̂) ≤ D", sense: "<=", each: "release" }],
      points, corners: points.map(({ x }, point) => ({ x, bound: x, point })), references: [],
    };
  }

  return { bound, costs, distance, hamming, model, parts, picture, solve, told };
})();
