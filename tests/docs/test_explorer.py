"""The Explorer in a browser: what it shows is what the package says, to the digits shown."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.typing import Frontier
from tests.repository import ROOT, script

DOCS = ROOT / "docs" / "explorer"

pytestmark = pytest.mark.long


data = script(DOCS / "data.py")


@pytest.fixture(scope="module")
def page_path(tmp_path_factory) -> Path:
    """A page of the fragments alone, as Sphinx would put them."""
    folder = tmp_path_factory.mktemp("explorer")
    data.write(folder / "_static" / "explorer")
    fragment = "".join(
        (DOCS / name).read_text(encoding="utf-8") for name in ("fragment.html", "square.html")
    )
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>E</title>'
    )
    body = f'<body style="margin: 8px; font-family: sans-serif">{fragment}</body>'
    path = folder / "explorer.html"
    path.write_text(f'<!doctype html><html lang="en">{head}{body}</html>', encoding="utf-8")
    return path


@pytest.fixture
def page(browser, page_path, request):
    """The page in a window, which must stay quiet and ask nothing of the network."""
    width, height = getattr(request, "param", (1000, 800))
    opened = browser.new_page()
    opened.set_viewport_size({"width": width, "height": height})
    messages: list[str] = []
    opened.on("console", lambda message: messages.append(message.text))
    opened.on("pageerror", lambda error: messages.append(str(error)))
    opened.on("request", lambda asked: messages.append(asked.url) if remote(asked.url) else None)
    opened.goto(page_path.as_uri())
    yield opened
    opened.close()
    assert messages == []


def remote(url: str) -> bool:
    return not url.startswith("file://")


def choose(page, name: str) -> None:
    page.locator(f"#ex-{name}").check(force=True)


def move(page, step: int) -> float:
    """Move the slider as a hand does, and return the number it stands for."""
    script = "(slider, k) => { slider.value = k; slider.dispatchEvent(new Event('input')); }"
    page.locator("#ex-slider").evaluate(script, step)
    return number_at(page)


def number_at(page) -> float:
    return float(part(page, "x").get_attribute("data-x"))


def part(page, name: str):
    return page.locator(f'[data-ex="{name}"]')


def floats(text: str) -> list[float]:
    return [float(x) for x in re.findall(r"-?\d+(?:\.\d+)?", text.replace("−", "-"))]


def agrees(text: str, value: float) -> bool:
    """Tell whether a text shows a number, to the digits that it shows."""
    (outcome,) = re.findall(r"-?\d+(?:\.\d+)?", text.replace("−", "-"))
    digits = len(outcome.partition(".")[2])
    return abs(float(outcome) - value) <= 0.5 * 10.0**-digits + 1e-6


def check_curves(page, curve: Frontier, x: float) -> None:
    """Compare the headline numbers; proved ends are rounded outwards."""
    inner, outer, price = curve.inner(x), curve.outer(x), curve.price(x)
    assert agrees(part(page, "value").text_content(), inner)
    low, high, _count = floats(part(page, "enclosure").text_content())
    assert outer - 1.1e-4 <= low <= max(outer, 0.0)
    assert inner <= high <= inner + 1.1e-4
    if curve.kind == "monotone":
        assert agrees(part(page, "price").text_content(), abs(float(price)))
        assert part(page, "price-badge").text_content() == "not proved"
    elif math.isfinite(price.lower):
        low, high = floats(part(page, "price-interval").text_content())
        assert -price.upper - 1.1e-3 <= low <= -price.upper + 1e-6
        assert -price.lower - 1e-6 <= high <= -price.lower + 1.1e-3


def check_channel(page, source: cpv.DiscreteSource, release: np.ndarray, d: np.ndarray) -> None:
    """Compare the channel and what the page makes of it."""
    cells = part(page, "channel").locator("td").all_text_contents()
    assert len(cells) == release.size
    assert all(map(agrees, cells, release.ravel()))
    joint = source.pmf @ release
    released = [y for y, q in enumerate(joint.sum(axis=0)) if q > 1e-6]
    assert page.locator(".ex-card").count() == len(released)
    for y, card in zip(released, page.locator(".ex-card").all(), strict=True):
        shown = card.locator("li .ex-number").all_text_contents()
        assert len(shown) == len(joint)
        assert all(map(agrees, shown, joint[:, y] / joint[:, y].sum()))
    cost = (source.p_x[:, None] * release * d).sum()
    summary = terms(page)
    assert agrees(summary["I(W; X̂)"], cpv.model.information.mutual_information(joint))
    assert agrees(summary["E d(X, X̂)"], cost)


def terms(page) -> dict[str, str]:
    """What the page computes of a release, by its symbol."""
    entries = part(page, "recomputed").locator("dd").all()
    symbol = re.compile(r"(I|E d)\(.*\)$")
    return {symbol.search(e.get_attribute("data-term"))[0]: e.text_content() for e in entries}


@pytest.mark.parametrize("step", [0, 70, 163])
@pytest.mark.parametrize("name", [n for n in data.PROBLEMS if n not in ("trades", "health")])
def test_discrete_problems_are_shown_as_they_are(page, curves, name, step):
    curve, problem = curves(name), data.PROBLEMS[name].problem()
    choose(page, name)
    x = move(page, step)
    check_curves(page, curve, x)
    solution = curve.solution_at(x)
    check_channel(page, problem.source, solution.channel.matrix, problem.alphabet.d.matrix)


@pytest.fixture(scope="module")
def curves():
    """Frontiers of the page, solved once."""
    expected: dict[str, Frontier] = {}

    def of(name: str) -> Frontier:
        if name not in expected:
            expected[name] = data.PROBLEMS[name].frontier()
        return expected[name]

    return of


def test_a_closed_form_runs_inside_the_band(page, curves):
    choose(page, "answer")
    assert "h(p) − h(D)" in part(page, "legend").text_content()
    for step in (10, 90, 190):
        x = move(page, step)
        low, high, _count = floats(part(page, "enclosure").text_content())
        assert low <= data.entropy(0.3) - data.entropy(x) <= high


@pytest.mark.parametrize("step", [0, 70, 163])
def test_the_water_level_is_the_closed_form(page, step):
    problem = data.PROBLEMS["trades"].problem()
    choose(page, "trades")
    x = move(page, step)
    solution = problem.at(budget=x).solve()
    release = solution.release
    assert agrees(page.locator(".ex-level-number").text_content(), float(release.level))
    low, high, _count = floats(part(page, "enclosure").text_content())
    assert low <= solution.value <= high
    cells = part(page, "channel").locator("td").all_text_contents()
    assert all(map(agrees, cells, release.to_channel().matrix.ravel()))
    assert agrees(terms(page)["I(X; X̂)"], solution.value)
    for letter in set(problem.x) - set(release.kept):
        assert letter in part(page, "posteriors").text_content().partition("Never released")[2]


@pytest.mark.parametrize("step", [20, 70, 163])
def test_gaussian_errors_are_inside_the_ellipse(page, curves, step):
    curve = curves("health")
    choose(page, "health")
    x = move(page, step)
    check_curves(page, curve, x)
    solution = curve.solution_at(x)
    shown = [
        floats(t)[0] for t in part(page, "variances").locator(".ex-number").all_text_contents()
    ]
    sigma, source = solution.error_covariance, curve._problem.at(x).source
    across = np.linalg.solve(source.block(source.x, source.x), source.block(source.x, source.w))
    left = (
        source.block(source.w, source.w)
        - across.T @ (source.block(source.x, source.x) - sigma) @ across
    )
    assert shown == pytest.approx([*np.diag(sigma), *np.diag(left)], abs=6e-4)
    assert agrees(terms(page)["I(W; X̂)"], float(solution.risk))
    ellipses = {k: page.locator(f".ex-{k}") for k in ("whole", "error")}
    radii = {k: float(e.get_attribute("rx")) * float(e.get_attribute("ry"))
             for k, e in ellipses.items()}  # fmt: skip
    ratio = math.sqrt(np.linalg.det(sigma) / np.linalg.det(source.block(source.x, source.x)))
    assert radii["error"] / radii["whole"] == pytest.approx(ratio, abs=4e-3)  # a pixel at least


def slacks(page, name: str) -> list[float]:
    item = page.locator(f'.ex-constraint[data-name="{name}"]')
    return [floats(text)[0] for text in item.locator("output").all_text_contents()]


def test_the_slack_of_criteria_is_what_is_left(page, curves):
    """Exactly at solved points; of a mixture no more than there is."""
    curve = curves("criteria")
    choose(page, "criteria")
    move(page, 0)
    for exact in (True, False, True):
        if exact:
            part(page, "after").click()
        else:
            move(page, 100)
        x = number_at(page)
        assert (x in [point.x for point in curve.points]) == exact
        channel = curve.solution_at(x).channel.matrix
        source = data.PROBLEMS["criteria"].problem().source
        joint = source.pmf @ channel
        q = joint.sum(axis=0)
        far = (joint / q * np.log2(joint / q / source.p_w[:, None])).sum(axis=0)
        values = np.array(slacks(page, "t_closeness"))
        true = np.maximum(0.2 - far, 0.0)
        assert (values <= true + (6e-4 if exact else 1e-9)).all()
        assert not exact or values == pytest.approx(true, abs=6e-4)
        keep = slacks(page, "keep_probability")
        assert keep == pytest.approx(np.maximum(np.diag(channel) - 0.6, 0.0), abs=6e-4)
    assert "six in ten" in part(page, "about").text_content()


def test_arrow_keys_move_along_the_frontier(page):
    slider = page.get_by_role("slider", name="allowed error in age")
    before = number_at(page)
    slider.focus()
    page.keyboard.press("ArrowRight")
    after = number_at(page)
    page.keyboard.press("ArrowLeft")
    assert after > before == number_at(page)
    page.keyboard.press("End")
    assert agrees(part(page, "value").text_content(), 0.0)
    assert "0.0000" in slider.get_attribute("aria-valuetext")
    page.keyboard.press("Home")
    assert number_at(page) == 0.0
    radio = page.locator("#ex-illness")
    radio.focus()
    page.keyboard.press("ArrowRight")
    assert part(page, "title").text_content() == data.PROBLEMS["criteria"].title


SOURCE = cpv.DiscreteSource(
    [[0.3, 0.1, 0.1], [0.1, 0.2, 0.2]], w=["<img src=x onerror=alert(1)>", "b"], x=list("123")
)
OWN = {
    "convex": lambda: cpv.frontier(
        cpv.PrivacyDistortion(SOURCE, cpv.hamming(list("123")), budget=0.1), tol=0.02
    ),
    "exponential": lambda: cpv.frontier(
        cpv.MinimumDistortion(SOURCE, cpv.hamming(list("123")), [cpv.MaximalLeakage(0.4)]),
        "maximal_leakage", tol=0.05,
    ),
    "monotone": lambda: cpv.frontier(
        cpv.MinimumDistortion(SOURCE, cpv.hamming(list("123")), [cpv.TCloseness(0.02)]),
        "t_closeness", tol=0.1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", OWN)
def test_a_users_own_frontier_is_shown(page, tmp_path, kind):
    curve = OWN[kind]()
    path = curve.to_json(tmp_path / "mine.json", title="<b>mine</b>")
    page.locator("#ex-file").set_input_files(path)
    page.locator("#ex-own-1:checked").wait_for(state="attached")
    assert part(page, "title").text_content() == "<b>mine</b>"
    assert "mine.json is shown" in part(page, "message").text_content()
    plain = Frontier.load(curve.save(tmp_path / "curve.json"))  # proves no more than the file
    for step in (40, 120, 180):
        check_curves(page, plain, move(page, step))
    assert "<img src=x onerror=alert(1)>" in part(page, "posteriors").text_content()
    assert page.locator(".explorer img, .explorer b").count() == 0
    choose(page, "hair")
    assert part(page, "title").text_content() == data.PROBLEMS["hair"].title


def broken(change):
    def made(picture: dict) -> str:
        change(picture)
        return json.dumps(picture)

    return made


BROKEN = {
    "no JSON": lambda picture: json.dumps(picture)[:-5],
    'schema: is not "cvxprivacy frontier picture 1"': broken(lambda p: p.update(schema="other")),
    "points: is missing": broken(lambda p: p.pop("points")),
    "points[2].channel: is not 4 rows of 4 probabilities": broken(
        lambda p: p["points"][2]["channel"][1].__setitem__(0, 0.9)
    ),
    "model.joint: is not a law": broken(lambda p: p["model"]["joint"].pop()),
    "corners[0].point: is not the number": broken(lambda p: p["corners"][0].update(point=99)),
    "are not as Frontier.to_json writes them": broken(
        lambda p: p["constraints"][0].update(each="letter")
    ),
    "points[0].x: is not a number": broken(lambda p: p["points"][0].update(x="0")),
}


@pytest.mark.parametrize("why", BROKEN)
def test_a_broken_file_is_refused_and_changes_nothing(page, page_path, tmp_path, why):
    expected = page_path.parent / "_static" / "explorer" / "illness.json"
    text = BROKEN[why](json.loads(expected.read_text(encoding="utf-8")))
    before = page.locator(".ex-main").inner_text()
    script = """([place, text]) => {
        const carried = new DataTransfer();
        carried.items.add(new File([text], "broken.json"));
        const how = { dataTransfer: carried, bubbles: true, cancelable: true };
        document.querySelector(place).dispatchEvent(new DragEvent("drop", how));
    }"""
    page.evaluate(script, ['[data-ex="drop"]', text])
    page.locator(".ex-wrong").wait_for()
    assert why in part(page, "message").text_content()
    assert page.locator(".ex-main").inner_text() == before
    assert page.locator("#ex-own-1").count() == 0


@pytest.mark.parametrize("page", [(360, 800)], indirect=True)
def test_it_fits_a_phone(page):
    for name in data.PROBLEMS:
        choose(page, name)
        for step in (0, 100, 200):
            move(page, step)
            widths = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
            assert widths[0] <= widths[1] == 360
    touched = page.locator(".explorer button, .ex-choice, .ex-button, .ex-move input, summary")
    assert touched.count() >= 11
    for target in filter(lambda t: t.is_visible(), touched.all()):
        assert target.bounding_box()["height"] >= 40


def test_the_script_holds_what_the_files_hold(page_path):
    folder = page_path.parent / "_static" / "explorer"
    script = (folder / "data.js").read_text(encoding="utf-8")
    shown = json.loads(script.removeprefix("window.cvxprivacyData = ").rstrip(";\n"))
    assert [problem["name"] for problem in shown] == list(data.PROBLEMS)
    for problem in shown:
        single = json.loads((folder / f"{problem['name']}.json").read_text(encoding="utf-8"))
        assert single == problem["picture"]


def test_at_the_end_of_a_curve_nothing_is_left_to_save(page):
    """The multiplier of the last point is of the line to its left."""
    choose(page, "illness")
    end = int(page.locator("#ex-slider").get_attribute("max"))
    move(page, end)
    assert agrees(part(page, "price").text_content(), 0.0)
    assert "nothing is left to save" in part(page, "price-interval").text_content()
    move(page, end // 2)
    assert part(page, "price").text_content().startswith("≈")


@pytest.mark.parametrize("page", [(867, 600), (390, 844)], indirect=True)
def test_curve_slider_and_release_are_seen_together(page):
    """Below the bar of the site, which is at most 80 pixels high."""
    for name in data.PROBLEMS:
        choose(page, name)
        release = "noise-box" if name == "health" else "release-box"
        boxes = [part(page, place).bounding_box() for place in ("curve", "slider", release)]
        assert boxes[0]["height"] > 150
        bottom = max(box["y"] + box["height"] for box in boxes)
        assert bottom - min(box["y"] for box in boxes) <= page.viewport_size["height"] - 80, name


def luminance(rgb: list[float]) -> float:
    """The relative luminance of WCAG 2.2."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in np.divide(rgb, 255)
    ]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def test_text_on_colours_is_readable(page):
    """Contrast of at least 4.5, of cells of every shade and of all that is set on a colour."""
    coloured = """(selector) => [...document.querySelectorAll(selector)].map((e) => {
        const style = getComputedStyle(e);
        return [style.color, style.backgroundColor];
    })"""
    page.emulate_media(reduced_motion="reduce")  # colours as they rest
    shades = set()
    for name in data.PROBLEMS:
        choose(page, name)
        for step in range(0, 201, 20):
            move(page, step)
            for selector in (".ex-channel td", ".ex-computed", ".ex-state", ".ex-go",
                             ".ex-choice input:checked + label"):  # fmt: skip
                shades.update(map(tuple, page.evaluate(coloured, selector)))
    assert len({back for _, back in shades}) > 60
    for ink, back in shades:
        pale, dark = sorted((luminance(floats(ink)[:3]), luminance(floats(back)[:3])), reverse=True)
        assert (pale + 0.05) / (dark + 0.05) >= 4.5, (ink, back)


