// The picture of README: `node picture.mjs` writes docs/explorer.png. CHROMIUM may name a browser.
import { chromium } from "@playwright/test";

const executablePath = process.env.CHROMIUM;
const browser = await chromium.launch({ ...(executablePath ? { executablePath } : {}), args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1240, height: 900 }, colorScheme: "light" });
const setup = "design=leveling%20T%3D4%3B%20L0%3D4&design=tiering%20T%3D4&records=20M&arrival=constant(9000)&at=3150";
await page.goto(new URL(`../crates/terrane-cli/page/explorer.html#${setup}`, import.meta.url).href);
await page.getByText("simulating …").first().waitFor({ state: "hidden" });
// The trees alone, without the forms.
await page.evaluate(() => {
  document.querySelector(".setup")?.remove();
  document.querySelector("header")?.remove();
  const place = document.querySelector(".page");
  if (place) place.style.display = "block";
});
await page.waitForTimeout(500);
const clip = await page.evaluate(() => {
  const end = document.querySelector(".columns")?.getBoundingClientRect().bottom ?? 700;
  return { x: 0, y: 0, width: 1240, height: Math.ceil(end) };
});
await page.screenshot({ path: new URL("../docs/explorer.png", import.meta.url).pathname, clip });
await browser.close();
