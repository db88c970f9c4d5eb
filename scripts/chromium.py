#!/usr/bin/env python3
"""A headless Chromium that tests open pages in, driven by the DevTools protocol over a pipe; needs
nothing but the browser.

    scripts/chromium.py PAGE.html OUT.png|OUT.pdf [--dark] [--phone] [--at SELECTOR]
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

#: Where Debian puts it, or whatever comes first in PATH; None where there is none.
EXECUTABLE = shutil.which("chromium") or shutil.which("chromium-browser")


class Page:
    """One page; `errors` has what it wrote to the console as errors or warnings, and what it tried to
    load that is not the page itself."""

    def __init__(self) -> None:
        to_browser, self._commands = os.pipe()
        self._answers, from_browser = os.pipe()
        self._profile = tempfile.TemporaryDirectory()
        assert EXECUTABLE is not None

        def connect() -> None:
            # The protocol's descriptors are 3 and 4; by way of others, as they may be those here.
            read, write = os.dup(to_browser), os.dup(from_browser)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self._browser = subprocess.Popen(
            [
                EXECUTABLE, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                "--no-first-run", "--disable-extensions", "--remote-debugging-pipe",
                f"--user-data-dir={self._profile.name}", "about:blank",
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=connect,
            start_new_session=True,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._last = 0
        self._session: str | None = None
        self._loaded = False
        self.errors: list[str] = []
        target = next(
            each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page"
        )
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.size(1280, 900)

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        self._browser.terminate()
        self._browser.wait()
        self._end_helpers()
        os.close(self._commands)
        os.close(self._answers)
        self._profile.cleanup()

    def _end_helpers(self) -> None:
        """The browser's other processes outlive it by a little, and write to the profile."""
        for _ in range(100):
            try:
                os.killpg(self._browser.pid, signal.SIGKILL)
            except ProcessLookupError:
                return
            time.sleep(0.05)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends a command and returns its answer; events that come before it are looked at."""
        self._last += 1
        command = {"id": self._last, "method": method, "params": parameters}
        if self._session is not None:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self._next_message()
            if message.get("id") == self._last:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return dict(message["result"])
            self._look_at(message)

    def _next_message(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            received = os.read(self._answers, 1 << 20)
            if not received:
                raise RuntimeError("the browser has ended")
            self._buffer += received
        text, self._buffer = self._buffer.split(b"\0", 1)
        return dict(json.loads(text))

    def _look_at(self, event: dict[str, Any]) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.errors.append(str(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.errors.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if not url.startswith(("file:", "data:", "about:")):
                self.errors.append(f"a request: {url}")

    def open(self, path: str | os.PathLike[str]) -> float:
        """Opens a file and waits until it is loaded and answers; returns the seconds."""
        self._loaded = False
        start = time.monotonic()
        self.call("Page.navigate", url=Path(path).resolve().as_uri())
        while not self._loaded:
            self._look_at(self._next_message())
        # The first frame after all scripts have run: from now on the page can be used.
        self.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
        return time.monotonic() - start

    def run(self, script: str) -> Any:
        """The value of an expression in the page, awaited if it is a promise."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """A click with the mouse into the middle of an element."""
        place = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
            " return [b.left + b.width / 2, b.top + b.height / 2]; })()"
        )
        self.click_at(*place)

    def click_at(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )

    def type(self, selector: str, text: str) -> None:
        """Text typed into a field."""
        self.click(selector)
        self.call("Input.insertText", text=text)

    def size(self, width: int, height: int, phone: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone,
        )  # fmt: skip

    def colours(self, scheme: str) -> None:
        """"light" or "dark", as the reader's system asks for."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def picture(self, path: str | os.PathLike[str]) -> None:
        """What is seen now, as PNG."""
        answer = self.call("Page.captureScreenshot", format="png")
        Path(path).write_bytes(base64.b64decode(answer["data"]))

    def paper(self, path: str | os.PathLike[str]) -> None:
        """The page printed, as PDF."""
        answer = self.call("Page.printToPDF", printBackground=False, paperWidth=8.27, paperHeight=11.69)
        Path(path).write_bytes(base64.b64decode(answer["data"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page")
    parser.add_argument("out", help="picture (.png), or the page printed (.pdf)")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--phone", action="store_true")
    parser.add_argument("--at", help="element to scroll to")
    parser.add_argument("--click", action="append", default=[], help="element to click first")
    options = parser.parse_args()
    with Page() as page:
        page.size(*((390, 844) if options.phone else (1280, 900)), phone=options.phone)
        page.colours("dark" if options.dark else "light")
        print(f"usable after {page.open(options.page):.2f} s", *page.errors, sep="\n")
        for selector in options.click:
            page.click(selector)
        if options.at:
            page.run(f"document.querySelector({json.dumps(options.at)}).scrollIntoView()")
        page.run("new Promise((done) => setTimeout(done, 100))")
        page.paper(options.out) if options.out.endswith(".pdf") else page.picture(options.out)


if __name__ == "__main__":
    main()