# ---- the square --------------------------------------------------------------------------------

CLINIC = cpv.DiscreteSource.from_counts([[90, 10], [10, 90]])
RARE = cpv.DiscreteSource.from_counts([[70, 15], [5, 10]])
SQUARES = {"clinic": (CLINIC, 0.2), "rare": (RARE, 0.1)}


def square(page, name: str):
    return page.locator(f'[data-sq="{name}"]')


def answer(page, option: int | None = None) -> str:
    """Answer, and return what is then told."""
    if option is not None:
        page.locator('[name="ex-answer"]').nth(option).check()
    square(page, "answer").click()
    return square(page, "told").text_content()


def drag(page, **values: float) -> None:
    script = "(slider, v) => { slider.value = v; slider.dispatchEvent(new Event('input')); }"
    for name, value in values.items():
        page.locator(f"#ex-knob-{name}").evaluate(script, value)


def gap(page) -> tuple[list[float], list[float]]:
    """Risk, bound and gap as they are shown, and the parts of the gap."""
    summary = [floats(square(page, name).text_content())[0] for name in ("risk", "bound", "width")]
    return summary, [
        floats(t)[0] for t in square(page, "parts").locator("output").all_text_contents()
    ]


def freely(page) -> None:
    """Answer all questions."""
    for option in (None, 2, 1, 1):
        answer(page, option)
        answer(page)
    assert square(page, "count").text_content() == "Freely"


