/* The page: which problem is shown, at which number, and what a user brings along. */
"use strict";

(() => {
  const { el, shown, outwards, percent } = cvxViews;
  const STEPS = 200;

  /** Bring a page to life: `root` holds the fragment, `problems` what data.py wrote. */
  function explorer(root, problems) {
    const find = (name) => root.querySelector(`[data-ex="${name}"]`);
    const slider = find("slider"), message = find("message");
    const state = { picture: null, x: 0, moved: () => {}, own: 0 };

    // ---- choosing ------------------------------------------------------------------------------

    function offer(name, picture, about) {
      const radio = el("input", { type: "radio", name: "cvx-problem", value: name, id: `ex-${name}` });
      radio.addEventListener("change", () => show(picture, about));
      find("choose").append(el("span", { class: "ex-choice" }, radio,
        el("label", { for: `ex-${name}` }, picture.title)));
      return radio;
    }

    function show(picture, about) {
      const { words, model } = picture;
      state.picture = picture;
      find("title").textContent = picture.title;
      find("about").textContent = about;
      find("parameter").textContent = words.parameter;
      find("value-words").textContent = words.value;
      find("price-words").textContent = words.price;
      program();
      cvxViews.legend(find("legend"), picture);
      for (const name of ["release-box", "posteriors-box"]) find(name).hidden = model.kind === "gaussian";
      find("water-box").hidden = model.kind !== "categorical";
      find("noise-box").hidden = model.kind !== "gaussian" || model.x.length !== 2;
      find("variances-box").hidden = model.kind !== "gaussian";
      draw();
      move(atStep(0.3 * STEPS));
    }

    /** The program in LaTeX; MathJax, where there is any, sets those of the page itself. */
    function program() {
      const { picture } = state, place = find("program");
      const known = problems.some((problem) => problem.picture === picture);
      place.textContent = picture.latex;
      if (!find("details").open || !known || !(window.MathJax && window.MathJax.typesetPromise)) return;
      place.textContent = `\\[${picture.latex}\\]`;
      window.MathJax.typesetPromise([place]);
    }

    function draw() {
      state.moved = cvxViews.curve(find("curve"), state.picture, move);
    }

    // ---- moving --------------------------------------------------------------------------------

    function atStep(k) {
      const [low, high] = cvxFrontier.range(state.picture);
      return k >= STEPS ? high : low + ((high - low) * k) / STEPS;
    }

    function move(x) {
      const { picture } = state, [low, high] = cvxFrontier.range(picture);
      state.x = x;
      slider.value = String(Math.round(((x - low) / (high - low || 1)) * STEPS));
      state.moved(x);
      report(x);
    }

    function nextSolved(sign) {
      const places = state.picture.corners.map((corner) => corner.x);
      const [low, high] = cvxFrontier.range(state.picture), tiny = 1e-9 * (high - low);
      const found = sign > 0 ? places.find((x) => x > state.x + tiny)
        : places.filter((x) => x < state.x - tiny).pop();
      if (found !== undefined) move(found);
    }

    function report(x) {
      const { picture } = state, { words } = picture;
      const release = cvxFrontier.releaseAt(picture, x);
      const inner = cvxFrontier.inner(picture, x), outer = cvxFrontier.outer(picture, x);
      const place = `${shown(x, 3)}${words.unit ? ` ${words.unit}` : ""}`;
      find("x").textContent = place;
      find("x").dataset.x = String(x);
      slider.setAttribute("aria-valuetext",
        `${words.parameter} ${place}: ${words.value} ${shown(inner)}`);
      find("value").textContent = shown(inner);
      const [low, high] = outwards(outer, inner);
      find("enclosure").textContent = `between ${low} and ${high}, by ${picture.points.length} solved points`;
      price(x);
      find("mixture").textContent = sentence(x, release);
      find("recomputed").replaceChildren(...recomputed(picture, release).flatMap(([name, value]) =>
        [el("dt", {}, name.replace(/([;,]) (X̂\))/, "$1\u00a0$2")), el("dd", { "data-term": name }, shown(value))]));
      const stairs = picture.kind === "monotone";
      find("proof").textContent = `λ is the multiplier at the solved point ${
        shown(cvxFrontier.proof(picture, x).x, 3)}, whose ${stairs ? "release is shown" : `line ${picture.computed ? "bounds the curve" : "proves the bound"} here`
      }; slack is that of the release shown${stairs ? "" : ", or more where it is mixed, as every rule is convex"
      }. At a solved point never both are positive. At the least number that is feasible multipliers have no upper end.`;
      cvxViews.constraints(find("constraints"), picture, release, x);
      if (picture.model.kind === "gaussian") {
        cvxViews.gaussian(find("noise"), find("variances"), picture, release);
        return;
      }
      if (picture.table) find("python").textContent = cvxTable.python(picture.table, Number(x.toPrecision(6)));
      if (release.water) cvxViews.water(find("water"), picture, release);
      cvxViews.channel(find("channel"), picture, release);
      cvxViews.posteriors(find("posteriors"), picture, release);
    }

    function price(x) {
      const { picture } = state, [steep, flat] = cvxFrontier.slopes(picture, x);
      const rising = picture.kind === "monotone" && picture.falling;
      const [low, high] = rising ? [steep, flat] : [-flat, -steep];
      const proved = picture.kind !== "monotone";
      const [least, most] = outwards(low, high);
      const solved = picture.points.find((point) => point.x === x);
      const end = proved && x >= cvxFrontier.range(picture)[1];
      find("price").textContent = !Number.isFinite(high) ? `≥ ${least}` : end ? shown(0)
        : solved && Number.isFinite(solved.price) ? shown(Math.abs(solved.price))
          : `≈ ${shown((low + high) / 2)}`;
      find("price-interval").textContent = !proved ? "by the multipliers of solved points"
        : end ? `between ${least} and ${most}, to the left; to the right nothing is left to save`
          : Number.isFinite(high) ? `between ${least} and ${most}, from neighbouring points`
          : "at the first point, less is impossible: no upper end";
      badge("price-badge", picture, proved);
      badge("value-badge", picture, true);
    }

    /** Say who answers for a number: a certificate, or this page alone. */
    function badge(name, picture, proved) {
      find(name).textContent = picture.computed ? "computed by this page" : proved ? "proved" : "not proved";
      find(name).className = proved && !picture.computed ? "ex-badge ex-proved" : "ex-badge ex-computed";
    }

    function sentence(x, release) {
      if (release.water) {
        return "The release is the closed form at this budget; the proved band comes from the "
          + `${state.picture.points.length} solved points (stars).`;
      }
      const { a, b, share } = release;
      if (!share && a.x === x && state.picture.computed) return "Solved by this page at exactly this number.";
      if (!share && a.x === x) return "Solved at exactly this number: the release is the optimal one.";
      if (!share) return `The release is the one solved at ${shown(a.x, 3)}, which is allowed here too.`;
      if (state.picture.model.kind === "gaussian") {
        return `Mixed: the noise whose covariance is ${percent(1 - share)} of that solved at `
          + `${shown(a.x, 3)} and ${percent(share)} of that at ${shown(b.x, 3)}.`;
      }
      return `Mixed: each record goes through the release solved at ${shown(a.x, 3)} with probability `
        + `${percent(1 - share)}, and through the one at ${shown(b.x, 3)} with ${percent(share)}.`;
    }

    function recomputed(picture, release) {
      const { model } = picture, told = "told of what is confidential, I(W; X̂)";
      if (model.kind === "gaussian") return [[told, release.risk]];
      const found = [["told of the value itself, I(X; X̂)", release.rate],
        ["mean error, E d(X, X̂)", release.distortion]];
      return model.kind === "categorical" ? found : [[told, release.risk], ...found];
    }

    // ---- a user's own file ---------------------------------------------------------------------

    function say(words, wrong) {
      message.textContent = words;
      message.classList.toggle("ex-wrong", wrong);
    }

    /** Draw the constraints of a file at a number, where nobody sees it: a damaged one fails here. */
    function drawn(picture, x) {
      const release = cvxFrontier.releaseAt(picture, x);
      try {
        cvxViews.constraints(document.createElement("div"), picture, release, x);
      } catch {
        throw new Error(`constraints at ${shown(x, 3)}: are not as Frontier.to_json writes them`);
      }
    }

    // ---- a user's own table ----------------------------------------------------------------------

    /** Solve the table that is typed, here and in floating point, and show its frontier. */
    function solveTable() {
      const place = find("table-message");
      const cost = root.querySelector('[name="ex-cost"]:checked').value;
      try {
        const table = { ...cvxTable.read(find("counts").value), cost };
        const picture = cvxSolver.picture(table, cvxSolver[cost](table.x.length), {
          title: "Your table", words: { parameter: "allowed mean error, E d(X, X̂)", unit: "",
            value: "information left about W, bits", price: "what one more unit of error would save, bits" },
        });
        picture.table = table;
        const typed = root.querySelector("#ex-typed");
        if (typed) typed.parentElement.remove();
        const about = `Your table of ${table.w.length} × ${table.x.length} counts, solved by this page in floating point: nothing here is proved. It stays on this machine.`;
        offer("typed", picture, about).checked = true;
        show(picture, about);
        find("certify").hidden = false;
        place.textContent = `Solved at ${picture.points.length} budgets, each within 0.000001 bits of the page’s own bound. It is shown above.`;
        place.classList.remove("ex-wrong");
        find("title").scrollIntoView();
      } catch (error) {
        place.textContent = error.message;
        place.classList.add("ex-wrong");
      }
    }

    async function take(file) {
      let picture;
      try {
        picture = cvxFrontier.check(JSON.parse(await file.text()));
        picture.corners.forEach(({ x }) => drawn(picture, x));
      } catch (error) {
        const why = error instanceof SyntaxError ? `no JSON (${error.message})` : error.message;
        say(`${file.name} was not read: ${why}. Nothing has changed.`, true);
        return;
      }
      state.own += 1;
      const radio = offer(`own-${state.own}`, picture, `From your file ${file.name}. It stays on this machine.`);
      radio.checked = true;
      show(picture, `From your file ${file.name}. It stays on this machine.`);
      say(`${file.name} is shown above.`, false);
    }

    const drop = find("drop"), input = find("file");
    input.addEventListener("change", () => {
      if (input.files.length) take(input.files[0]);
      input.value = "";
    });
    for (const kind of ["dragenter", "dragover"]) {
      drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("ex-over"); });
    }
    for (const kind of ["dragleave", "drop"]) {
      drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.remove("ex-over"); });
    }
    drop.addEventListener("drop", (event) => {
      if (event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
    });

    // ---- at the start --------------------------------------------------------------------------

    slider.max = String(STEPS);
    slider.addEventListener("input", () => move(atStep(Number(slider.value))));
    find("details").addEventListener("toggle", program);
    find("solve").addEventListener("click", solveTable);
    find("before").addEventListener("click", () => nextSolved(-1));
    find("after").addEventListener("click", () => nextSolved(1));
    let width = root.clientWidth;
    new ResizeObserver(() => {
      if (!state.picture || root.clientWidth === width) return;
      width = root.clientWidth;
      draw();
      move(state.x);
    }).observe(root);
    const radios = problems.map(({ name, picture, about }) => offer(name, picture, about));
    radios[0].checked = true;
    show(problems[0].picture, problems[0].about);
    root.classList.add("ex-ready");
  }

  const start = () => document.querySelectorAll(".ex-frontier").forEach((root) =>
    explorer(root, window.cvxprivacyData));
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
