"""Joins src/dashboard/page into one document, as the program does: live, or a report with its data."""
import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "src/dashboard/page"


def assemble(view=None):
    page = (FOLDER / "index.html").read_text()
    style = (FOLDER / "style.css").read_text()
    script = "".join(path.read_text() for path in sorted(FOLDER.glob("*.js")))
    data = ""
    if view is not None:
        text = json.dumps(view, allow_nan=False).replace("</", "<\\/")
        data = f'<script type="application/json" id="data">{text}</script>'
    for line, content in (("style", f"<style>{style}</style>"), ("data", data), ("script", f"<script>{script}</script>")):
        assert f"<!-- {line} -->" in page
        page = page.replace(f"<!-- {line} -->", content)
    return page
