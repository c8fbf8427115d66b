"""What the documents say of names is what the code has."""

import re
from pathlib import Path

from gatewright.protocol import Refusal

ROOT = Path(__file__).parents[1]


def test_every_refusal_is_explained() -> None:
    """A refusal that nobody can look up is no reason that a person can act on."""
    explained = set(re.findall(r"`([a-z_]+)`", (ROOT / "docs" / "protocol.md").read_text()))

    assert {refusal.value for refusal in Refusal} <= explained


def test_the_readme_names_no_verdict_that_does_not_exist() -> None:
    """Its table of bad messages promises names of the protocol."""
    table = (ROOT / "README.md").read_text().split("## What a bad message gets")[1].split("All of them")[0]
    verdicts = set(re.findall(r"`([a-z_]+)`", table))

    assert len(verdicts) >= 12
    assert verdicts <= {refusal.value for refusal in Refusal} | {"admitted", "repeated"}


def test_links_between_documents_lead_somewhere() -> None:
    """Every relative link of README and docs."""
    for document in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links {target}"
