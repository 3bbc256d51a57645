// Reports of bench, simulate and stability: the page with a run inside.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test, type Page } from "@playwright/test";
import { columnsOf, csvOf, type Figure } from "../src/run/run";
import { faults } from "./axe";
import { TERRANE } from "./server";

const dir = mkdtempSync(join(tmpdir(), "terrane-run-"));
const report = (name: string) => join(dir, name, "report.html");

test.beforeAll(() => {
  const run = (...args: string[]) => execFileSync(TERRANE, args, { stdio: "ignore" });
  run("simulate", "--records", "1M", "--hours", "0.05", "--design", "leveling", "--design", "tiering", "--out", join(dir, "one"));
  run("simulate", "--records", "1M", "--hours", "0.05", "--design", "balanced", "--out", join(dir, "two"));
  run("bench", "--num", "5K", "--workload", "fillrandom,readrandom", "--design", "leveling", "--repeat", "2", "--out", join(dir, "bench"));
  const phases = ["--testing", "1.5", "--running", "1.2", "--warm-up", "0.5"];
  try {
    run("stability", "--records", "3000", "--value-size", "100", ...phases, "--design", "1-leveling T=4; buffer=128KiB", "--out", join(dir, "stability"));
  } catch (error) {
    // The verdict does not matter here.
    if ((error as { status?: number }).status !== 1) throw error;
  }
});
test.afterAll(() => rmSync(dir, { recursive: true, force: true }));

async function show(page: Page, name: string): Promise<void> {
  page.on("pageerror", (error) => { throw error; });
  page.on("console", (message) => {
    if (message.type() === "error") throw new Error(message.text());
  });
  await page.goto(pathToFileURL(report(name)).href);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
}

test("a simulation shows its curves, tables and setting", async ({ page }) => {
  await show(page, "one");
  await expect(page.getByRole("heading", { level: 1, name: "Simulation" })).toBeVisible();
  await expect(page.getByRole("row", { name: /^command terrane simulate/ })).toBeVisible();
  await expect(page.locator("figure canvas")).toHaveCount(3);
  const writes = page.locator("figure", { hasText: "Writes over time" });
  await writes.getByText("Table").click();
  expect(await writes.locator("tbody tr").count()).toBeGreaterThan(5);
  await expect(writes.locator(".rows thead th")).toHaveText(["minutes", "leveling", "tiering"]);
  // The value under the pointer.
  await writes.locator(".u-over").hover({ position: { x: 300, y: 100 } });
  await expect(writes.locator(".u-legend .u-value").nth(1)).not.toHaveText("-");
});

test("figures are saved as the command draws them, and as CSV", async ({ page }, info) => {
  await show(page, "one");
  const save = async (name: string) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
    const path = info.outputPath(download.suggestedFilename());
    await download.saveAs(path);
    return readFileSync(path, "utf8");
  };
  expect(await save("Sorted runs over time of this run as SVG")).toBe(readFileSync(join(dir, "one", "runs.svg"), "utf8"));
  const csv = await save("Writes over time as CSV");
  expect(csv.split("\n")[0]).toBe("minutes,leveling,tiering");
});

test("two runs are on one axis", async ({ page }) => {
  await show(page, "one");
  const choose = page.getByLabel("Compare with another report");
  await choose.setInputFiles(report("two"));
  const writes = page.locator("figure", { hasText: "Writes over time" });
  await writes.getByText("Table").click();
  await expect(writes.locator(".rows thead th")).toHaveText(["minutes", "leveling", "tiering", "2: balanced"]);
  await expect(page.getByRole("columnheader", { name: "2: Simulation" })).toBeVisible();
  await page.getByRole("button", { name: /Remove/ }).click();
  await expect(writes.locator(".rows thead th")).toHaveCount(3);

  const other = join(dir, "other.html");
  writeFileSync(other, "<html><body>nothing</body></html>");
  await choose.setInputFiles(other);
  await expect(page.getByRole("alert")).toContainText("is no report.html");
  const newer = join(dir, "newer.html");
  writeFileSync(newer, readFileSync(report("two"), "utf8").replace('id="terrane-run">{"schema":1', 'id="terrane-run">{"schema":9'));
  await choose.setInputFiles(newer);
  await expect(page.getByRole("alert")).toContainText("another version");
});

test("a run that was cut short is said to be", async ({ page }) => {
  const cut = join(dir, "cut.html");
  writeFileSync(cut, readFileSync(report("one"), "utf8").replace(/"curves".*<\/script>/s, "</script>"));
  await page.goto(pathToFileURL(cut).href);
  await expect(page.getByRole("alert")).toContainText("cannot be read");
});

test("a benchmark and a stability test show their verdicts", async ({ page }) => {
  await show(page, "bench");
  await expect(page.locator("figure", { hasText: "Throughput" }).locator("canvas")).toBeVisible();
  await show(page, "stability");
  await expect(page.locator("p.mark")).toBeVisible();
  await expect(page.getByRole("row", { name: /^99\.9/ }).first()).toBeVisible();
  await page.getByRole("link", { name: "Design explorer" }).click();
  await expect(page.getByRole("button", { name: "Play" })).toBeVisible();
});

for (const width of [1280, 390]) {
  for (const colorScheme of ["light", "dark"] as const) {
    test(`axe finds nothing serious in a report at ${width} pixels in ${colorScheme}`, async ({ browser }) => {
      const page = await browser.newPage({ viewport: { width, height: 844 }, colorScheme });
      await show(page, "stability");
      await page.locator("details").evaluateAll((all) => all.forEach((one) => { (one as HTMLDetailsElement).open = true; }));
      expect(await faults(page)).toEqual([]);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(overflow).toBeLessThanOrEqual(0);
      await page.close();
    });
  }
}

test("curves of different positions become columns", () => {
  const curve = (name: string, points: [number, number][]) => ({ name, is_dashed: false, points, ranges: [] });
  const columns = columnsOf([curve("a", [[0, 1], [2, 3]]), curve("b, c", [[1, 5], [2, 6]])]);
  expect(columns.x).toEqual([0, 1, 2]);
  expect(columns.curves.map((one) => one.values)).toEqual([[1, null, 3], [null, 5, 6]]);
  const figure = { x_label: "at", x_names: [] } as unknown as Figure;
  expect(csvOf(figure, columns)).toBe('at,a,"b, c"\n0,1,\n1,,5\n2,3,6\n');
});
