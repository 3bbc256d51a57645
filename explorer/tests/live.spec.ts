// The live picture of a database that a command serves, and its recordings.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, type Page } from "@playwright/test";
import { faults } from "./axe";
import { Served } from "./server";
import { PAGE, time } from "./support";

const served = new Served();
/** Another one, whose page may change it. */
const open = new Served();

test.beforeAll(async () => {
  await served.start();
  await open.start("--allow-changes");
  // A sample of empty trees comes first.
  await new Promise((resolve) => setTimeout(resolve, 1500));
  await served.write(0, 20_000);
  await open.write(0, 5000);
});
test.afterAll(async () => {
  await served.remove();
  await open.remove();
});

/** Opens a picture once it has samples, and fails on errors in it. */
async function show(page: Page, address: string): Promise<void> {
  page.on("pageerror", (error) => { throw error; });
  page.on("console", (message) => {
    if (message.type() === "error") throw new Error(message.text());
  });
  await page.goto(address);
  await expect(page.getByRole("img", { name: /^Tree\. level 0/ })).toBeVisible();
}

/** Returns how many sorted runs the picture has. */
async function runs(page: Page): Promise<number> {
  const label = (await page.getByRole("img", { name: /^Tree\./ }).getAttribute("aria-label")) ?? "";
  return [...label.matchAll(/(\d+) runs/g)].reduce((sum, [, count]) => sum + Number(count), 0);
}

test("the picture follows the database", async ({ page }) => {
  await show(page, served.picture);
  await expect(page.getByRole("heading", { level: 1 })).toContainText("terrane-live-");
  await expect(page.getByText(/^process \d+ \(terrane\), Terrane/)).toBeVisible();
  expect(await runs(page)).toBeGreaterThan(0);
  const before = await time(page);
  await served.write(20_000, 40_000);
  await expect.poll(() => time(page)).toBeGreaterThan(before + 1);
  await expect(page.getByRole("list", { name: "events" })).toContainText("flushed into");
  await expect(page.getByText(/writes, .* gets, .* scans/)).toBeVisible();
  await expect(page.locator("figure canvas")).toHaveCount(11);
});

test("the clock goes back, and returns to now", async ({ page }) => {
  await show(page, served.picture);
  const live = page.getByRole("button", { name: "Live" });
  await expect(live).toHaveAttribute("aria-pressed", "true");
  await page.getByRole("slider", { name: "time" }).focus();
  await page.keyboard.press("Home");
  await expect(live).toHaveAttribute("aria-pressed", "false");
  // The first sample was taken before the first write.
  await expect(page.getByRole("img", { name: /no tables/ })).toBeVisible();
  const then = await time(page);
  await page.waitForTimeout(1500);
  expect(await time(page)).toBe(then);
  await page.getByRole("button", { name: "Step to the next event" }).click();
  await expect.poll(() => time(page)).toBeGreaterThan(then);
  await live.click();
  await expect(page.getByRole("img", { name: /^Tree\. level 0/ })).toBeVisible();
});

test("a page that comes later sees what was before", async ({ page, context }) => {
  await show(page, served.picture);
  const second = await context.newPage();
  await show(second, served.picture);
  await expect.poll(async () => (await runs(second)) - (await runs(page))).toBe(0);
  await second.getByRole("slider", { name: "time" }).focus();
  await second.keyboard.press("Home");
  await expect(second.getByRole("img", { name: /no tables/ })).toBeVisible();
});

test("events are searched", async ({ page }) => {
  await show(page, served.picture);
  const log = page.getByRole("list", { name: "events" });
  await page.getByRole("searchbox", { name: "Search events" }).fill("compacted DEFAULT");
  await expect(log.getByRole("listitem").first()).toBeVisible();
  for (const text of await log.getByRole("listitem").allTextContents()) expect(text).toMatch(/default.*compact|compact.*default/i);
  await page.getByRole("searchbox", { name: "Search events" }).fill("no such event");
  await expect(page.getByText("0 events")).toBeVisible();
});

test("what if: the simulator goes on from the live tree", async ({ page }) => {
  await served.write(0, 5000);
  await show(page, served.picture);
  await page.getByRole("button", { name: "Live" }).click();
  const before = await runs(page);
  await page.getByRole("link", { name: /Simulate the next hour/ }).click();
  await expect(page.getByText("simulating …")).toHaveCount(0);
  await expect(page.getByRole("img", { name: /^Tree\. level 0/ })).toHaveCount(2);
  await expect(page.getByRole("alert")).toHaveCount(0);
  // Both designs begin with the same runs, those of the live tree.
  await page.getByRole("slider", { name: "time" }).fill("0");
  const labels = await page.getByRole("img", { name: /^Tree\./ }).evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")?.replace(/\. \d+ jobs.*/, "")));
  const count = [...(labels[0] ?? "").matchAll(/(\d+) runs/g)].reduce((sum, [, runs]) => sum + Number(runs), 0);
  expect(Math.abs(count - before)).toBeLessThanOrEqual(8);
  expect(new URLSearchParams(new URL(page.url()).hash.slice(1)).get("runs")).toMatch(/^[-0-9,;.]+$/);
  await page.goBack();
  await expect(page.getByRole("button", { name: "Live" })).toBeVisible();
});

