// The page for everyone: narrow and wide, light and dark, with the keyboard alone, and with a screen reader.
import { expect, test } from "@playwright/test";
import { faults } from "./axe";
import { open, SMALL, time } from "./support";

for (const width of [1280, 390]) {
  for (const colorScheme of ["light", "dark"] as const) {
    test(`axe finds nothing serious at ${width} pixels in ${colorScheme}`, async ({ browser }) => {
      const page = await browser.newPage({ viewport: { width, height: 844 }, colorScheme });
      await open(page, `design=leveling&design=tiering&${SMALL}&at=300`);
      await page.locator("details").evaluateAll((all) => all.forEach((one) => { (one as HTMLDetailsElement).open = true; }));
      await page.getByRole("slider", { name: "key" }).fill("0.5");
      expect(await faults(page)).toEqual([]);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(overflow).toBeLessThanOrEqual(0);
      await page.close();
    });
  }
}

test("the keyboard alone plays, steps and changes a design", async ({ page }) => {
  await open(page, `design=leveling&${SMALL}`);
  const focused = () => page.evaluate(() => document.activeElement?.textContent ?? "");
  for (let presses = 0; presses < 80 && (await focused()) !== "Play"; presses += 1) await page.keyboard.press("Tab");
  expect(await focused()).toBe("Play");
  await page.keyboard.press("Enter");
  await expect.poll(() => time(page)).toBeGreaterThan(0);
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  const before = await time(page);
  await page.keyboard.press("Enter");
  await expect.poll(() => time(page)).toBeGreaterThan(before);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Home");
  await expect.poll(() => time(page)).toBe(0);
});
