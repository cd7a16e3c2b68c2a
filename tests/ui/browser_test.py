"""Tests the pages of `hone ui` in Chromium: browser_test.py HONE AXE

AXE is axe.min.js of axe-core. Opens every kind of page, wide and narrow, light and dark, with and
without scripts, uses it by keyboard, and watches a run that goes on. SCREENSHOTS=FOLDER keeps
pictures of the pages.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import viewer
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

HONE = AXE = ""  # arguments of the test
LOOKS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]

# Pairs of texts of one plot that overlap by more than two pixels in both directions.
OVERLAPS = """
const found = [];
for (const plot of document.querySelectorAll("svg")) {
  const boxes = [...plot.querySelectorAll("text")]
      .map((t) => [t.textContent, t.getBoundingClientRect()]).filter((b) => b[1].width > 0);
  for (let i = 0; i < boxes.length; ++i)
    for (let j = i + 1; j < boxes.length; ++j) {
      const [a, b] = [boxes[i][1], boxes[j][1]];
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 &&
          Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2)
        found.push(boxes[i][0] + " / " + boxes[j][0]);
    }
}
return found;
"""


def start_browser(*options):
    chosen = webdriver.ChromeOptions()
    chosen.binary_location = "/usr/bin/chromium"
    for option in [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        *options,
    ]:
        chosen.add_argument(option)
    chosen.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=chosen)


def first_link(browser, prefix):
    links = browser.find_elements(By.CSS_SELECTOR, f'main a[href^="{prefix}"]')
    return links[0].get_attribute("href")


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.home = pathlib.Path(cls.folder.name)
        # Pictures for the documentation show a longer run.
        run = os.environ.get("VIEWED_RUN") or viewer.make_run(HONE, cls.home, "run")
        cls.viewer, cls.port, cls.token = viewer.start_viewer(HONE, run)
        cls.base = f"http://127.0.0.1:{cls.port}"
        cls.browser = start_browser()
        cls.browser.get(f"{cls.base}/?token={cls.token}")
        cls.pages = {
            "run": f"{cls.base}/",
            "tasks": f"{cls.base}/tasks",
            "failures": f"{cls.base}/failures",
            "cluster": f"{cls.base}/cluster",
        }
        cls.browser.get(cls.pages["tasks"])
        cls.pages["task"] = first_link(cls.browser, "/task/")
        cls.pages["variant"] = first_link(cls.browser, "/variant/")
        cls.browser.get(cls.pages["variant"])
        cls.pages["group"] = first_link(cls.browser, "/group/")
        cls.pages["diff"] = first_link(cls.browser, "/diff/")

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.viewer.terminate()
        cls.viewer.wait(10)
        cls.viewer.stdout.close()
        cls.folder.cleanup()

    def look(self, browser, width, scheme, height=1600):
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )

    def test_pages_fit_and_say_nothing_on_the_console(self):
        self.browser.get_log("browser")
        self.browser.get_log("performance")
        for width, scheme in LOOKS:
            self.look(self.browser, width, scheme)
            for name, address in self.pages.items():
                with self.subTest(page=name, width=width, scheme=scheme):
                    self.browser.get(address)
                    wide = self.browser.execute_script(
                        "return document.documentElement.scrollWidth"
                    )
                    self.assertLessEqual(wide, width, "the page scrolls sideways")
                    self.assertEqual(self.browser.execute_script(OVERLAPS), [])
                    self.keep_picture(name, width, scheme)
        self.assertEqual(self.browser.get_log("browser"), [])
        requests = [
            entry["message"]
            for entry in self.browser.get_log("performance")
            if '"Network.requestWillBeSent"' in entry["message"]
        ]
        self.assertGreater(len(requests), len(LOOKS) * len(self.pages))
        for request in requests:
            self.assertRegex(request, rf'"url":"(http://127.0.0.1:{self.port}/|data:|chrome)')

    def keep_picture(self, name, width, scheme):
        folder = os.environ.get("SCREENSHOTS")
        if not folder:
            return
        height = self.browser.execute_script("return document.documentElement.scrollHeight")
        self.look(self.browser, width, scheme, min(height, 1600))
        self.browser.save_screenshot(f"{folder}/{name}-{width}-{scheme}.png")
        self.look(self.browser, width, scheme)

    def test_axe_finds_nothing_serious(self):
        browser = start_browser()
        try:
            browser.get(f"{self.base}/?token={self.token}")
            browser.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
            for width, scheme in LOOKS:
                self.look(browser, width, scheme)
                for name, address in self.pages.items():
                    with self.subTest(page=name, width=width, scheme=scheme):
                        browser.get(address)
                        browser.execute_script(pathlib.Path(AXE).read_text())
                        found = browser.execute_async_script(
                            "const done = arguments[0];"
                            "axe.run(document, {resultTypes: ['violations']}).then(done);"
                        )
                        serious = [
                            (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
                            for one in found["violations"]
                            if one["impact"] in ("serious", "critical")
                        ]
                        self.assertEqual(serious, [])
        finally:
            browser.quit()

    def test_pages_are_complete_without_scripts(self):
        browser = start_browser("--blink-settings=scriptEnabled=false")
        try:
            browser.get(f"{self.base}/?token={self.token}")
            browser.find_element(By.LINK_TEXT, "Tasks").click()
            browser.find_element(By.LINK_TEXT, "softmax").click()
            self.assertIn("/task/softmax", browser.current_url)
            browser.find_element(By.ID, "find").send_keys("layer_norm" + Keys.ENTER)
            self.assertIn("/task/layer_norm", browser.current_url)
        finally:
            browser.quit()

    def test_the_keyboard_leads_to_the_diff_of_the_best_variant(self):
        self.look(self.browser, 1280, "light")
        self.browser.get(self.pages["task"])
        body = self.browser.find_element(By.TAG_NAME, "body")
        body.send_keys("/")
        self.assertEqual(self.browser.switch_to.active_element.get_attribute("id"), "find")
        self.browser.execute_script("document.activeElement.blur()")
        table = self.browser.find_element(By.CSS_SELECTOR, "main section table tbody tr a")
        for _ in range(60):
            body.send_keys("j")
            if self.browser.switch_to.active_element == table:
                break
        self.browser.switch_to.active_element.send_keys(Keys.ENTER)
        self.assertIn("/variant/", self.browser.current_url)
        for _ in range(60):
            self.browser.switch_to.active_element.send_keys(Keys.TAB)
            focused = self.browser.switch_to.active_element
            if "/diff/" in (focused.get_attribute("href") or ""):
                focused.send_keys(Keys.ENTER)
                break
        self.assertIn("/diff/", self.browser.current_url)

    def test_a_page_follows_a_run_that_is_killed_and_resumed(self):
        run = self.home / "live"
        command = [
            HONE,
            "run",
            self.home / "ui.toml",
            "--dir",
            run,
            "--set",
            "contrastive.steps=1000000",
            "--set",
            "simulated.a.measure_us=20000",
        ]
        head = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shown = None
        try:
            self.wait(lambda: (run / "pool/CURRENT").exists(), 20)
            shown, port, token = viewer.start_viewer(HONE, run)
            self.browser.get(f"http://127.0.0.1:{port}/?token={token}")
            self.wait(lambda: "contrastive" in self.text("main"), 40)
            before = self.text("main")
            self.wait(lambda: self.text("main") != before, 15)
            self.assertIn("going on", self.text("#live"))
            head.kill()
            head.wait()
            self.wait(lambda: "stopped or killed" in self.text("#live"), 15)
            head = subprocess.Popen(
                [HONE, "run", "--dir", run, "--resume"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            self.wait(lambda: "going on" in self.text("#live"), 20)
            before = self.text("main")
            self.wait(lambda: self.text("main") != before, 30)
        finally:
            head.kill()
            head.wait()
            if shown is not None:
                shown.terminate()
                shown.wait(10)
                shown.stdout.close()

    def text(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector).text

    def wait(self, is_true, limit_s):
        end = time.monotonic() + limit_s
        while not is_true():
            self.assertLess(time.monotonic(), end, f"not within {limit_s} s")
            time.sleep(0.2)


if __name__ == "__main__":
    AXE = sys.argv.pop(2)
    HONE = sys.argv.pop(1)
    unittest.main()
