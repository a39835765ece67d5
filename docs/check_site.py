"""Check the built site: `make docs` runs this on docs/_build/html.

Every link leads to a page and an anchor that are there, and nothing is loaded from elsewhere. With
chromium and axe-core (`make browser`) every page is opened at 1280 and 390 pixels, light and dark:
it must not scroll sideways, and axe-core must find nothing. With `--links` pages are not opened;
with a folder as an argument, pictures of all of that are left there.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "_build" / "html"
AXE = ROOT / ".venv/node_modules/axe-core/axe.min.js"
CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)
VIEWS = ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark"))


class Page(HTMLParser):
    """Ids of a page, where its links go, and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given.get("id"), given.get("name") if tag == "a" else None}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("img", "script", "source", "iframe") and given.get("src"):
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(given["href"])

    def has(self, fragment):
        return unquote(fragment) in self.ids


def broken_links(pages):
    """A sentence for each link that leads nowhere and each thing loaded from elsewhere."""
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme in ("mailto", "data"):
                continue
            if parts.scheme or parts.netloc:
                if link in page.loaded:
                    yield f"{path.relative_to(SITE)}: loads {link}"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                yield f"{path.relative_to(SITE)}: no file {link}"
            elif target in pages and parts.fragment and not pages[target].has(parts.fragment):
                yield f"{path.relative_to(SITE)}: no anchor {link}"


def seen_in_a_browser(paths, pictures=None):
    """A sentence for each page that scrolls sideways or breaks a rule of axe-core."""
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in FLAGS:
        options.add_argument(flag)
    driver = Chrome(options, ChromeService(str(DRIVER)))
    driver.set_script_timeout(120)
    axe = AXE.read_text("utf-8")
    try:
        for path in paths:
            name = path.relative_to(SITE)
            for width, scheme in VIEWS:
                size = {
                    "width": width,
                    "height": 900,
                    "deviceScaleFactor": 1,
                    "mobile": width < 600,
                }
                driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                # Reduced motion: a colour that is still changing has another contrast.
                media = [
                    {"name": "prefers-color-scheme", "value": scheme},
                    {"name": "prefers-reduced-motion", "value": "reduce"},
                ]
                driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
                driver.get(path.as_uri())
                where = f"{name} at {width} px, {scheme}"
                wide = driver.execute_script("return document.documentElement.scrollWidth")
                if wide > width:
                    yield f"{where}: scrolls sideways ({wide} px)"
                if pictures:
                    stem = "_".join(name.with_suffix("").parts)
                    driver.save_screenshot(str(pictures / f"{stem}_{width}_{scheme}.png"))
                driver.execute_script(axe)
                found = driver.execute_async_script(
                    "const done = arguments[0]; axe.run().then(r => done(r.violations))"
                )
                for rule in found:
                    first = rule["nodes"][0]
                    yield f"{where}: {rule['id']} × {len(rule['nodes'])}: {first['html'][:150]}"
    finally:
        driver.quit()


def main():
    pages = {
        path.resolve(): Page(path)
        for path in sorted(SITE.rglob("*.html"))
        if "_static" not in path.parts
    }
    assert pages, f"no page in {SITE}: run make docs"
    wrong = list(broken_links(pages))
    given = sys.argv[1:]
    if given == ["--links"]:
        looked = "links"
    elif CHROMIUM.exists() and DRIVER.exists() and AXE.exists():
        pictures = Path(given[0]) if given else None
        wrong += seen_in_a_browser(pages, pictures)
        looked = "links, and every page in chromium at 1280 and 390 px, light and dark"
    else:
        looked = "links (no chromium with axe-core: run make browser)"
    for sentence in wrong:
        print(sentence)
    print(f"{len(pages)} pages checked: {looked}. Found wrong: {len(wrong)}.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
