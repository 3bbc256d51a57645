// Every control of the page.
import { writeFileSync } from "node:fs";
import { expect, test } from "@playwright/test";
import { open, SMALL, time } from "./support";

test("a tree is shown, and its clock plays, pauses, steps and goes back", async ({ page }) => {
  await open(page, `design=leveling&${SMALL}`);
  await expect(page.getByRole("img", { name: /^Tree\. level 0/ })).toBeVisible();
  await page.getByRole("combobox", { name: "Speed" }).selectOption("60x");
  await page.getByRole("button", { name: "Play" }).click();
  await expect.poll(() => time(page)).toBeGreaterThan(10);
  await page.getByRole("button", { name: "Pause" }).click();
  await expect(page.getByRole("button", { name: "Play" })).toBeVisible();
  await page.waitForTimeout(200);
  const paused = await time(page);
  await page.waitForTimeout(200);
  expect(await time(page)).toBe(paused);
  await page.getByRole("button", { name: "Step to the next job" }).click();
  await expect.poll(() => time(page)).toBeGreaterThan(paused);
  const stepped = await time(page);
  await expect(page.getByRole("list", { name: "running jobs" })).toContainText(/level|flush/);
  await page.getByRole("button", { name: "Step back to the previous job" }).click();
  await expect.poll(() => time(page)).toBeLessThan(stepped);
  await page.getByText("Log", { exact: true }).click();
  await expect(page.getByRole("list", { name: "log" })).toContainText(/level-saturation|run-count/);
  await page.getByRole("slider", { name: "time" }).fill("0");
  await expect(page.getByRole("list", { name: "log" })).not.toContainText("level-saturation");
});

test("menus and text of a design are always equal", async ({ page }) => {
  await open(page, `design=leveling&${SMALL}`);
  const text = page.getByRole("textbox", { name: "Text" });
  await page.getByRole("combobox", { name: "granularity" }).selectOption("level");
  await expect(text).toHaveValue(/granularity=level/);
  await expect(page).toHaveURL(/granularity%3Dlevel/);
  await text.fill("tiering T=4; scheduler=greedy");
  await text.press("Enter");
  await expect(page.getByRole("combobox", { name: "eagerness" })).toHaveValue("tiering");
  await page.getByText("More settings").click();
  await expect(page.getByRole("textbox", { name: "Size ratio T" })).toHaveValue("4");
  await expect(page.getByRole("combobox", { name: "scheduler" })).toHaveValue("greedy");
  await page.getByRole("textbox", { name: "Size ratio T" }).fill("6");
  await page.getByRole("textbox", { name: "Size ratio T" }).press("Enter");
  await expect(text).toHaveValue(/tiering T=6/);
  await page.getByRole("combobox", { name: "Named design" }).selectOption("lethe");
  await expect(text).toHaveValue("lethe");
  await expect(page.locator(".about")).toContainText("Lethe");
});

test("an error is shown where it is, and the tree stays", async ({ page }) => {
  await open(page, `design=leveling&${SMALL}`);
  const text = page.getByRole("textbox", { name: "Text" });
  await text.fill("levling");
  await text.press("Enter");
  await expect(page.locator("fieldset").getByRole("alert")).toContainText("did you mean 'leveling'");
  await expect(page.getByRole("img", { name: /^Tree\./ })).toBeVisible();
  await text.fill("leveling; T=3");
  await text.press("Enter");
  await expect(page.locator("fieldset").getByRole("alert")).toHaveCount(0);
  await page.getByRole("textbox", { name: "Records" }).fill("many");
  await expect(page.locator("#field-records-error")).toContainText("'many' is no number");
  await page.getByRole("textbox", { name: "Arrival" }).fill("sometimes");
  await page.getByRole("textbox", { name: "Arrival" }).press("Enter");
  await expect(page.locator(".tree").getByRole("alert")).toContainText("sometimes");
});

test("up to four designs are compared on one clock", async ({ page }) => {
  await open(page, `design=leveling&${SMALL}`);
  for (let count = 2; count <= 4; count += 1) {
    await page.getByRole("button", { name: "Compare with another design" }).click();
    await expect(page.locator(".tree")).toHaveCount(count);
  }
  await expect(page.getByRole("button", { name: "Compare with another design" })).toHaveCount(0);
  await expect(page.getByText("simulating …")).toHaveCount(0);
  await expect(page.locator(".verdict li")).not.toHaveCount(0);
  expect(await page.locator(".verdict li").count()).toBeLessThanOrEqual(3);
  await expect(page.getByRole("columnheader", { name: "tiering", exact: true })).toBeVisible();
  await page.getByRole("slider", { name: "time" }).fill("300");
  await expect(page.getByRole("img", { name: /^Tree\. level 0/ })).toHaveCount(4);
  await page.getByRole("button", { name: "Remove design D" }).click();
  await expect(page.locator(".tree")).toHaveCount(3);
});

test("an address reproduces a picture", async ({ page, context }) => {
  await open(page, `design=tiering+T%3D3&design=leveling&${SMALL}&at=200`);
  expect(await time(page)).toBe(200);
  const summary = await page.getByRole("img", { name: /^Tree\./ }).first().getAttribute("aria-label");
  await page.getByRole("textbox", { name: "Records" }).fill("50k");
  await page.getByRole("textbox", { name: "Records" }).press("Enter");
  await expect(page).toHaveURL(/records=50k/);
  const again = await context.newPage();
  await open(again, `design=tiering+T%3D3&design=leveling&${SMALL}&at=200`);
  expect(await again.getByRole("img", { name: /^Tree\./ }).first().getAttribute("aria-label")).toBe(summary);
});