def by_hand(source, budget, a, b, r0, r1, lam):
    """Risk, bound and parts as docs/tutorials/primal_dual_kkt.md has them."""
    d, r = 1 - np.eye(2), np.array([[1 - r0, 1 - r1], [r0, r1]])
    conditional = (source.pmf / source.p_x).T
    mass = source.p_x[:, None] * np.array([[1 - a, a], [1 - b, b]])
    costs = conditional @ np.log2(r / source.p_w[:, None]) + lam * d
    bound = source.p_x @ costs.min(axis=1) - lam * budget
    joint = conditional.T @ mass
    q = joint.sum(axis=0)
    risk = (joint * np.log2(joint / (source.p_w[:, None] * q))).sum()
    parts = [
        (joint * np.log2(joint / q / r)).sum(),
        (mass * (costs - costs.min(axis=1, keepdims=True))).sum(),
        lam * (budget - (mass * d).sum()),
    ]
    return [risk, bound, risk - bound], parts


@pytest.mark.parametrize("name", SQUARES)
def test_the_parts_of_the_gap_are_those_of_the_dual(page, name):
    source, budget = SQUARES[name]
    page.locator(f"#ex-table-{name}").check(force=True)
    freely(page)
    for a, b, r0, r1, lam in [(0.1, 0.9, 0.2, 0.6, 1.0), (0.05, 0.7, 0.5, 0.3, 0.25),
                              (0.4, 0.4, 0.1, 0.9, 2.5)]:  # fmt: skip
        drag(page, a=a, b=b, r0=r0, r1=r1, **{"lambda": lam})
        summary, parts = by_hand(source, budget, a, b, r0, r1, lam)
        shown, shares = gap(page)
        assert shown == pytest.approx(summary, abs=6e-5)
        assert shares == pytest.approx(parts, abs=6e-5)
        assert sum(shares) == pytest.approx(shown[2], abs=3e-4)


