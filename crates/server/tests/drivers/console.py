"""The console in a browser: log-in, query, error, plan, cancel, and a restart of the server under the open page.

The port is the argument; `restart` on standard output asks for a restart, a line on standard input tells that it is done.
With $ATOLL_CONSOLE_PICTURES, a directory, each step leaves a picture in light, dark and narrow.
"""

import os
import sys

from chromium import Browser

ENDLESS = "SELECT sum((a.x * b.x) % 7) FROM range(1000000) a(x), range(1000000) b(x)"
LOOKS = {"light": (1200, 800, False), "dark": (1200, 800, True), "narrow": (360, 740, False)}


def pictures(browser, name):
    for look, of in LOOKS.items():
        browser.look(*of)
        assert browser.run("document.documentElement.scrollWidth <= innerWidth"), (name, look, "wider than the window")
        if directory := os.environ.get("ATOLL_CONSOLE_PICTURES"):
            browser.picture(f"{directory}/{name}-{look}.png")
    browser.look(*LOOKS["light"])


def value(browser, of, text):
    browser.run(f"document.getElementById('{of}').value = {text!r}")


def click(browser, of):
    browser.run(f"document.querySelector({of!r}).click()")


def log_in(browser, password):
    browser.wait("!document.getElementById('log-in').hidden")
    value(browser, "name", "ann")
    value(browser, "password", password)
    click(browser, "#log-in button")


def run(browser, sql, button="#run"):
    browser.wait("!document.getElementById('run').disabled")
    browser.run("document.getElementById('results').replaceChildren()")
    value(browser, "text", sql)
    click(browser, button)


def main():
    browser = Browser()
    browser.look(*LOOKS["light"])
    browser.open(f"http://127.0.0.1:{sys.argv[1]}/")
    log_in(browser, "pencils")
    told = browser.wait("!document.getElementById('log-in-error').hidden && document.getElementById('log-in-error').textContent")
    assert "password authentication failed" in told, told
    pictures(browser, "log-in")
    log_in(browser, "pencil")
    browser.wait("!document.getElementById('sql').hidden")

    # By the keyboard.
    value(browser, "text", "SELECT value AS k, '<b>' || value AS t FROM range(1200)")
    browser.run("document.getElementById('text').focus()")
    browser.key("Enter", 13, modifiers=2)
    told = browser.wait("document.querySelector('#results table') && document.querySelector('#results p').textContent")
    assert "first 1,000 rows" in told, told
    assert browser.run("document.querySelectorAll('#results tbody tr').length") == 1000
    assert browser.run("document.querySelectorAll('#results tbody b').length") == 0, "values are not markup"
    pictures(browser, "query")

    run(browser, "SELECT a,\n  nothing FROM sale")
    told = browser.wait("document.querySelector('#results .error')?.textContent")
    assert "line 2" in told and "nothing" in told, told
    pictures(browser, "error")

    run(browser, "SELECT a % 7 AS k, count(*) FROM sale GROUP BY k", "#analyze")
    told = browser.wait("document.querySelector('#results ul.plan')?.textContent")
    assert "ScanExec" in told and "homes" in told and "local" in told, told
    pictures(browser, "plan")

    run(browser, ENDLESS)
    browser.wait("!document.getElementById('stop').disabled")
    browser.run("location.hash = '#queries'")
    browser.wait("document.querySelector('#queries-list button')")
    pictures(browser, "queries")
    click(browser, "#queries-list button")
    browser.run("location.hash = '#sql'")
    told = browser.wait("document.querySelector('#results .error')?.textContent")
    assert "57014" in told, told

    run(browser, ENDLESS)
    browser.wait("!document.getElementById('stop').disabled")
    click(browser, "#stop")
    told = browser.wait("document.querySelector('#results .error')?.textContent")
    assert "cancelled" in told, told

    for section, shown in [("tables", ".homes"), ("machine", ".cpu"), ("scans", "#scans-list *")]:
        browser.run(f"location.hash = '#{section}'")
        browser.wait(f"document.querySelector('{shown}')")
        if section == "machine":
            # Load is known from the second look on.
            browser.wait("/Node \\d+ · \\d+ % busy/.test(document.querySelector('#live .node')?.textContent)")
            assert browser.run("document.querySelectorAll('#live .node').length === document.querySelectorAll('#nodes .card').length")
            assert "read" in browser.run("document.querySelector('#live svg').getAttribute('aria-label')")
        pictures(browser, section)
    browser.wait("document.getElementById('picture').naturalWidth > 0")

    browser.run("location.hash = '#sql'")
    value(browser, "text", "SELECT 'kept'")
    browser.run("location.hash = '#machine'")
    print("restart", flush=True)
    browser.wait("document.getElementById('state').textContent.includes('does not answer')")
    pictures(browser, "gone")
    sys.stdin.readline()
    # Log-ins end with the server; what was typed stays.
    log_in(browser, "pencil")
    browser.wait("document.getElementById('log-in').hidden && document.querySelector('.cpu')")
    assert browser.run("document.getElementById('text').value") == "SELECT 'kept'"
    assert not browser.errors, browser.errors
    browser.close()


main()