test("a lookup is followed through the runs", async ({ page }) => {
  await open(page, `design=tiering+T%3D4&${SMALL}&at=400`);
  await page.getByRole("slider", { name: "key" }).fill("0.25");
  const path = page.locator(".path");
  await expect(path).toContainText("level 0, run");
  await expect(path).toContainText("A missing key reads");
  await page.locator(".canvas canvas").click({ position: { x: 300, y: 80 } });
  await expect(page.getByRole("slider", { name: "key" })).not.toHaveValue("0.25");
});

test("a design of the space can be compared", async ({ page }) => {
  await open(page, `design=leveling&${SMALL}`);
  await expect(page.getByText(/2\.\d+ k designs for/)).toBeVisible();
  await page.getByText("Pareto front", { exact: true }).click();
  await expect(page.getByRole("region", { name: "Pareto front" }).getByRole("row")).not.toHaveCount(1);
  const scatter = page.locator("canvas.scatter");
  const box = await scatter.boundingBox();
  if (!box) throw new Error("no scatter");
  // The designs lie somewhere in the middle.
  for (let x = box.width / 3; x < box.width && (await page.locator(".chosen").count()) === 0; x += 12) {
    for (let y = 30; y < box.height - 40 && (await page.locator(".chosen").count()) === 0; y += 40) {
      await scatter.click({ position: { x, y } });
    }
  }
  await page.getByRole("button", { name: "Compare it" }).click();
  await expect(page.locator(".tree")).toHaveCount(2);
  await page.getByRole("combobox", { name: /Against the bytes/ }).selectOption("space");
  await expect(page.getByRole("columnheader", { name: "space amplification, at most" })).toBeVisible();
});

test("examples are simulated", async ({ page }) => {
  await open(page, SMALL);
  const names = await page.getByRole("navigation", { name: "examples" }).getByRole("link").allTextContents();
  expect(names.length).toBeGreaterThan(3);
  for (const name of names) {
    await page.getByRole("link", { name }).click();
    await expect(page.getByText("simulating …")).toHaveCount(0, { timeout: 30_000 });
    await expect(page.getByRole("alert")).toHaveCount(0);
    await expect(page.getByRole("img", { name: /^Tree\./ }).first()).toBeVisible();
  }
});

test("a simulation that would take hours gives way to the next setup", async ({ page }) => {
  await open(page, `design=leveling&${SMALL}`);
  await page.getByRole("combobox", { name: "Start" }).selectOption("loaded");
  await page.getByRole("textbox", { name: "Records" }).fill("1000G");
  await page.getByRole("textbox", { name: "Records" }).press("Enter");
  await expect(page.getByText("simulating …")).toBeVisible();
  await page.waitForTimeout(300);
  await page.getByRole("textbox", { name: "Records" }).fill("50k");
  await page.getByRole("textbox", { name: "Records" }).press("Enter");
  await expect(page.getByText("simulating …")).toHaveCount(0);
  await expect(page.getByRole("img", { name: /^Tree\. level 0/ })).toBeVisible();
});

test("a change that comes late does not undo another one", async ({ page }) => {
  await open(page, `design=leveling&${SMALL}`);
  await page.getByRole("textbox", { name: "Text" }).fill("tiering T=5");
  // Leaving the text begins its check, and the button adds a design before that ends.
  await page.getByRole("button", { name: "Compare with another design" }).click();
  await expect(page.getByRole("textbox", { name: "Text" })).toHaveCount(2);
  await expect(page.getByRole("textbox", { name: "Text" }).first()).toHaveValue("tiering T=5");
  await page.waitForTimeout(300);
  await expect(page.getByRole("textbox", { name: "Text" })).toHaveCount(2);
});

test("the machine is read from a file", async ({ page }, info) => {
  await open(page, `design=tiering&${SMALL}`);
  await page.getByText("Machine", { exact: true }).click();
  const choose = page.getByLabel(/Constants of/);
  const write = (name: string, text: string) => {
    const path = info.outputPath(name);
    writeFileSync(path, text);
    return path;
  };
  await choose.setInputFiles(write("other.toml", "[package]\nname = 'x'\n"));
  await expect(page.getByRole("alert")).toContainText("other.toml: '[package]' is no constant");
  const constants = ["device_mb_per_second = 40.0", "request_micros = 80.0", "request_kib = 128.0", "concurrency = 4", "write_micros = 9.5",
    "flush_micros_per_entry = 0.4", "merge_micros_per_entry = 0.5", "memtable_bytes_per_entry = 30.0", "table_bytes_per_entry = 6.5"];
  await choose.setInputFiles(write("here.toml", `# this machine\n${constants.join("\n")}\n`));
  await expect(page.getByRole("textbox", { name: "Device" })).toHaveValue("40MB/s");
  await expect(page.getByRole("textbox", { name: "Write", exact: true })).toHaveValue("9.5");
  await expect(page.getByRole("alert")).toHaveCount(0);
  await expect(page.getByText("simulating …")).toHaveCount(0);
  await expect.poll(() => new URL(page.url()).hash).toContain("request-size=128KiB");
});

test("a click into a chart goes to its time", async ({ page }) => {
  await open(page, `design=leveling&${SMALL}`);
  const chart = page.locator("figure .u-over").first();
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  if (!box) throw new Error("no chart");
  await chart.click({ position: { x: box.width / 2, y: box.height / 2 } });
  await expect.poll(() => time(page)).toBeGreaterThan(250);
  expect(await time(page)).toBeLessThan(350);
});