@pytest.mark.parametrize("name", SQUARES)
def test_the_bound_of_the_square_touches_the_optimum(page, name):
    source, budget = SQUARES[name]
    optimum = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=budget).solve().value
    page.locator(f"#ex-table-{name}").check(force=True)
    freely(page)
    assert gap(page)[0][2] > 2e-3
    assert square(page, "told").text_content() == ""
    for words in ("release ←", "r ←", "λ ←"):
        page.get_by_role("button", name=words).click()
    (risk, bound, _), _ = gap(page)
    assert risk == pytest.approx(optimum, abs=6e-5)
    assert bound == pytest.approx(optimum, abs=6e-5)
    assert "Closed to" in square(page, "told").text_content()
    least = page.locator(".ex-corner.ex-least").all_text_contents()
    assert [floats(t)[0] for t in least] == pytest.approx([optimum] * len(least), abs=6e-4)
    assert len(least) == {"clinic": 4, "rare": 2}[name]  # where p(x̂|x) > 0, G is least
    drag(page, r0=0.3 * float(source.p_w[1]))  # other multipliers prove less
    assert gap(page)[0][1] < optimum


@pytest.mark.parametrize("name", SQUARES)
def test_predictions_are_asked_before_anything_is_shown(page, name):
    page.locator(f"#ex-table-{name}").check(force=True)
    for place in ("sections", "sum", "parts", "multipliers"):
        assert square(page, place).is_hidden()
    assert page.locator(".ex-optimum").count() == 0
    assert "Not so." in answer(page)  # the point is in the middle, too far
    assert page.locator(".ex-optimum").count() == 1
    answer(page)
    for option, right in ((0, False), (1, True), (1, True)):
        assert square(page, "parts").is_hidden()
        assert page.locator(".ex-corner").count() == 0
        square(page, "answer").click()  # nothing is chosen yet
        assert square(page, "parts").is_hidden()
        assert answer(page, option).startswith("Yes." if right else "Not so.")
        assert square(page, "parts").is_visible()
        assert page.locator(".ex-corner").count() == 4
        if option == 0:  # λ = 0 proves nothing
            assert gap(page)[0][1] <= 0
        answer(page)


