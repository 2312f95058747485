"""A headless Chromium, spoken to over pipes: Chrome's DevTools protocol, without a driver to install."""

import base64
import json
import os
import shutil
import subprocess
import tempfile

NAMES = ["chromium", "chromium-browser", "google-chrome"]


class Browser:
    """A browser with one page."""

    def __init__(self):
        program = next(filter(None, map(shutil.which, NAMES)))
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        # The browser reads commands at 3 and writes answers at 4.
        start = f'exec 3<&{commands} 4>&{answers}; exec "$0" "$@"'
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        flags += ["--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", "--disable-background-networking"]
        self.process = subprocess.Popen(["bash", "-c", start, program, *flags, "about:blank"], pass_fds=[commands, answers],
                                        stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.rest, self.last, self.errors = b"", 0, []
        self.session = None
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self.send("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self.session = attached["sessionId"]
        for domain in ["Page", "Runtime", "Log"]:
            self.send(f"{domain}.enable")

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.profile.cleanup()

    def send(self, method, **parameters):
        """Sends a command; its result."""
        self.last += 1
        command = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.last:
                assert "error" not in message, message
                return message["result"]
            if message.get("method") == "Runtime.exceptionThrown":
                self.errors.append(message["params"]["exceptionDetails"])

    def message(self):
        while b"\0" not in self.rest:
            read = os.read(self.answers, 1 << 16)
            assert read, "the browser has ended"
            self.rest += read
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def open(self, url):
        self.send("Page.navigate", url=url)

    def run(self, script):
        """The value of a script, which may be a promise."""
        result = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, (script, result)
        return result["result"].get("value")

    def wait(self, condition):
        """Waits until a condition holds; it is asked in the page, so that nothing happens in between."""
        script = f"""new Promise((done, fail) => {{
            const late = () => fail(new Error("two minutes have passed"));
            const until = performance.now() + 120000;
            const ask = () => {{
                let it;
                try {{ it = {condition}; }} catch {{}}
                it ? done(it) : performance.now() > until ? late() : setTimeout(ask, 50);
            }};
            ask();
        }})"""
        return self.run(script)

    def key(self, key, code, modifiers=0):
        for kind in ["rawKeyDown", "keyUp"]:
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, modifiers=modifiers)

    def look(self, width, height, is_dark=False):
        """A window of that size, in light or dark."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, path):
        data = self.send("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
