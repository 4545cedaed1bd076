"""The Explorer for a table of your own, in a live notebook: ``marimo edit docs/explorer/live.py``.

Unlike the page, it solves: change the counts, the criteria or the budget, and the optimum is
proved again.
"""

import marimo

app = marimo.App(app_title="Explorer, live")


@app.cell
def _():
    import marimo as mo
    import numpy as np
    import pandas as pd

    import cvxprivacy as cpv
    from cvxprivacy import style

    return cpv, mo, np, pd, style


@app.cell
def _(mo):
    mo.md("""
    # What does age tell about an illness?

    Change the counts of records, illness by age, or the rules; then move the budget.
    """)
    return


@app.cell
def _(mo, pd):
    states, ages = ["none", "mild", "severe"], [25, 40, 55, 70]
    records = [[40, 22, 9, 4], [18, 30, 21, 10], [5, 12, 28, 41]]
    frame = pd.DataFrame(records, columns=[str(age) for age in ages])
    counts = mo.ui.data_editor(frame, label="records: rows are none, mild, severe")
    closeness = mo.ui.slider(0.05, 0.5, 0.05, 0.5, label="t-closeness, bits", show_value=True)
    mo.vstack([counts, closeness])
    return ages, closeness, counts, states


@app.cell
def _(ages, closeness, counts, cpv, mo, states):
    source = cpv.DiscreteSource.from_counts(
        counts.value.to_numpy(), w=states, x=ages, names=["illness", "age"]
    )
    rules = [cpv.TCloseness(closeness.value)]
    error = cpv.absolute_error(ages)
    problem = cpv.PrivacyDistortion(source, error, budget=5.0, criteria=rules)
    curve = cpv.frontier(problem, tol=0.01)
    low, high = map(float, curve.solved_range)
    budget = mo.ui.slider(
        low, high, (high - low) / 100, low + (high - low) / 3, label="allowed error, years"
    )
    mo.vstack([budget])
    return budget, curve, problem, source


@app.cell
def _(budget, curve, mo, np):
    def outwards(low, high):
        """Say an interval to five digits, which encloses it."""
        ends = np.floor(low * 1e5) / 1e5, np.ceil(high * 1e5) / 1e5
        return "between {:.5f} and {:.5f}".format(*ends)

    solution = curve.solution_at(budget.value)
    price = curve.price(budget.value)
    mo.md(f"""
    Information left: **{solution.value:.4f} bits**, proved: the least possible is
    {outwards(curve.outer(budget.value), curve.inner(budget.value))}. One more year of error
    would save {outwards(0.0 - price.upper, 0.0 - price.lower)} bits.
    """)
    return outwards, solution


@app.cell
def _(budget, curve, mo, np, solution, source, style):
    figure, axes = style.panels("frontier", "release", "illness, by release")
    curve.plot(axes[0], color=style.BLUE)
    axes[0].plot(budget.value, solution.value, "o", color=style.VERMILION)
    channel = solution.channel
    axes[1].imshow(channel.matrix, vmin=0, vmax=1)
    axes[1].set(xticks=range(len(channel.outputs)), xticklabels=channel.outputs)
    axes[1].set(xlabel="released age")
    axes[1].set(yticks=range(len(channel.inputs)), yticklabels=channel.inputs, ylabel="age")
    joint = source.pmf @ channel.matrix
    bottom = np.zeros(len(channel.outputs))
    for w, row, color in zip(source.w, joint / joint.sum(axis=0), style.PALETTE, strict=False):
        axes[2].bar(range(len(row)), row, bottom=bottom, color=color, label=w)
        bottom += row
    axes[2].set(xticks=range(len(bottom)), xticklabels=channel.outputs, xlabel="released age")
    figure.legend(*axes[2].get_legend_handles_labels(), loc="outside upper right", ncols=3)
    mo.as_html(figure)
    return


if __name__ == "__main__":
    app.run()