@pytest.mark.parametrize("page", [(867, 600), (390, 844)], indirect=True)
def test_the_square_is_seen_while_its_multipliers_move(page):
    freely(page)
    places = [square(page, "square"), square(page, "sum"), page.locator("#ex-knob-lambda")]
    boxes = [place.bounding_box() for place in places]
    bottom = max(box["y"] + box["height"] for box in boxes)
    assert bottom - min(box["y"] for box in boxes) <= page.viewport_size["height"] - 80


def test_a_good_prediction_is_told_so(page):
    drag(page, a=0.2, b=0.8)
    words = answer(page)
    assert words.startswith("Yes.")
    assert "0.1733" in words


def test_the_square_is_moved_by_keys_and_by_hand(page):
    slider = page.locator("#ex-knob-a")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert float(slider.input_value()) == pytest.approx(0.505)
    box = square(page, "square").locator(".ex-frame").bounding_box()
    page.mouse.click(box["x"] + 0.25 * box["width"], box["y"] + 0.1 * box["height"])
    assert float(slider.input_value()) == pytest.approx(0.25, abs=0.02)
    assert float(page.locator("#ex-knob-b").input_value()) == pytest.approx(0.9, abs=0.02)


# ---- a table of one's own ------------------------------------------------------------------------

TABLED = {
    "clinic": [[90, 10], [10, 90]],
    "students": data.STUDENTS,
    "zeros": [[5, 0, 3], [0, 7, 2]],
    "itself": [[3, 0], [0, 7]],
    "independent": [[1, 2], [2, 4]],
    "large": [[(7 * i + 13 * j + 5 * i * j) % 17 for j in range(8)] for i in range(6)],
}


