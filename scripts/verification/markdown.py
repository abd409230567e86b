"""Tables as Markdown."""

from collections.abc import Iterable


def table(titles: list[str], rows: Iterable[list[str]], left: int | None = None) -> list[str]:
    """Lines. Columns after the first `left`, which are all where it is not given, hold numbers: aligned right. A row
    may be short."""

    def line(cells: list[str]) -> str:
        padded = cells + [""] * (len(titles) - len(cells))
        return " ".join("| " + cell.replace("|", "\\|").replace("<", "\\<") if cell else "|" for cell in padded) + " |"

    left = len(titles) if left is None else left
    return [line(titles), "|" + "---|" * left + "---:|" * (len(titles) - left), *map(line, rows)]
