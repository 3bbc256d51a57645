// The papers' figures and claims in the page.
import { readFileSync } from "node:fs";
import { expect, test, type Page } from "@playwright/test";
import { shownOf, commandOf, type Paper } from "../src/papers/papers";
import { faults } from "./axe";
import { PAGE } from "./support";

const DATA = JSON.parse(readFileSync(new URL("../data/papers.json", import.meta.url), "utf8")) as Paper[];

async function show(page: Page, hash: string): Promise<void> {
  page.on("pageerror", (error) => { throw error; });
  page.on("console", (message) => {
    if (message.type() === "error") throw new Error(message.text());
  });
  await page.goto(`${PAGE}${hash}`);
  await expect(page.getByRole("status")).toContainText("claims:");
}

test("all claims are counted, and filters leave the right ones", async ({ page }) => {
  await show(page, "#papers");
  const claims = DATA.flatMap((paper) => paper.claims);
  await expect(page.getByRole("status")).toContainText(`${claims.length} claims: `);
  await page.getByRole("combobox", { name: "Verdict" }).selectOption("contradicted");
  const contradicted = claims.filter((claim) => claim.verdict === "contradicted").length;
  await expect(page.getByRole("status")).toHaveText(`${contradicted} claims: ${contradicted} contradicted.`);
  await expect(page.locator(".claim")).toHaveCount(contradicted);
  await page.getByRole("combobox", { name: "Verdict" }).selectOption("");
  await page.getByRole("combobox", { name: "Paper" }).selectOption("flodb");
  await expect(page.getByRole("heading", { level: 2 })).toHaveCount(1);
  const figure = DATA.find((paper) => paper.name === "flodb")?.figures[0];
  if (!figure) throw new Error("no figure");
  await page.getByRole("combobox", { name: "Figure" }).selectOption(figure.number);
  await expect(page.getByRole("article")).toHaveCount(1);
  await expect(page.getByRole("article", { name: figure.figure.title }).locator("canvas")).toBeVisible();
  expect(new URL(page.url()).hash).toBe(`#papers&paper=flodb&figure=${encodeURIComponent(figure.number)}`);
  await page.reload();
  await expect(page.getByRole("article")).toHaveCount(1);
});

test("a figure has its points, sources, claims and command", async ({ page }) => {
  await show(page, "#papers&paper=memtables&figure=1a");
  const article = page.getByRole("article");
  await expect(article.getByText("run memtables --figure 1a")).toBeVisible();
  await article.getByText("Table", { exact: true }).click();
  await expect(article.locator(".rows thead th").nth(1)).toHaveText("the paper");
  const claim = article.locator(".claim").first();
  await expect(claim.getByRole("row", { name: /^paper / })).toBeVisible();
  await expect(claim.getByRole("row", { name: /^rule / })).toBeVisible();
  await page.getByRole("link", { name: "Design explorer" }).click();
  await page.getByRole("link", { name: /The papers' figures/ }).click();
  await expect(page.getByRole("heading", { level: 1, name: "The papers, measured" })).toBeVisible();
});

test("no claim is lost or shown twice", () => {
  const all = shownOf(DATA, { paper: "", figure: "", verdict: "" });
  const claims = all.flatMap(({ figures, others }) => [...figures.flatMap((one) => one.claims), ...others]);
  expect(claims.length).toBe(DATA.flatMap((paper) => paper.claims).length);
  expect(new Set(claims).size).toBe(claims.length);
  const compaction = DATA.find((paper) => paper.name === "compaction");
  expect(compaction && commandOf(compaction)).toBe("cargo run --release -p terrane-papers -- run compaction");
});

for (const width of [1280, 390]) {
  for (const colorScheme of ["light", "dark"] as const) {
    test(`axe finds nothing serious in the papers at ${width} pixels in ${colorScheme}`, async ({ browser }) => {
      const page = await browser.newPage({ viewport: { width, height: 844 }, colorScheme });
      await show(page, "#papers&paper=compaction");
      await expect(page.locator("figure canvas").first()).toBeVisible();
      expect(await faults(page)).toEqual([]);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(overflow).toBeLessThanOrEqual(0);
      await page.close();
    });
  }
}
