"""A real browser for tests of pages: Chromium without a window, spoken to in its DevTools protocol over two pipes.

It needs no package: Chromium reads commands from file descriptor 3 and writes answers and events to 4, each a JSON
object that ends with a zero byte. Protocol: https://chromedevtools.github.io/devtools-protocol/.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

EXECUTABLE = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
PATIENCE = 120.0  # seconds that an answer may take on a busy machine before the browser counts as dead

_FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --hide-scrollbars --mute-audio --remote-debugging-pipe""".split()


class Browser:
    """One browser process, as a context manager."""

    def __init__(self) -> None:
        assert EXECUTABLE is not None
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, self._to = os.pipe()
        self._from, answers = os.pipe()
        line = f'exec "$0" "$@" 3<&{commands} 4>&{answers}'
        flags = [*_FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", line, EXECUTABLE, *flags], pass_fds=(commands, answers), stderr=subprocess.DEVNULL
        )
        os.close(commands)
        os.close(answers)
        self._buffer = b""
        self._numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            self.call("Browser.close")
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._to)
            os.close(self._from)
            self._profile.cleanup()

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send a command and return its result; events that come before it are kept."""
        number = next(self._numbers)
        command = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._to, json.dumps(command).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]  # type: ignore[no-any-return]
            self.events.append(answer)

    def wait_for(self, method: str, session: str) -> None:
        """Read on until an event has come."""
        while not any(e.get("method") == method and e.get("sessionId") == session for e in self.events):
            self.events.append(self._read())

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._from], [], [], PATIENCE)[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self._from, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has gone")
            self._buffer += piece
        answer, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(answer)  # type: ignore[no-any-return]


class Page:
    """One tab, in which everything that goes wrong is noted."""

    def __init__(self, browser: Browser, width: int = 1200, height: int = 800, dark: bool = False) -> None:
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session: str = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def open(self, path: Path) -> None:
        """Load a file, without any network, and wait until it has been drawn."""
        self._call(
            "Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0
        )
        self._call("Page.navigate", url=path.resolve().as_uri())
        self._browser.wait_for("Page.loadEventFired", self._session)
        self.settle()

    def js(self, expression: str) -> Any:
        """The value of a JavaScript expression, awaited if it is a promise."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", str(answer)))
        return answer["result"].get("value")

    def settle(self) -> None:
        """Wait until what was asked for has been drawn: for two frames."""
        self.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def text(self, selector: str) -> str:
        """The text of an element."""
        return self.js(f"document.querySelector({json.dumps(selector)}).textContent")  # type: ignore[no-any-return]

    def click(self, selector: str, *, times: int = 1) -> None:
        """Scroll an element into view and press the mouse in the middle of it, once or twice."""
        x, y, hit = self.js(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoViewIfNeeded();"
            "const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2;"
            "const hit = document.elementFromPoint(x, y);"
            "return [x, y, e.contains(hit) ? '' : hit ? hit.outerHTML.slice(0, 200) : 'nothing']; })()"
        )
        assert not hit, f"a click on {selector} at ({x:.0f}, {y:.0f}) would hit {hit}"
        for count in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)
        self.settle()

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press the mouse at one place and let go of it at another."""
        self._call("Input.dispatchMouseEvent", type="mousePressed", x=start[0], y=start[1], button="left", clickCount=1)
        for x, y in (((start[0] + end[0]) / 2, (start[1] + end[1]) / 2), end):
            self._call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, button="left", buttons=1)
        self._call("Input.dispatchMouseEvent", type="mouseReleased", x=end[0], y=end[1], button="left", clickCount=1)
        self.settle()

    def wheel(self, x: float, y: float, delta: float) -> None:
        """Turn the mouse's wheel."""
        self._call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=delta)
        self.settle()

    def key(self, key: str) -> None:
        """Press a key on whatever has the focus."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        codes = {"Enter": 13, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Escape": 27}
        code = {"windowsVirtualKeyCode": codes[key]} if key in codes else {}
        self._call("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code)
        self._call("Input.dispatchKeyEvent", type="keyUp", key=key, **code)
        self.settle()

    def type(self, text: str) -> None:
        """Enter text where the focus is."""
        self._call("Input.insertText", text=text)
        self.settle()

    def screenshot(self, path: Path) -> None:
        """Save what is seen, as PNG."""
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot")["data"]))

    @property
    def problems(self) -> list[str]:
        """Errors and warnings of the console, exceptions, and requests for anything but the page itself."""
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"])[:500])
            elif event["method"] == "Log.entryAdded":
                found.append(params["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(str(params["args"]))
            elif event["method"] == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if not url.startswith(("file:", "data:")) or params.get("type") != "Document":
                    found += [] if url == "data:," else [url]
        return found