test("a wrong token shows nothing", async ({ page }) => {
  await page.goto(served.picture.replace(/token=.*/, "token=0123456789abcdef0123456789abcdef"));
  await expect(page.getByRole("alert")).toContainText("refused the token");
});

test("a page without leave forecasts, and changes nothing", async ({ page }) => {
  await show(page, served.picture);
  await page.getByText("Forecast a change of design").click();
  const text = page.getByRole("textbox", { name: "Text" });
  // The click ends the editing, too.
  await text.fill("leveling T=4; buffer=64KiB");
  await page.getByRole("button", { name: "Forecast" }).click();
  await expect(page.getByRole("row", { name: /sorted runs/ })).toBeVisible();
  await expect(page.getByRole("button", { name: /Change the design of/ })).toHaveCount(0);
});

test("a change of design shows its forecast, asks, and is followed", async ({ page }) => {
  await show(page, open.picture);
  await expect(page.getByRole("heading", { level: 2, name: /^tiering/ })).toBeVisible();
  await page.getByText("Change the design", { exact: true }).click();
  const text = page.getByRole("textbox", { name: "Text" });
  await text.fill("leveling T=4; buffer=64KiB; table=64KiB");
  await text.blur();
  await expect(page.getByRole("button", { name: /Change the design of/ })).toHaveCount(0);
  await page.getByRole("button", { name: "Forecast" }).click();
  await page.getByRole("button", { name: "Change the design of default" }).click();
  await expect(page.getByText(/The design has changed/)).toBeVisible();
  await expect(page.getByRole("heading", { level: 2, name: /^leveling/ })).toBeVisible();
  await expect(page.getByRole("list", { name: "events" })).toContainText(/design/);
});

test("a recording shows what the picture showed, and only a recording does", async ({ page }, info) => {
  await show(page, served.picture);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: /Save the last hour/ }).click()]);
  const file = info.outputPath("incident.jsonl");
  await download.saveAs(file);
  const lines = readFileSync(file, "utf8");
  expect(lines.split("\n").length).toBeGreaterThan(5);

  await page.goto(PAGE);
  const choose = page.getByLabel(/Open a recording/);
  const other = join(served.dir, "other.txt");
  writeFileSync(other, "{\"a\":1}\nno recording\n");
  await choose.setInputFiles(other);
  await expect(page.getByRole("alert")).toContainText("is no recording");

  await choose.setInputFiles(file);
  await expect(page.getByRole("img", { name: /^Tree\./ })).toBeVisible();
  await expect(page.getByRole("button", { name: "Live" })).toHaveCount(0);
  await page.getByRole("slider", { name: "time" }).focus();
  await page.keyboard.press("End");
  await expect(page.getByRole("img", { name: /^Tree\. level 0/ })).toBeVisible();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("terrane-live-");
  await page.keyboard.press("Home");
  await page.getByRole("combobox", { name: "Speed" }).selectOption("300");
  await page.getByRole("button", { name: "Play" }).click();
  await expect(page.getByRole("img", { name: /^Tree\. level 0/ })).toBeVisible();

  // The file ends in the middle of a line, as after a crash.
  const cut = join(served.dir, "cut.jsonl");
  writeFileSync(cut, lines.slice(0, -40));
  await choose.setInputFiles(cut);
  await expect(page.getByRole("alert")).toContainText("1 lines could not be read");
});

for (const width of [1280, 390]) {
  for (const colorScheme of ["light", "dark"] as const) {
    test(`axe finds nothing serious in the picture at ${width} pixels in ${colorScheme}`, async ({ browser }) => {
      const page = await browser.newPage({ viewport: { width, height: 844 }, colorScheme });
      await show(page, open.picture);
      await page.getByText("Change the design", { exact: true }).click();
      await expect(page.getByRole("textbox", { name: "Text" })).toBeVisible();
      expect(await faults(page)).toEqual([]);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(overflow).toBeLessThanOrEqual(0);
      await page.close();
    });
  }
}

test("the keyboard alone leaves the present and returns to it", async ({ page }) => {
  await show(page, served.picture);
  const focused = () => page.evaluate(() => document.activeElement?.textContent ?? "");
  for (let presses = 0; presses < 20 && (await focused()) !== "Live"; presses += 1) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("button", { name: "Live" })).toHaveAttribute("aria-pressed", "false");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("button", { name: "Live" })).toHaveAttribute("aria-pressed", "true");
});

test("the end of the command is said", async ({ page }) => {
  const short = new Served();
  await short.start();
  await short.write(0, 2000);
  await page.goto(short.picture);
  await expect(page.getByRole("img", { name: /^Tree\./ })).toBeVisible();
  await short.remove();
  await expect(page.getByRole("alert")).toContainText("does not answer");
});

test("a process that is stopped is not shown as if it went on", async ({ page }) => {
  test.setTimeout(60_000);
  const halted = new Served();
  await halted.start();
  await halted.write(0, 2000);
  await page.goto(halted.picture);
  await expect(page.getByRole("img", { name: /^Tree\./ })).toBeVisible();
  await expect(page.getByRole("alert")).toHaveCount(0);
  halted.signal("SIGSTOP");
  await expect(page.getByRole("alert")).toContainText("has not answered for", { timeout: 20_000 });
  halted.signal("SIGCONT");
  await expect(page.getByRole("alert")).toHaveCount(0);
  await halted.remove();
});
