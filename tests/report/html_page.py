"""A page as its elements, its text and what its styles and scripts contain."""

import json
from collections import Counter
from html.parser import HTMLParser


class HtmlPage(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.elements, self.text, self.inside, self.raw = [], [], [], {}
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in {"style", "script"}:
            self.inside.append((tag, dict(attrs).get("type", "")))

    def handle_endtag(self, tag):
        if tag in {"style", "script"}:
            self.inside.pop()

    def handle_data(self, data):
        if self.inside:
            self.raw[self.inside[-1]] = self.raw.get(self.inside[-1], "") + data
        else:
            self.text.append(data)

    def all(self, tag, **wanted):
        """Return the attributes of all elements of this kind that have the wanted ones."""
        return [found for name, found in self.elements if name == tag and wanted.items() <= found.items()]

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())

    @property
    def tags(self):
        return Counter(tag for tag, _ in self.elements)

    @property
    def data(self):
        """What the page's script reads."""
        return json.loads(self.raw["script", "application/json"])
