"""TOML: each key has its line, and what is written is what is read."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings, strategies as st

from cvxprivacy import InputError
from cvxprivacy_sdc.statements import toml

# ---- where keys are ----------------------------------------------------------------------

TRICKY = '''
# a comment with [brackets] and "quotes
plain = 1 # [not.a.table]
text = """
[source]
fake = 1
""" # ends here
literal = \'\'\'
a = "
it's \'\'\'
escaped = "say \\"a = [1\\" \\\\"
"quoted.key" = [ "]", # ]
  [ 1, 2 ], { deep = [
  3 ] } ,
]
dotted . "in side" . x = 1.5e-3
when = 2026-01-31T10:00:00.5Z
inline = { a = 1, b.c = [1, 2] }
empty = ""
[ table . \'sub\' ]
key = +inf
[[many]]
n = 0
[many.child]
n = 1
[[many.grand]]
n = 2
[[many.grand]]
n = 3
[[many]]
n = 4
[many.child]
n = 5'''


def test_lines_of_a_tricky_file():
    tomllib.loads(TRICKY)
    lines, text = toml.lines_of(TRICKY), TRICKY.split("\n")
    starts = {
        ("plain",): "plain", ("text",): "text", ("literal",): "literal", ("escaped",): "escaped",
        ("quoted.key",): '"quoted.key"', ("quoted.key", 1): "[ 1, 2 ]", ("quoted.key", 1, 1): "[",
        ("dotted", "in side", "x"): "dotted", ("dotted",): "dotted", ("when",): "when",
        ("inline",): "inline", ("table", "sub"): "[ table", ("table", "sub", "key"): "key",
        ("many", 0, "n"): "n = 0", ("many", 0, "child", "n"): "n = 1", ("many", 1): "[[many]]",
        ("many", 0, "grand", 0, "n"): "n = 2", ("many", 0, "grand", 1, "n"): "n = 3",
        ("many", 1, "n"): "n = 4", ("many", 1, "child", "n"): "n = 5",
    }  # fmt: skip
    for keys, start in starts.items():
        assert text[lines[keys] - 1].strip().startswith(start), keys
    assert lines[("many", 0)] < lines[("many", 1)]
    assert ("source",) not in lines
    assert ("fake",) not in lines


KEY = st.one_of(
    st.from_regex(r"\A[A-Za-z0-9_-]{1,5}\Z"),
    st.sampled_from(['"a b"', "'c.d'", '"e\\"f"', '"="', '"]["', "'#'"]),
)
SCALAR = st.sampled_from(
    ["1", "-2.5", "true", "inf", '"]"', "'[#'", '"""\n=\n"""', "''' \" '''", "1979-05-27", '"\\\\"']
)
SPACE = st.sampled_from([" ", "", "\n", " # ] comment\n", "\t"])
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.lists(st.tuples(SPACE, inner, SPACE), max_size=3).map(
        lambda entries: "[" + ",".join(a + v + b for a, v, b in entries) + "]"
    ),
    max_leaves=6,
)


@settings(max_examples=60)
@given(st.lists(st.tuples(KEY, VALUE, st.booleans()), min_size=1, max_size=6))
def test_lines_of_random_files(entries):
    """The n-th key of the file stands on the line where it was put, whatever is around."""
    text, expected, table = "", {}, ()
    for i, (key, value, header) in enumerate(entries):
        name = tomllib.loads(f"_ = {key}")["_"] if key[0] in "\"'" else key
        if header:
            text += f"[t{i}.{key}] # ['\n"
            table = (f"t{i}", name)
            expected[table] = text.count("\n")
        text += f"k{i} . {key} = {value}\n\n"
        expected[(*table, f"k{i}", name)] = text.count("\n") - value.count("\n") - 1
    tomllib.loads(text)
    lines = toml.lines_of(text)
    assert {keys: lines.get(keys) for keys in expected} == expected


@settings(max_examples=50)
@given(VALUE.filter(lambda v: v.startswith("[")))
def test_every_entry_of_an_array_has_a_line(value):
    text = f"a = 1\nb = {value}\n"
    lines = toml.lines_of(text)

    def visit(path, outcome) -> None:
        assert path in lines
        for i, entry in enumerate(outcome if isinstance(outcome, list) else ()):
            visit((*path, i), entry)

    visit(("b",), tomllib.loads(text)["b"])


# ---- written -----------------------------------------------------------------------------

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ANY_VALUE = st.recursive(
    ANY_TEXT | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
ANY_SECTION = st.dictionaries(ANY_TEXT, ANY_VALUE, max_size=4)


@given(
    st.dictionaries(st.sampled_from(["formulation", "budget", "units"]), ANY_VALUE),
    st.dictionaries(st.sampled_from(["source", "distortion", "solve", "output"]), ANY_SECTION),
    st.lists(ANY_SECTION, max_size=3),
)
def test_what_is_written_is_what_toml_reads(top, sections, rules):
    data = {**sections, **top, "criteria": rules}
    text = toml.written(data)
    outcome = tomllib.loads(text)
    assert outcome.pop("criteria", []) == rules
    assert outcome == {**sections, **top}
    same = [(repr(outcome[key]), repr(value)) for key, value in top.items()]
    assert all(a == b for a, b in same)  # 5.0 is no 5, and −0.0 no 0.0
    assert len(text.encode()) >= 1


def test_a_text_that_is_none_is_refused():
    with pytest.raises(InputError, match="is no text") as caught:
        toml.written({"source": {"table": "\ud800.csv"}})
    assert caught.value.value == "\ud800.csv"