def type_table(page, text: str) -> str:
    part(page, "counts").fill(text)
    part(page, "solve").click()
    return part(page, "table-message").text_content()


@pytest.mark.parametrize("cost", ["hamming", "distance"])
@pytest.mark.parametrize("name", TABLED)
def test_the_solver_of_the_page_agrees_with_the_package(page, name, cost):
    counts = TABLED[name]
    n = len(counts[0])
    script = """([counts, cost]) => {
        const d = cvxSolver[cost](counts[0].length);
        const label = (_, i) => String(i);
        const table = { counts, w: counts.map(label), x: counts[0].map(label) };
        return cvxSolver.picture(table, d, { title: "", words: {} }).points;
    }"""
    points = page.evaluate(script, [counts, cost])
    assert len(points) == 25
    d = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    d = d if cost == "distance" else np.minimum(d, 1)
    problem = cpv.PrivacyDistortion(cpv.DiscreteSource.from_counts(counts), d, budget=0.1)
    assert points[-1]["x"] == pytest.approx(float(problem.greatest_distortion))
    for point in points:
        assert -1e-9 <= point["upper"] - point["lower"] <= 1e-6
        channel = np.array(point["channel"])
        assert (channel >= 0).all()
        assert channel.sum(axis=1) == pytest.approx(1.0)
        mass = problem.source.p_x[:, None] * channel
        assert (mass * d).sum() <= point["x"] + 1e-12
        leaked = cpv.model.information.mutual_information(problem.source.pmf @ channel)
        assert point["upper"] == pytest.approx(leaked, abs=1e-9)
    for k in (0, 1, 8, 16, 23):
        solution = problem.at(budget=points[k]["x"]).solve()
        assert points[k]["upper"] == pytest.approx(float(solution.value), abs=1e-5)
        assert points[k]["lower"] <= float(solution.upper) + 1e-9


