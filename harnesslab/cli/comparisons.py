"""`harnesslab compare`."""

from __future__ import annotations

import click

from harnesslab.cli.rollouts import named_rollout
from harnesslab.cli.terminal import printable
from harnesslab.core.comparing.comparison import compare_traces
from harnesslab.core.contracts.contract import LADDER, TITLES, Contract
from harnesslab.queries.comparisons.result import ComparisonResult, result


@click.command("compare")
@click.argument("a")
@click.argument("b")
@click.option("--level", type=click.Choice([level.value for level in LADDER]), help="What must be equal.")
@click.option("--only", type=click.Choice(["tool-calls"]), help="Compare tool names and arguments alone.")
@click.option("--rules", default="", help="Scrub rules as name@version with commas, or none; all by default.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON; positions count from 0.")
def compare(a: str, b: str, level: str | None, only: str | None, rules: str, *, as_json: bool) -> None:
    """Say where two rollouts part, and why. A and B are ids, or trace files (FILE#n for the n-th, from 0)."""
    contract = Contract.parse(level or "", rules, only or "")
    one, two = named_rollout(a), named_rollout(b)
    found = result(a, b, compare_traces(one.reader, two.reader, contract))
    click.echo(found.model_dump_json(indent=2) if as_json else "\n".join(map(printable, _text(found).split("\n"))))


def _text(found: ComparisonResult) -> str:
    lines = [found.sentence, ""]
    ladder = {"equal": "=", "different": "≠", "not comparable": "·"}
    lines.append("  ".join(f"{TITLES[level]} {ladder[found.ladder[level.value]]}" for level in LADDER))
    counts = found.counts
    lines.append(
        f"{counts['equal']} rows equal, {counts['changed']} changed, {counts['moved']} moved, "
        f"{counts['only_a']} only in A, {counts['only_b']} only in B; {counts['edits']} edits"
    )
    rejoins = "" if found.identical else f"; paths rejoin: {'yes' if found.rejoins else 'no'}"
    lines.append(f"outcomes: {found.outcomes[0]} / {found.outcomes[1]}{rejoins}")
    if found.first_divergence is not None:
        lines.append("")
        for row in found.first_divergence.evidence:
            lines += [f"{row.label}:", f"  A {_short(row.a)}", f"  B {_short(row.b)}"]
    return "\n".join(lines)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else line[:159] + "…"
