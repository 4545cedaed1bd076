"""The Explorer in a browser: what it shows is what the package says, to the digits shown."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

import cvxprivacy as cpv
from tests.test_architecture import ROOT, script

DOCS = ROOT / "docs" / "explorer"

pytestmark = pytest.mark.long


data = script(DOCS / "data.py")


@pytest.fixture(scope="module")
def page_path(tmp_path_factory) -> Path:
    """A page of the fragment alone, as Sphinx would put it."""
    folder = tmp_path_factory.mktemp("explorer")
    data.write(folder / "_static" / "explorer")
    fragment = (DOCS / "fragment.html").read_text(encoding="utf-8")
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
    width = getattr(request, "param", 1000)
    opened = browser.new_page()
    opened.set_viewport_size({"width": width, "height": 800})
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


def check_curves(page, curve: cpv.Frontier, x: float) -> None:
    """Compare the headline numbers; proved ends are rounded outwards."""
    inner, outer, price = curve.inner(x), curve.outer(x), curve.price(x)
    assert agrees(part(page, "value").text_content(), inner)
    low, high, _count = floats(part(page, "enclosure").text_content())
    assert outer - 1.1e-4 <= low <= outer
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
    expected: dict[str, cpv.Frontier] = {}

    def of(name: str) -> cpv.Frontier:
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
    plain = cpv.Frontier.load(curve.save(tmp_path / "curve.json"))  # proves no more than the file
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


@pytest.mark.parametrize("page", [360], indirect=True)
def test_it_fits_a_phone(page):
    for name in data.PROBLEMS:
        choose(page, name)
        for step in (0, 100, 200):
            move(page, step)
            widths = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
            assert widths[0] <= widths[1] == 360
    touched = page.locator(".explorer button, .ex-choice, .ex-button, .ex-move input, summary")
    assert touched.count() >= 11
    for target in touched.all():
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