@pytest.mark.parametrize("cost", ["hamming", "distance"])
def test_a_typed_table_is_shown_and_its_lines_of_python_run(
    page, tmp_path, monkeypatch, capsys, cost
):
    page.locator(f'[name="ex-cost"][value="{cost}"]').check()
    text = '\tlow\t<b>mid\thigh\n"yes"\t20\t10\t2\nno\t5\t10\t30\n'
    assert type_table(page, text).startswith("Solved at 25 budgets")
    assert part(page, "title").text_content() == "Your table"
    assert "<b>mid" in part(page, "channel").text_content()
    badges = [part(page, name).text_content() for name in ("value-badge", "price-badge")]
    assert badges == ["computed by this page"] * 2
    assert "proved" not in part(page, "legend").text_content()
    x = move(page, 60)
    program = part(page, "python").text_content()
    assert f"budget={x:.6g}" in program
    monkeypatch.chdir(tmp_path)
    scope: dict = {}
    exec(program, scope)
    assert "certified" in capsys.readouterr().out
    solution = scope["problem"].solve()
    low, high, _ = floats(part(page, "enclosure").text_content())
    assert low - 1e-5 <= float(solution.value) <= high + 1e-5
    page.locator("#ex-file").set_input_files(tmp_path / "mine.json")  # the proof comes back
    page.locator("#ex-own-1:checked").wait_for(state="attached")
    assert part(page, "value-badge").text_content() == "proved"
    type_table(page, "1 2\n3 4")  # another table takes the place of the first
    assert page.locator("#ex-typed").count() == 1


def test_tables_are_read_as_they_are_pasted(page):
    read = "(text) => cvxTable.read(text)"
    plain = {"counts": [[1, 2], [3, 4]], "w": ["w1", "w2"], "x": ["x1", "x2"]}
    for text in ("1 2\n3 4", "1,2\n3,4\n\n", "1\t2\r\n3\t4", "  1   2\n  3   4"):
        assert page.evaluate(read, text) == plain
    named = {"counts": [[1, 2], [3, 4]], "w": ["a", "b"], "x": ["25", "40"]}
    for text in (",25,40\na,1,2\nb,3,4", "\t25\t40\na\t1\t2\nb\t3\t4"):
        assert page.evaluate(read, text) == named
    assert page.evaluate(read, "p q\n1 2\n3 4") == {**plain, "x": ["p", "q"]}
    assert page.evaluate(read, "a 1 2\nb 3 4") == {**plain, "w": ["a", "b"]}
    assert page.evaluate(read, "who;p;q\na;1;2\nb;3;4") == {**named, "x": ["p", "q"]}


WRONG = {
    "": "The table: is empty. Type counts",
    "1 2": "has 1 rows. This page solves 2 to 6 rows",
    "1 2 3 4 5 6 7 8 9\n" * 2: "has 9 columns. This page solves 2 to 8 columns",
    "1 2\n3 x": "Line 2, count 2: “x” is no number. Write a count",
    "1,2\n3,": "Line 2, count 2: is empty. Write a count",
    "1 2\n\n3 -4": "Line 3, count 2: -4 is negative. Write a count",
    "1 2\n3 0.5": "Line 2, count 2: 0.5 is no whole number. Write the count of records",
    "1 2\n3 1e12": "Line 2, count 2: 1e12 is too large",
    "1 2\n3": "Line 2: has 1 counts, the first row of counts has 2. Give every line",
    "p q r s\n1 2\n3 4": "Line 1: names 4 columns, the rows have 2. Name every column once",
    "p p\n1 2\n3 4": "The name of column 2: “p” is that of column 1. Give each its own name",
    "1 2\n0 0": "Row 2 (w2): holds no record. Leave this row out",
    "0 2\n0 4": "Column 1 (x1): holds no record. Leave this column out",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_malformed_table_is_refused_with_place_and_remedy(page, text):
    before = page.locator(".ex-main").inner_text()
    message = type_table(page, text)
    assert WRONG[text] in message
    assert message.endswith(".")
    assert "ex-wrong" in part(page, "table-message").get_attribute("class")
    assert page.locator(".ex-main").inner_text() == before
    assert page.locator("#ex-typed").count() == 0
