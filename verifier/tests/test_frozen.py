"""Proofs of every kind, as they were written: each verifies for ever, and proves no less.

``python -m unittest discover verifier/tests`` needs python-flint and nothing else.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

from cvxprivacy_verifier import verify
from cvxprivacy_verifier.__main__ import main

ENTRIES = json.loads(Path(__file__).with_name("frozen.json").read_text(encoding="utf-8"))


def ends(claim: Any) -> dict[str, list[float]]:
    """Return each interval of a claim, the value's under no name; a number may be a text."""
    pairs = {**claim["terms"], "": [claim["lower"], claim["upper"]]}
    return {name: [float(end) for end in pair] for name, pair in pairs.items()}


class Frozen(unittest.TestCase):
    """Every document of every schema that was released."""

    def test_each_verifies_and_proves_no_less_than_when_it_was_written(self) -> None:
        for number, entry in enumerate(ENTRIES):
            document, claims = entry["document"], ends(entry["document"]["claim"])
            with self.subTest(number=number, name=entry["name"]):
                self.assertEqual(verify.disagreements(document), [])
                proved = verify.recompute(document)
                self.assertEqual(proved["status"], document["claim"]["status"])
                self.assertAlmostEqual(proved["tolerance"], entry["tolerance"], delta=1e-12)
                for name, (low, high) in ends(proved).items():
                    least, most = claims[name]
                    # a ball may have become narrower, never wider
                    self.assertTrue(least <= low <= high <= most or [low, high] == [least, most])
                    for end, claim in ((low, least), (high, most)):
                        if end != claim:  # infinite ends are equal
                            self.assertLessEqual(abs(end - claim), 1e-10 * abs(claim))

    def test_the_words_of_each_are_those_of_its_kind(self) -> None:
        kinds = {entry["document"]["program"]["kind"] for entry in ENTRIES}
        self.assertEqual(kinds, {"channel", *verify.KINDS})

    def test_a_better_claim_is_not_proved(self) -> None:
        for number, entry in enumerate(ENTRIES):
            low, high = ends(entry["document"]["claim"])[""]
            # a ten-thousandth of itself better, which no proof here has to spare
            for end, value, better in (("lower", low, 1), ("upper", high, -1)):
                if abs(value) in (0.0, float("inf")) or entry["document"]["dual"] is None:
                    continue
                lie = copy.deepcopy(entry["document"])
                lie["claim"][end] = value + better * 1e-4 * abs(value)
                lie["sha256"] = verify.digest(lie)
                with self.subTest(number=number, name=entry["name"], end=end):
                    self.assertTrue(verify.disagreements(lie))

    def test_a_changed_file_is_noticed(self) -> None:
        for entry in ENTRIES:
            changed = {**entry["document"], "software": "another"}
            self.assertIn("sha256", verify.disagreements(changed)[0])

    def test_a_schema_that_nobody_released_is_refused(self) -> None:
        document = {**ENTRIES[0]["document"], "schema": "cvxprivacy/certificate/0"}
        self.assertIn("schema", verify.disagreements(document)[0])

    def test_the_command_verifies_them_as_files(self) -> None:
        printed = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(printed):
            paths = []
            for number, entry in enumerate(ENTRIES):
                paths.append(Path(folder, f"{number}.json"))
                paths[-1].write_text(json.dumps(entry["document"]), encoding="utf-8")
            self.assertEqual(main([str(path) for path in paths]), 0)
            self.assertEqual(printed.getvalue().count(": verified, "), len(paths))
            paths[1].write_text(json.dumps({**ENTRIES[1]["document"], "claim": {}}))
            self.assertEqual(main([str(path) for path in paths[:3]]), 1)
        self.assertIn("NOT verified", printed.getvalue())


if __name__ == "__main__":
    unittest.main()
